"""What MirrorMaker remembers of corresponding offsets, corrected where a partition was filled anew at the source.

Records that come back whole get offsets at the source that the mirror's old claims say other things about: a group
there would be put too far on the target. One true claim of each kind makes the old ones void, for MirrorMaker goes by
the last. Formats: OffsetSync and Checkpoint of connect-mirror. Owns the claims, not where the groups stand.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ops.errors import OpsError
from spark.clusters.cluster import Cluster, Partition
from spark.request.model import Mirror

WRITTEN_WITHIN_S = 20.0
_CHECKPOINT_VERSION = 0


@dataclass(frozen=True, kw_only=True)
class Claim:
    """That the next record at `upstream` of a source partition is the next at `downstream` of its copy.

    Of the partition itself, or of one group's position in it.
    """

    place: Partition
    upstream: int
    downstream: int
    group: str | None = None


def of_partitions(
    places: Iterable[Partition],
    source: tuple[Mapping[Partition, int], Mapping[Partition, int]],
    target: tuple[Mapping[Partition, int], Mapping[Partition, int]],
) -> list[Claim]:
    """Return that starts and ends of partitions correspond, given both of each side: they hold the same records.

    A first claim in front of all others rewinds: MirrorMaker forgets what it knew (OffsetSyncStore.updateSyncArray). It
    translates to the copy's start, as the second one does for what follows.
    """
    found = []
    for place in sorted(places):
        ends = source[1].get(place, 0), target[1].get(place, 0)
        starts = source[0].get(place, 0), target[0].get(place, 0)
        pairs = ((-1, starts[1] - 1), starts, ends)
        found += [Claim(place=place, upstream=upstream, downstream=downstream) for upstream, downstream in pairs]
    return found


def of_groups(
    places: Iterable[Partition],
    source: Mapping[str, Mapping[Partition, int]],
    target: Mapping[str, Mapping[Partition, int]],
) -> list[Claim]:
    """Return that each group's positions correspond."""
    wanted = set(places)
    return [
        Claim(place=place, upstream=upstream, downstream=target[group][place], group=group)
        for group, positions in sorted(source.items())
        for place, upstream in sorted(positions.items())
        if place in wanted and place in target.get(group, {})
    ]


def write(claims: Iterable[Claim], mirror: Mirror, source: Cluster, target: Cluster) -> None:
    """Append the claims to MirrorMaker's own topics; raises OpsError. The mirror must be stopped. Safe to do again."""
    syncs = mirror.offset_syncs
    found = list(claims)
    of_groups = [_checkpoint(claim, mirror) for claim in found if claim.group is not None]
    _append(target, mirror.checkpoints_topic, of_groups)
    if syncs is not None:
        of_places = [_sync(claim) for claim in found if claim.group is None]
        _append(source if syncs.location == "source" else target, syncs.name, of_places)


def _sync(claim: Claim) -> tuple[bytes, bytes]:
    topic, partition = claim.place
    return _string(topic) + struct.pack(">i", partition), struct.pack(">qq", claim.upstream, claim.downstream)


def _checkpoint(claim: Claim, mirror: Mirror) -> tuple[bytes, bytes]:
    topic, partition = claim.place
    key = _string(str(claim.group)) + _string(mirror.target_topic(topic)) + struct.pack(">i", partition)
    value = struct.pack(">hqq", _CHECKPOINT_VERSION, claim.upstream, claim.downstream) + _string("")
    return key, value


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _append(side: Cluster, topic: str, records: Sequence[tuple[bytes, bytes]]) -> None:
    if not records:
        return
    problems: list[str] = []
    producer = side.producer({"message.timeout.ms": int(WRITTEN_WITHIN_S * 1000)})
    for key, value in records:
        producer.produce(
            topic, key=key, value=value, on_delivery=lambda error, _: problems.append(error.str()) if error else None
        )
        producer.poll(0)
    if producer.flush(WRITTEN_WITHIN_S + 5) or problems:
        raise OpsError(
            f"cluster {side.side.alias}: topic {topic} must take what corresponds (got "
            f"{problems[0] if problems else 'no answer'}). Give user {side.side.user} Write on it and run this again."
        )
