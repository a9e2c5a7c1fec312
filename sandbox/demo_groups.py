"""Where a consumer group stands on a cluster, and the wait until a mirror has carried that over."""

import logging
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient

from .demo_process import StageError

Positions = dict[tuple[str, int], int]
_REQUEST_S = 10.0
_PAUSE_S = 1.0
_quiet = logging.getLogger("sandbox.librdkafka")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


def client_config(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the librdkafka properties of a stack's cluster as its first user. They hold a password: never log them."""
    cluster, passwords = outputs["cluster"], outputs["userPasswords"]
    user = next(iter(passwords))
    return {
        "bootstrap.servers": cluster["bootstrapServers"],
        "security.protocol": cluster["securityProtocol"],
        "sasl.mechanism": cluster["saslMechanism"],
        "sasl.username": user,
        "sasl.password": passwords[user],
        "ssl.ca.pem": outputs["clusterCaCertificate"],
    }


def positions(outputs: Mapping[str, Any], group: str) -> Positions:
    """Return a group's committed offsets per topic and partition; empty if the cluster does not know the group."""
    admin = AdminClient(client_config(outputs), logger=_quiet)
    answers = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=_REQUEST_S)
    try:
        found = answers[group].result(timeout=_REQUEST_S + 1)
    except KafkaException:
        return {}
    return {(part.topic, part.partition): part.offset for part in found.topic_partitions if part.offset >= 0}


def wait_until_synced(
    source: Mapping[str, Any], target: Mapping[str, Any], group: str, timeout_s: float
) -> tuple[Positions, Positions]:
    """Wait until the target knows the group on every partition that it has read at the source; return both sides.

    The target's offsets are at or before the source's: a mirror translates to the nearest known pair of offsets.
    Raises StageError naming the partitions that are missing when the time is up.
    """
    before = positions(source, group)
    if not before:
        raise StageError(f"group {group}: must have committed at the source (got no offsets).")
    end = time.monotonic() + timeout_s
    while True:
        after = positions(target, group)
        missing = sorted(key for key, offset in before.items() if offset > 0 and key not in after)
        if not missing:
            return before, after
        if time.monotonic() > end:
            names = ", ".join(f"{topic}-{partition}" for topic, partition in missing)
            raise StageError(
                f"group {group}: must be at the target within {timeout_s:g} s (got no offset for {names}). "
                "Look at the checkpoint connector: venv/bin/python -m sandbox status."
            )
        time.sleep(_PAUSE_S)


def wait_until_answers(outputs: Mapping[str, Any], timeout_s: float) -> None:
    """Wait until a stack's cluster answers its user; raises StageError when the time is up."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            AdminClient(client_config(outputs), logger=_quiet).list_topics(timeout=_REQUEST_S)
        except KafkaException:
            if time.monotonic() > end:
                name = outputs["cluster"]["name"]
                raise StageError(
                    f"cluster {name}: must answer within {timeout_s:g} s (got no answer). Look at its brokers: "
                    "venv/bin/python -m sandbox status."
                ) from None
            time.sleep(_PAUSE_S)
        else:
            return
