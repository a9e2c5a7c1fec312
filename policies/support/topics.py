"""Topics of a stack and of its source, and the internal topics of Kafka, MirrorMaker and Connect by their names.

MirrorMaker makes its own topics compacted and never copies them. Up to Kafka 3.9 it takes every name that ends in
`.internal` or `-internal` for internal, later only names like its own (Kafka's ReplicationPolicy). Connect's three are
those of its workers' configuration, or the operator's defaults.
"""

import re
from collections.abc import Iterator, Sequence

from policies.support.clusters import topic_name
from policies.support.mirror_makers import workers
from policies.support.policy_builder import Config, Option, Resource
from policies.support.resource_types import CONNECT, MIRROR, TOPIC, is_v1
from policies.support.traversal import Props, each, if_known, mapping, sequence

# The source's topics are resources of another stack, so that only the configuration can list them.
SOURCE_TOPICS: dict[str, Option] = {
    "sourceTopics": {
        "type": "array",
        "items": {"type": "string"},
        "default": [],
        "description": "names of topics on the source cluster",
    }
}


def source_topics(config: Config) -> list[str]:
    """Topics that the option `sourceTopics` lists."""
    return [str(topic) for topic in sequence(config["sourceTopics"])]


def declared_topics(resources: Sequence[Resource]) -> list[str]:
    """The stack's own topics, by their names in Kafka, once each."""

    def check(resource: Resource) -> Iterator[str]:
        yield topic_name(resource.props)

    return list(dict.fromkeys(each((resource for resource in resources if resource.type_ in TOPIC), check)))


def known_topics(resources: Sequence[Resource], config: Config) -> list[str]:
    """The stack's own topics and those that the configuration lists, once each."""
    return list(dict.fromkeys([*declared_topics(resources), *source_topics(config)]))


HEARTBEATS = "heartbeats"
_INTERNAL_ENDS = (".internal", "-internal")
# The mirror's separator, which may be empty, is part of the names since Kafka 3.1 (DefaultReplicationPolicy).
_OFFSETS = re.compile(r"mm2-offset-syncs(?P<a>[._-]?).+(?P=a)internal|.+?(?P<b>[._-]?)checkpoints(?P=b)internal")
_COPIES_INTERNAL_NAMES_SINCE = 4
_STORAGE = {"config": "configs", "offset": "offsets", "status": "status"}


def is_kafkas(topic: str) -> bool:
    """Whether Kafka keeps names like this for itself, as `__consumer_offsets`."""
    return topic.startswith("__")


def is_mirror_makers(topic: str, *, copies_internal_names: bool = False) -> bool:
    """Whether MirrorMaker takes a topic of this name for its own, by default whether one of any release does."""
    if topic == HEARTBEATS or topic.endswith(f".{HEARTBEATS}") or _OFFSETS.fullmatch(topic) is not None:
        return True
    return topic.endswith(_INTERNAL_ENDS) and (topic.startswith("mm2") or not copies_internal_names)


def copies_internal_names(mirror: Props) -> bool | None:
    """Whether a KafkaMirrorMaker2 copies topics that end in `internal` and are not MirrorMaker's; None: not known."""
    version = re.match(r"(\d+)\.", str(if_known(mapping(if_known(mirror, "spec")), "version") or ""))
    return int(version[1]) >= _COPIES_INTERNAL_NAMES_SINCE if version else None


def connect_storage(type_: str, props: Props) -> Iterator[str]:
    """Topics in which the workers of a KafkaMirrorMaker2 or KafkaConnect keep their state, those known already."""
    spec = mapping(props.get("spec"))
    if is_v1(type_):
        holder = mapping(spec.get("target")) if type_ in MIRROR else spec
        found = [if_known(holder, f"{kind}StorageTopic") for kind in _STORAGE]
    else:
        config = mapping(spec.get("config")) if type_ in CONNECT else workers(type_, props)[1]
        group = "connect-cluster" if type_ in CONNECT else "mirrormaker2-cluster"
        found = [if_known(config, f"{kind}.storage.topic", f"{group}-{end}") for kind, end in _STORAGE.items()]
    yield from (str(topic) for topic in found if topic is not None)
