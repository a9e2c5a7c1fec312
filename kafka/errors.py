"""Errors of clusters, and the one message for each way in which a cluster refuses. No message carries a secret.

Also takes secrets and invisible characters out of texts and of a report's document.

A message names the cluster by role, alias and address, the user, what is wrong and what to do about it. A caller that
can go on without an answer takes the reason (`Answers`, `reason`) in place of an exception.
"""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar
from urllib.parse import quote

from confluent_kafka import KafkaError, KafkaException

from contract.fields import VerificationError
from contract.report_rows import LazyRows
from contract.terminal import visible as visible
from contract.verification_request import ClusterConfig
from kafka import connectivity
from kafka.connectivity import Broker, connection_error
from kafka.topic_partition import TopicPartition

# Lengths in characters: of a secret, of one that is also replaced within a word, and of a line of one.
SECRET_MIN, WITHIN_WORDS_MIN, LINE_MIN = 4, 8, 16
HIDDEN = "[hidden]"
# Keys of a report whose values are words of this project.
UNREDACTED_KEYS = {
    *("verdict", "name", "kind", "step", "where", "naming", "isolation", "allow_unknown", "allowed_unknown"),
    *("started_at", "finished_at"),
}
EVIDENCE = "evidence"  # a check's own keys, with any text under them


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return a text without these secrets."""
    pattern = _pattern(secrets)
    return pattern.sub(HIDDEN, text) if pattern is not None else text


def redact_document(document: Mapping[str, Any], secrets: Iterable[str]) -> dict[str, Any]:
    """Return a report's document without these secrets, of the same shape."""
    pattern = _pattern(secrets)
    return dict(document) if pattern is None else {key: _redact_value(document[key], key, pattern) for key in document}


def _redact_value(value: Any, key: str, pattern: re.Pattern[str], *, in_evidence: bool = False) -> Any:
    if isinstance(value, str):
        return value if key in UNREDACTED_KEYS and not in_evidence else pattern.sub(HIDDEN, value)
    in_evidence = in_evidence or key == EVIDENCE
    if isinstance(value, LazyRows):
        return value.mapped(lambda row: dict(_redact_value(row, key, pattern, in_evidence=in_evidence)))
    if isinstance(value, Mapping):
        return {name: _redact_value(one, str(name), pattern, in_evidence=in_evidence) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_redact_value(one, key, pattern, in_evidence=in_evidence) for one in value]
    return value


def _pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    found = {form for secret in secrets for form in _forms(secret.strip())}
    ways = [_way(form) for form in sorted(found, key=len, reverse=True) if len(form) >= SECRET_MIN]
    return re.compile("|".join(ways)) if ways else None


def _forms(secret: str) -> Iterable[str]:
    if len(secret) < SECRET_MIN:
        return
    yield secret
    yield from (json.dumps(secret, ensure_ascii=pure)[1:-1] for pure in (True, False))
    yield from (quote(secret), quote(secret, safe=""), html.escape(secret), html.escape(secret, quote=False))
    lines = secret.splitlines()
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= LINE_MIN and not line.startswith("-----"))


def _way(form: str) -> str:
    way = r"(?:\s|\\[nr])+".join(map(re.escape, form.split()))
    return way if len(form) >= WITHIN_WORDS_MIN else rf"(?<![^\W_]){way}(?![^\W_])"


def visible_document(value: Any) -> Any:
    """Return a document of the same shape with control and invisible characters escaped in all its texts."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, LazyRows):
        return value.mapped(visible_document)
    if isinstance(value, Mapping):
        return {visible_document(key): visible_document(item) for key, item in value.items()}
    return [visible_document(item) for item in value] if isinstance(value, list | tuple) else value


class ClusterError(VerificationError):
    """A cluster cannot be reached or refuses the user."""


class RefusedError(ClusterError):
    """A cluster, or this side's own library, refuses the user or how it connects: waiting cannot help."""


class DeniedError(RefusedError):
    """The user lacks a right; names the operation and the resource."""


class UnansweredError(ClusterError):
    """A call to a cluster got no answer in time, perhaps from a broker that nothing else needs."""


DENIED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
# A broker that starts, stops or hands its partitions over answers with these for a while.
PASSING = (
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
)
UNANSWERED = (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)
NAMED_MAX = 10
START_REPLICAS = "Start the brokers that hold the replicas."
_DOWN = "Check that the brokers are up."
_ENDED = "handshake failed: Local: "
Right = tuple[str, str]  # operation and resource, such as ("Read", "topic items")


