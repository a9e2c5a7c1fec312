"""Errors of the operations: one message that says what is wrong and what to do, never a secret."""

from collections.abc import Sequence

from confluent_kafka import KafkaError

# The most specific reason first: a refused password also shows as a lost connection a moment later.
_AUTHENTICATION = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)
_TLS = (KafkaError._SSL,)
_RESOLVE = (KafkaError._RESOLVE,)
_RIGHTS = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
# No retry helps against these: a client that sees one may give up at once.
FINAL = frozenset((*_AUTHENTICATION, *_RIGHTS))


class OpsError(Exception):
    """Wrong usage, a wrong setting or a cluster that cannot be used. The command ends with exit code 2."""


def explain(errors: Sequence[KafkaError], cluster: str, brokers: str, user: str | None) -> OpsError:
    """The error that says why a cluster cannot be used, chosen from everything its client reported.

    `cluster` is the name to show: a stack's name or `environment`. No argument is a secret, and librdkafka puts none
    into its messages.
    """
    by_code = {error.code(): error for error in errors}

    def first(codes: Sequence[int]) -> KafkaError | None:
        return next((by_code[code] for code in codes if code in by_code), None)

    if first(_AUTHENTICATION):
        return OpsError(
            f"cluster {cluster}: user and password must be accepted by the broker (got user {user!r}, refused). "
            "Compare the password with the user's Secret, and wait for the user to be Ready if it is new."
        )
    if (error := first(_TLS)) is not None:
        return OpsError(
            f"cluster {cluster}: certificate of {brokers} must be signed by the given CA (TLS: {_short(error)}). "
            "Give the cluster's CA certificate: output clusterCaCertificate, or KAFKA_CERT."
        )
    if (error := first(_RIGHTS)) is not None:
        return OpsError(
            f"cluster {cluster}: user {user!r} must be allowed to do this ({_short(error)}). Add an ACL to the user."
        )
    if first(_RESOLVE):
        return OpsError(f"cluster {cluster}: bootstrap servers must be known names (got {brokers}). Check the address.")
    detail = f"; {_short(errors[0])}" if errors else ""
    return OpsError(
        f"cluster {cluster}: bootstrap servers must be reachable (got {brokers}{detail}). "
        "Check that the cluster is Ready and that the address and the security protocol are right."
    )


def _short(error: KafkaError) -> str:
    """The first sentence of what librdkafka says about an error, without the retry statistics behind it."""
    return str(error.str()).split(" (after ")[0].strip()
