"""Claims are written as MirrorMaker writes them: what reads its topics reads ours."""

from collections.abc import Iterator
from typing import Any, Literal

import pytest

from contract.verification_request import ClusterConfig, Mirror, OffsetSyncs
from kafka import checkpoints
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import mirror_offsets
from ops.recovery.mirror_offsets import OffsetMapping

MIRROR = Mirror(
    name="mm2",
    source_alias="es-src",
    target_alias="es-tgt",
    topics=("items",),
    offset_syncs_topic=OffsetSyncs(name="mm2-offset-syncs.es-src.internal", location="target"),
)


class Brokers:
    """A cluster that takes records, or refuses them with a word."""

    def __init__(self, refusal: str | None = None) -> None:
        self.side = ClusterConfig(role="target", alias="es-tgt", client_config={"sasl.username": "mirror"})
        self.records: dict[str, list[tuple[bytes | None, bytes | None]]] = {}
        self.producers = 0
        self.polls = 0
        self._refusal = refusal

    def producer(self, config: Any) -> "Brokers":
        self.producers += 1
        return self

    def poll(self, _timeout_s: float) -> int:
        self.polls += 1
        return 0

    def produce(self, topic: str, key: bytes, value: bytes, on_delivery: Any) -> None:
        self.records.setdefault(topic, []).append((key, value))
        on_delivery(_Error(self._refusal) if self._refusal else None, None)

    def flush(self, _timeout_s: float) -> int:
        return 0


class _Error:
    def __init__(self, text: str) -> None:
        self._text = text

    def str(self) -> str:
        return self._text


def test_what_is_written_is_read_as_mirror_maker_would() -> None:
    target: Any = Brokers()
    known = [
        OffsetMapping(topic_partition=("store.items", 3), upstream=653, downstream=369),
        OffsetMapping(topic_partition=("store.items", 3), upstream=600, downstream=316, group="orders"),
    ]
    mirror_offsets.write(known, MIRROR, Brokers(), target)  # type: ignore[arg-type]
    syncs = checkpoints.syncs(target.records["mm2-offset-syncs.es-src.internal"])
    read = checkpoints.checkpoints(target.records["es-src.checkpoints.internal"])
    assert [(one.upstream, one.downstream) for one in syncs["store.items", 3].newest] == [(653, 369)]
    assert [(one.upstream, one.downstream) for one in read["orders", "store.items", 3].newest] == [(600, 316)]


def test_however_much_corresponds_each_topic_is_written_at_once() -> None:
    source: Any = Brokers()
    target: Any = Brokers()
    known = [
        OffsetMapping(topic_partition=("items", number), upstream=1, downstream=1, group=group)
        for number in range(50)
        for group in (None, "orders")
    ]
    mirror_offsets.write(known, MIRROR, source, target)
    assert (source.producers, target.producers, target.polls) == (0, 2, 100)
    assert {topic: len(records) for topic, records in target.records.items()} == {
        "mm2-offset-syncs.es-src.internal": 50,
        "es-src.checkpoints.internal": 50,
    }
    mirror_offsets.write([], MIRROR, source, target)
    assert target.producers == 2


