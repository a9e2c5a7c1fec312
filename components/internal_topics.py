"""The topics that declared mirrors keep for themselves, as topics to be made before the mirrors start."""

from settings import internal_topics as names
from settings.model import Scalar
from settings.stack import Stack
from settings.topics import Topic

_COMPACTED: dict[str, Scalar] = {"cleanup.policy": "compact"}


def internal_topics(settings: Stack) -> list[Topic]:
    """Return the internal topics on this stack's cluster, each once, for mirrors with `internalTopics: declared`."""
    found: dict[str, Topic] = {}
    for mirror in settings.mirrors:
        if mirror.internal_topics != "declared":
            continue
        for topic in names.all_of(mirror, settings.mirror_version(mirror)):
            if topic.location == "target":
                earlier = found[topic.name].annotations if topic.name in found else {}
                found[topic.name] = Topic(
                    name=topic.name,
                    partitions=topic.partitions,
                    replicas=mirror.replication_factor,
                    config=_COMPACTED,
                    annotations={**earlier, **mirror.annotations},
                )
    return list(found.values())
