"""Rules of topics: names are unique in Kafka and in Kubernetes, replicas fit the brokers, a broker may restart."""

from collections.abc import Mapping

from settings.cluster import MIN_INSYNC, Cluster
from settings.errors import Problem
from settings.names import is_resource_name
from settings.rules.annotations import annotations
from settings.rules.common import duplicates, leaves_room, room
from settings.topics import Topic
from settings.wording import shown


def topics(found: Mapping[int, Topic], on: Cluster | None) -> list[Problem]:
    """All rules of all topics."""
    problems = duplicates("topics", "topic", {index: (topic.name, topic) for index, topic in found.items()})
    first: dict[str, Topic] = {}
    resources: dict[str, Topic] = {}
    for index, topic in found.items():
        where, subject = f"topics[{index}]", f"topic {topic.name}"
        other = first.setdefault(topic.name.replace(".", "_").lower(), topic)
        if other.name != topic.name:
            problems.append(
                Problem(
                    f"{where}.name",
                    f"{subject}: name must differ from {other.name} by more than case, '.' and '_' (Kafka's metrics "
                    "and Kubernetes cannot tell them apart). Rename one.",
                )
            )
        twin = resources.setdefault(topic.resource_name, topic)
        if twin.name != topic.name and other.name == topic.name:
            problems.append(
                Problem(
                    f"{where}.{'resource' if topic.resource else 'name'}",
                    f"{subject}: resource must be its own (got {topic.resource_name}, as topic {twin.name}). Change "
                    "one.",
                )
            )
        if not is_resource_name(topic.resource_name):
            problems.append(
                Problem(
                    f"{where}.name",
                    f"{subject}: name must make a name for Kubernetes (got {topic.resource_name!r}). "
                    "Begin and end every part between dots with a letter or digit.",
                )
            )
        problems += annotations(where, subject, topic.annotations)
        if on is not None:
            problems += _replicas(where, subject, topic, on)
    return problems


def _replicas(where: str, subject: str, topic: Topic, on: Cluster) -> list[Problem]:
    if on.external is not None:
        return [
            Problem(
                where,
                f"{subject}: topics must not be declared on an external cluster (somebody else runs it). Remove it.",
            )
        ]
    problems, brokers = [], on.broker_count
    if topic.replicas > brokers:
        problems.append(
            Problem(
                f"{where}.replicas",
                f"{subject}: replicas must be <= brokers of {on.name} (got {topic.replicas}, allowed 1..{brokers}). "
                "Lower replicas, or raise cluster.brokers.",
            )
        )
    minimum = topic.config.get(MIN_INSYNC, on.kafka_config[MIN_INSYNC])
    if not isinstance(minimum, int) or isinstance(minimum, bool) or minimum < 1:
        problems.append(
            Problem(
                f"{where}.config[{MIN_INSYNC}]",
                f"{subject}: {MIN_INSYNC} must be a whole number >= 1 (got {shown(minimum)}). Correct it.",
            )
        )
    elif not leaves_room(minimum, topic.replicas):
        problems.append(
            Problem(f"{where}.config[{MIN_INSYNC}]", room(subject, MIN_INSYNC, minimum, "replicas", topic.replicas))
        )
    return problems