def test_more_than_the_client_can_hold_is_written_as_the_cluster_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client holds 100,000 records that are not written yet; a million groups and partitions have as many."""
    target: Any = Brokers()
    held, plain = list[bytes](), target.produce

    def produce(topic: str, key: bytes, value: bytes, on_delivery: Any) -> None:
        if len(held) == 10:
            raise BufferError("Local: Queue full")
        held.append(key)
        plain(topic, key, value, on_delivery)

    def poll(timeout_s: float) -> int:
        number = len(held) if timeout_s else 0
        del held[:number]
        return number

    monkeypatch.setattr(target, "produce", produce)
    monkeypatch.setattr(target, "poll", poll)
    taken: list[int] = []

    def mappings() -> Iterator[OffsetMapping]:
        for number in range(100):
            taken.append(number)
            yield OffsetMapping(topic_partition=TopicPartition("items", number), upstream=1, downstream=1, group="g")
            assert sum(map(len, target.records.values())) == len(taken), "each is taken when it is written"

    assert mirror_offsets.write(mappings(), MIRROR, target, target) == 100
    monkeypatch.setattr(target, "poll", lambda _timeout_s: 0)
    with pytest.raises(OpsError, match=r"must accept the offset mappings \(got no answer\)"):
        mirror_offsets.write(mappings(), MIRROR, target, target)


def test_of_many_mappings_none_is_written_without_permission() -> None:
    target: Any = Brokers()
    left = iter(range(2))

    def lost() -> None:
        if next(left, None) is None:
            raise OpsError("no longer")

    many = (
        OffsetMapping(topic_partition=TopicPartition("items", number), upstream=1, downstream=1, group="g")
        for number in range(5000)
    )
    with pytest.raises(OpsError, match="no longer"):
        mirror_offsets.write(many, MIRROR, target, target, lost)
    assert sum(map(len, target.records.values())) == 2 * mirror_offsets.PERMISSION_EVERY


def test_a_partition_that_is_on_neither_side_yet_begins_at_nothing() -> None:
    found = mirror_offsets.of_partitions([("items", 1)], ({}, {}), ({}, {}))
    assert [(one.upstream, one.downstream) for one in found] == [(-1, -1), (0, 0), (0, 0)]


def test_only_partitions_that_were_refilled_get_new_mappings() -> None:
    ends = {("items", 0): 10, ("items", 1): 20}
    found = mirror_offsets.of_partitions(
        [("items", 1)], ({("items", 1): 15}, ends), ({("items", 1): 2}, {("items", 1): 7})
    )
    # The first one is older than all that MirrorMaker knows: it forgets that.
    assert [(one.upstream, one.downstream) for one in found] == [(-1, 1), (15, 2), (20, 7)]
    assert {one.topic_partition for one in found} == {("items", 1)}
    source = {"orders": {("items", 0): 4, ("items", 1): 15}, "gone": {("items", 1): 1}}
    target = {"orders": {("items", 0): 4, ("items", 1): 2}}
    assert list(mirror_offsets.of_groups([("items", 1)], source, target)) == [
        OffsetMapping(topic_partition=("items", 1), upstream=15, downstream=2, group="orders")
    ]


def test_a_refusal_names_the_topic_the_user_and_the_right() -> None:
    target: Any = Brokers("Broker: Topic authorization failed")
    with pytest.raises(OpsError, match=r"mm2-offset-syncs\.es-src\.internal .*user mirror Write"):
        mirror_offsets.write(
            [OffsetMapping(topic_partition=("items", 0), upstream=1, downstream=1)], MIRROR, Brokers(), target
        )  # type: ignore[arg-type]


def test_no_answer_in_time_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    target: Any = Brokers()
    monkeypatch.setattr(Brokers, "flush", lambda *_: 1)
    with pytest.raises(OpsError, match=r"must accept the offset mappings \(got no answer\)"):
        mirror_offsets.write(
            [OffsetMapping(topic_partition=("items", 0), upstream=1, downstream=1)], MIRROR, target, target
        )


@pytest.mark.parametrize(("location", "at_source"), [("source", 1), ("target", 0), (None, 0)])
def test_what_corresponds_is_written_where_the_mirror_keeps_it(
    location: Literal["source", "target"] | None, at_source: int
) -> None:
    source: Any = Brokers()
    target: Any = Brokers()
    syncs = None if location is None else OffsetSyncs(name="syncs", location=location)
    mirror_offsets.write(
        [OffsetMapping(topic_partition=("items", 0), upstream=1, downstream=1)],
        MIRROR.model_copy(update={"offset_syncs_topic": syncs}),
        source,
        target,
    )
    assert (len(source.records), len(target.records)) == (at_source, int(location == "target"))
