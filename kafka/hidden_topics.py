"""Topics of the source that the mirror's pattern covers and that the run's user may not see.

Kafka leaves topics without DESCRIBE out of the list of all topics, so such a topic is missing from everything that a
run reads there. Others name it: the mirror's offsets, its checkpoints and offset syncs, remote topics on the target.
Asked by its name, Kafka answers TOPIC_AUTHORIZATION_FAILED to a user without DESCRIBE, whether or not the topic exists,
and UNKNOWN_TOPIC_OR_PARTITION to one with it: that topic was deleted, and nothing of it is left to verify.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, TopicCollection

from contract.verification_request import TOPIC_LENGTH_MAX, Mirror
from kafka.checkpoints import OffsetTranslation
from kafka.cluster import CALL_DEADLINE_S, Cluster, Partition
from kafka.errors import DENIED, code_of

_NAME = re.compile(rf"[a-zA-Z0-9._-]{{1,{TOPIC_LENGTH_MAX}}}")
RIGHTS = ("Describe", "Read", "DescribeConfigs")


@dataclass(frozen=True)
class HiddenTopics:
    """Topics that the source's user may not describe, each with who names it, and what to do about them."""

    named_by: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


def named_elsewhere(
    mirror: Mirror,
    seen: Iterable[str],
    positions: Mapping[Partition, int] | None,
    translation: OffsetTranslation,
    on_target: Iterable[str],
) -> dict[str, str]:
    """Return topics that the mirror carries and the source does not show, each with who names it.

    Args:
        mirror: its patterns decide what it carries.
        seen: topics that the source shows.
        positions: offsets that the source connector has committed; None if they are not known.
        claims: checkpoints, by topics of the target, and offset syncs, by topics of the source.
        on_target: all topics that the target shows.

    With identity naming nothing tells a remote topic of the target from a local one. Its name counts only where no
    positions are known, which would name each topic that the mirror has copied from.
    """
    prefix = mirror.target_topic("")
    copies = on_target if prefix or not positions else ()
    kept = {topic.name for topic in mirror.internal_topics} | {mirror.checkpoints_name, mirror.offset_storage_topic}
    named: dict[str, list[str]] = {
        "the mirror's offsets": [topic for topic, _ in positions or ()],
        "the mirror's offset syncs": [topic for topic, _ in translation.syncs or ()],
        "a checkpoint": [
            topic.removeprefix(prefix) for _, topic, _ in translation.checkpoints if topic.startswith(prefix)
        ],
        "a topic of the target": [
            topic.removeprefix(prefix) for topic in copies if topic.startswith(prefix) and topic not in kept
        ],
    }
    known = set(seen)
    found: dict[str, str] = {}
    for who, topics in named.items():
        for topic in sorted(set(topics) - known):
            if topic not in found and _NAME.fullmatch(topic) and mirror.carries_topic(topic):
                found[topic] = who
    return found


def hidden_topics(source: Cluster, named: Mapping[str, str]) -> HiddenTopics:
    """Return those of the named topics that the source's user may not describe; raises ClusterError.

    One that the source does not have was deleted. One that it shows by now was made after the cut.
    """
    found: dict[str, str] = {}
    if not named:
        return HiddenTopics()
    asked = TopicCollection(sorted(named))
    for name, future in source.admin.describe_topics(asked, request_timeout=CALL_DEADLINE_S).items():
        try:
            future.result()
        except KafkaException as error:
            if code_of(error) in DENIED:
                found[name] = named[name]
            elif code_of(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                source.refusals.call(f"describe topic {name}", error, None)
    return HiddenTopics(found, _reason(source, found)) if found else HiddenTopics()


def _reason(source: Cluster, hidden: Mapping[str, str]) -> str:
    denial = source.refusals.denial([(right, f"topic {name}") for name in sorted(hidden) for right in RIGHTS])
    who = " and ".join(sorted(set(hidden.values())))
    return f"named by {who}, but not verified: {denial} If it was deleted, name it in topicsExclude."