class Refusals:
    """Raises a ClusterError for what librdkafka reports about one side."""

    def __init__(self, side: ClusterConfig) -> None:
        self.side = side
        self.user = side.client_config.get("sasl.username") or connectivity.subject(side.client_config) or side.user
        self._recorded: list[KafkaError] = []

    def begin(self) -> None:
        """Forget what was reported of an earlier connection.

        Refuses a client's certificate that is no longer, or not yet, valid: the broker would only hang up.
        """
        self._recorded.clear()
        if bad := connectivity.client_problem(self.side.client_config):
            self.reject(*bad)

    def record(self, error: KafkaError) -> None:
        """Keep an error that librdkafka reports apart from its answers (`error_cb`)."""
        self._recorded.append(error)

    def refuse(self, what: str, fix: str) -> NoReturn:
        """Raise a ClusterError."""
        raise ClusterError(self.message(what, fix)) from None

    def reject(self, what: str, fix: str) -> NoReturn:
        """Raise a RefusedError."""
        raise RefusedError(self.message(what, fix)) from None

    def deny(self, rights: Sequence[Right]) -> NoReturn:
        """Raise a DeniedError that names every missing right."""
        raise DeniedError(self.denial(rights)) from None

    def denial(self, rights: Sequence[Right], instead: str = "") -> str:
        """Return the message for missing rights; `instead` is another way to grant what is needed."""
        resources: dict[str, list[str]] = {}
        for operation, resource in rights:
            resources.setdefault(resource, []).append(operation)
        named = [(" and ".join(operations), resource) for resource, operations in resources.items()]
        more = f" and {len(named) - NAMED_MAX} more" if len(named) > NAMED_MAX else ""
        lacks = ", ".join(f"{operations} {resource}" for operations, resource in named[:NAMED_MAX])
        grants = ", ".join(f"{operations} on {resource}" for operations, resource in named[:NAMED_MAX])
        fix = f"Grant {grants}{more}{', ' + instead if instead else ''}."
        return self.message(f"user {self.user} may not {lacks}{more}", fix)

    def call(self, what: str, error: KafkaException, right: Right | None) -> NoReturn:
        """Raise what a failed call means; `right` is the operation and resource that the call needs."""
        code = code_of(error)
        if code in DENIED:
            self.deny([right] if right else [("do this:", what)])
        loads = code == KafkaError.COORDINATOR_LOAD_IN_PROGRESS
        fix = "Run this again once the broker has read the offsets of its groups." if loads else _DOWN
        message = self.message(f"cannot {what}: {text_of(error)}", fix)
        raise (UnansweredError if code in UNANSWERED else ClusterError)(message) from None

    def connection(self, *, final: bool, last: KafkaException, within_s: float) -> None:
        """Raise what keeps a connection from coming about, at once if waiting cannot help, else when `final`."""
        codes = {error.code(): error for error in self._recorded}
        # The request before the password is judged fails with this code too, where a connection ends.
        if KafkaError._AUTHENTICATION in codes and _ENDED not in codes[KafkaError._AUTHENTICATION].str():
            self.reject("authentication failed", "Check sasl.username, sasl.password and sasl.mechanism.")
        if KafkaError._SSL in codes:
            config = self.side.client_config
            address = connectivity.address_in(codes[KafkaError._SSL].str()) or self._first_server
            if found := connectivity.problem(config, address):
                if connectivity.lasts(found, config, address):
                    self.reject(*found)
                if final:
                    self.refuse(*found)
        if not final:
            return
        if KafkaError._RESOLVE in codes:
            self.refuse("the host name cannot be resolved", "Check bootstrap.servers.")
        if problem := connectivity.problem(self.side.client_config, self._first_server):
            self.refuse(*problem)
        hint = "Check bootstrap.servers, security.protocol and that the brokers are up."
        self.refuse(f"cannot be reached within {within_s:.0f} s ({text_of(last)})", hint)

    def leaders(self, led: Mapping[TopicPartition, Broker | None]) -> NoReturn:
        """Raise which brokers keep partitions from being read; None: there is no leader."""
        lost = [f"{topic}-{number}" for (topic, number), broker in led.items() if broker is None]
        if lost:
            self.refuse(without_leader(lost), START_REPLICAS)
        brokers: dict[Broker, list[str]] = {}
        for (topic, number), broker in led.items():
            if broker is not None:
                brokers.setdefault(broker, []).append(f"{topic}-{number}")
        problems = [
            f"broker {one.number} at {one.host}:{one.port}, which leads {_listed(parts)}, "
            f"{connection_error(one) or 'takes connections but does not answer'}"
            for one, parts in sorted(brokers.items())
        ]
        self.refuse("; ".join(problems), "Start the broker, or correct the address that its listener advertises.")

    @property
    def _first_server(self) -> str:
        return self.side.client_config.get("bootstrap.servers", "").split(",")[0].strip()

    def message(self, what: str, fix: str) -> str:
        """Return the one line of a refusal; it holds no secret."""
        servers = self.side.client_config.get("bootstrap.servers", "")
        text = f"{self.side.role} {self.side.alias} ({servers}, user {self.user}): {what}. {fix}"
        return " ".join(redact(text, self.side.secrets).split())


def code_of(error: KafkaException) -> int | None:
    """Return Kafka's code of an error, None if it has none."""
    first = error.args[0] if error.args else None
    return first.code() if isinstance(first, KafkaError) else None


def text_of(error: KafkaException) -> str:
    """Return the text of an error."""
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(first)


def passes(error: KafkaException) -> bool:
    """Whether the same call may succeed in a moment."""
    return code_of(error) in PASSING


def without_leader(partitions: Sequence[str]) -> str:
    """Return that these partitions have no leader, the first ones by name if there are many."""
    return f"{_listed(partitions)} {'has' if len(partitions) == 1 else 'have'} no leader"


def _listed(names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - NAMED_MAX} more partitions" if len(found) > NAMED_MAX else ""
    return ", ".join(found[:NAMED_MAX]) + more


Fact = TypeVar("Fact")


@dataclass(kw_only=True)
class Answers(Generic[Fact]):
    """Results by topic name: found, or refused with the reason. A topic that is in neither does not exist."""

    found: dict[str, Fact] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def reason(side: ClusterConfig, what: str, needs: str, error: KafkaException) -> str:
    """Return why a side did not answer; a missing right is named with its resource."""
    if code_of(error) in DENIED:
        return denial(side, what, needs)
    first = error.args[0] if error.args else error
    return f"{side.role} {side.alias}: cannot {what} ({first.str() if isinstance(first, KafkaError) else first})"


def denial(side: ClusterConfig, what: str, needs: str) -> str:
    """Return that a side's user may not do something, and the right that it needs."""
    return f"{side.role} {side.alias}: user {side.user} may not {what}, grant it {needs}"
