"""Topics that Kafka, MirrorMaker and Connect keep for themselves, known by their names.

MirrorMaker makes its own topics compacted and never copies them. Up to Kafka 3.9 it takes every name that ends in
`.internal` or `-internal` for internal, later only names like its own (Kafka's ReplicationPolicy).
Connect's three are what its workers are told to use, or what the operator tells them where nothing is written.
"""

import re
from collections.abc import Iterator

from .kinds import CONNECT, MIRROR, is_v1
from .mirror_makers import workers
from .values import Props, if_known, mapping

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
