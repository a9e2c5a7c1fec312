"""What a cluster would not tell: the reason, for checks that can then not be made. Nothing here ends a run."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from confluent_kafka import KafkaError, KafkaException

from spark.request.model import Side

Fact = TypeVar("Fact")
DENIED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
)


@dataclass(kw_only=True)
class Answers(Generic[Fact]):
    """What was asked by topic name: found, or refused with the reason. A topic that is in neither does not exist."""

    found: dict[str, Fact] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def code_of(error: KafkaException) -> int | None:
    """Return Kafka's error code, None for an error without one."""
    first = error.args[0] if error.args else None
    return first.code() if isinstance(first, KafkaError) else None


def reason(side: Side, what: str, needs: str, error: KafkaException) -> str:
    """Return why a side did not answer; a missing right is named with its resource."""
    if code_of(error) in DENIED:
        return denial(side, what, needs)
    first = error.args[0] if error.args else error
    return f"{side.role} {side.alias}: cannot {what} ({first.str() if isinstance(first, KafkaError) else first})"


def denial(side: Side, what: str, needs: str) -> str:
    """Return that a side's user may not do something, and the right that it needs."""
    return f"{side.role} {side.alias}: user {side.user} may not {what}, grant it {needs}"
