"""From where a run goes on: what is checked first, which anchor is taken, and what the next run is reported."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.verification_request import ClusterConfig, Limits, Mirror, Request
from kafka.group_positions import GroupPosition
from kafka.topic_partition import TopicPartition
from spark.comparison.findings import Finding, PartitionResult
from spark.comparison.offset_ranges import OffsetRange
from spark.state import Anchor, Entry, State, TailRecord, resume
from spark.state import ledger as ledgers
from spark.state.ledger import Ledger, joined, name_of, needed
from spark.state.resume import CurrentLogs, Needed, Resumed
from spark.state.store import FolderStore, StoreError

from ...support.compared_logs import Sizes, found_without_spark
from ...support.expired_logs import SMALLEST
from ...support.verification_states import IDENTITY, entry

PLACE = TopicPartition("items", 0)
EXTENT = OffsetRange(
    topic="items",
    partition=0,
    source_start=0,
    cut=30,
    source_end=30,
    target_topic="items",
    target_start=0,
    target_end=40,
)
ENTRY = replace(
    entry(anchors=[(0, 5), (8, 13), (10, 15)]),
    source_tail=((8, "x"), (9, "y")),
    target_tail=((13, "x"), (14, "y")),
)
LOGS = CurrentLogs(
    source_ids={"items": "s1"},
    target_ids={"items": "t1"},
    source_tails={PLACE: ENTRY.source_tail},
    target_tails={PLACE: ENTRY.target_tail},
)


def test_an_entry_that_its_logs_still_hold_is_beyond_doubt() -> None:
    assert resume.doubt(ENTRY, EXTENT, LOGS) is None
    assert resume.changed(ENTRY, EXTENT, LOGS) is None


@pytest.mark.parametrize(
    ("offset_range", "logs", "why"),
    [
        ({}, {"source_ids": {"items": "s2"}}, "the topic was deleted and created again at the source"),
        ({}, {"target_ids": {"items": "t2"}}, "the topic was deleted and created again at the target"),
        ({}, {"source_ids": {}}, "the source does not report the topic's id"),
        ({"cut": 9}, {}, "the source ends at offset 9, before the verified offset 10: records were cut off"),
        ({"target_end": 14}, {}, "the target ends at offset 14, before the verified offset 15: records were cut off"),
        ({"source_start": 9}, {}, "the source's log starts at offset 9: the last verified records are gone"),
        ({"target_start": 14}, {}, "the target's log starts at offset 14: the last verified records are gone"),
    ],
)
def test_each_change_of_a_log_is_reported(offset_range: dict[str, Any], logs: dict[str, Any], why: str) -> None:
    assert resume.doubt(ENTRY, replace(EXTENT, **offset_range), replace(LOGS, **logs)) == why


@pytest.mark.parametrize(
    ("side", "now", "why"),
    [
        ("source", [(8, "x"), (9, "z")], "the source holds another record at the verified offset 9"),
        ("source", [(8, "x")], "the source holds another record at the verified offset 9"),
        ("source", None, "the last verified records of the source could not be read"),
        ("target", [(13, "w"), (14, "y")], "the target holds another record at the verified offset 13"),
        ("target", [], "the target holds another record at the verified offset 13"),
        ("target", None, "the last verified records of the target could not be read"),
    ],
)
def test_each_change_of_a_verified_record_is_reported(side: str, now: list[TailRecord] | None, why: str) -> None:
    logs = replace(LOGS, **{f"{side}_tails": {} if now is None else {PLACE: now}})
    said = resume.changed(ENTRY, EXTENT, logs)
    assert said is not None
    assert said.startswith(why)


@pytest.mark.parametrize(
    ("needs", "found"),
    [
        (Needed(), Resumed(8, 13)),
        (Needed(source=10, target=15), Resumed(8, 13)),
        (Needed(source=9), Resumed(0, 5)),
        (Needed(source=10, target=14), Resumed(0, 5)),
        (Needed(source=7), "a group's position lies before every verified offset that the state remembers"),
    ],
)
def test_what_groups_need_is_inside_what_is_compared(needs: Needed, found: Resumed | str) -> None:
    assert resume.start(ENTRY, EXTENT, needs) == found


def test_an_anchor_that_a_log_does_not_hold_any_more_is_not_taken() -> None:
    assert resume.start(ENTRY, replace(EXTENT, target_start=6), Needed()) == Resumed(8, 13)
    assert "no earlier verified offset" in str(resume.start(ENTRY, replace(EXTENT, target_start=14), Needed()))


offsets = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=30)


@given(offsets, st.integers(0, 300), st.integers(0, 300), st.integers(0, 20))
def test_the_start_is_before_what_is_needed_and_the_latest_but_one(
    taken: list[tuple[int, int]], source: int, target: int, log_start: int
) -> None:
    anchors = [(sum(one for one, _ in taken[:n]), sum(two for _, two in taken[:n])) for n in range(1, len(taken) + 1)]
    offset_range = replace(EXTENT, source_start=log_start, cut=1000, target_end=1000)
    found = resume.start(entry(anchors=anchors), offset_range, Needed(source, target))
    usable = [one for one in anchors if log_start <= one[0] <= source and one[1] <= target]
    assert found == Resumed(*usable[-2]) if len(usable) > 1 else isinstance(found, str)


digests = st.lists(st.sampled_from("abcde"), max_size=8)


@given(digests, st.lists(st.sampled_from("ab-"), max_size=8))
def test_anchors_among_the_last_records_part_equal_logs(records: list[str], aborted: list[str]) -> None:
    """The target holds copies of aborted records (here `-`) between those of the source."""
    copies = [*records]
    for number, one in enumerate(aborted):
        if one == "-":
            copies.insert(min(2 * number, len(copies)), "-")
    source = [(2 * n, digest) for n, digest in enumerate(records)]  # markers in between
    target = list(enumerate(copies))
    verified = (2 * len(records), len(copies))
    found = resume.anchors(verified, source, target)
    assert found[-1] == verified
    assert len(found) == len(records) + 1
    for here, there in found:
        assert [digest for offset, digest in source if offset < here] == [
            digest for offset, digest in target if offset < there and digest != "-"
        ]


def test_newer_anchors_count_where_older_ones_disagree() -> None:
    assert joined([(1, 1), (5, 9), (6, 6)], [(6, 7), (8, 8)]) == [(1, 1), (6, 7), (8, 8)]


def test_the_lowest_position_of_all_groups_is_needed() -> None:
    positions = [
        GroupPosition(group=group, topic="items", partition=0, committed=committed, synced=synced)
        for group, committed, synced in (("a", 9, 30), ("b", 7, None), ("c", 20, 12))
    ]
    assert needed(positions) == {PLACE: Needed(7, 12)}


def test_the_documents_name_reports_clusters_apart_and_fits_a_file() -> None:
    names = {name_of("mm/2 ü", IDENTITY), name_of("mm2", replace(IDENTITY, source_cluster_id="x"))}
    assert len(names | {name_of("mm2", IDENTITY)}) == 3
    assert all("/" not in name and name.isascii() for name in names)
    assert name_of("mm2", replace(IDENTITY, naming="prefixed")) == name_of("mm2", IDENTITY)


class Cluster:
    """Topics of one side: ids, and the records of partition 0."""

    def __init__(self, side: str) -> None:
        self.side = side
        self.id: str | None = f"{side}-cluster"
        self.ids = {"items": f"{side[0]}1"}
        self.log: list[TailRecord] = [(offset, f"d{offset}") for offset in range(30)]


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> dict[str, Cluster]:
    def records(cluster: Cluster, ranges: Mapping[Any, tuple[int, int]], isolation: str) -> dict[Any, Any]:
        return {tp: tuple(one for one in cluster.log if first <= one[0] < end) for tp, (first, end) in ranges.items()}

    def last_before(cluster: Cluster, ends: Mapping[Any, int], starts: Any, isolation: str) -> dict[Any, Any]:
        return {tp: tuple(one for one in cluster.log if one[0] < end)[-16:] for tp, end in ends.items()}

    monkeypatch.setattr(ledgers, "cluster_id", lambda cluster: cluster.id)
    monkeypatch.setattr(ledgers, "topic_ids", lambda cluster, names: {n: cluster.ids[n] for n in names})
    monkeypatch.setattr(ledgers.tails, "records", records)
    monkeypatch.setattr(ledgers.tails, "last_before", last_before)
    return {side: Cluster(side) for side in ("source", "target")}


def request(**limits: Any) -> Request:
    sides = {side: ClusterConfig(role=side, alias=f"es-{side}", client_config={}) for side in ("source", "target")}
    mirror = Mirror(name="mm2", source_alias="es-src", target_alias="es-tgt", topics=("items",))
    return Request(**sides, mirror=mirror, limits=Limits(**limits))


def result(cut: int, *kinds: str, anchors: Sequence[Anchor] = ()) -> PartitionResult:
    found = [Finding(kind, "items", 0, 1) for kind in kinds]
    return PartitionResult("items", 0, 0, cut, 0, cut, findings=found, anchors=list(anchors or [(cut, cut)]))


def offset_range(end: int, **more: Any) -> OffsetRange:
    return replace(EXTENT, cut=end, source_end=end, target_end=end, **more)


@pytest.fixture
def run(clusters: dict[str, Cluster], tmp_path: Any) -> Any:
    """One run: what it is reported to compare, and what it tells."""

    def once(end: int, *kinds: str, asked: Request | None = None, **more: Any) -> tuple[OffsetRange, dict[str, Any]]:
        made = Ledger(FolderStore(tmp_path), asked or request(), clusters["source"], clusters["target"])  # type: ignore[arg-type]
        offset_ranges = [offset_range(end, **more)]
        (moved,) = made.forward(offset_ranges, [], lambda text: None)
        found = result(end, *kinds)
        made.again([found])
        made.keep(offset_ranges, [found], lambda text: None)
        return moved, made.document()

    return once


def test_a_run_goes_on_from_what_the_one_before_has_verified(run: Any) -> None:
    first, reported = run(20)
    assert not first.resumed
    assert (reported["loaded"], reported["saved"]) == (False, True)
    second, reported = run(30)
    assert (second.resumed, second.source_start, second.target_start) == (True, 19, 19)
    assert reported["resumed_partitions"] == [
        {"topic": "items", "partition": 0, "source_offset": 19, "target_offset": 19}
    ]
    assert run(30)[0].source_start == 29


@pytest.mark.parametrize("kind", ["lost", "doubled", "altered", "foreign", "out_of_order", "wrong_partition"])
def test_a_partition_with_a_fault_does_not_go_on(run: Any, kind: str) -> None:
    run(10)
    run(20, kind)
    assert run(30)[0].source_start == 9


def test_a_record_that_is_doubled_in_front_of_a_log_start_is_not_moved_past(run: Any) -> None:
    """The source has removed a and holds b, the target holds a, b, b."""
    (compared,), _ = found_without_spark({0: SMALLEST}, Sizes())
    run(10)
    run(20, *(one.kind for one in compared.findings))
    assert run(30)[0].source_start == 9


@pytest.mark.parametrize("kind", ["expired_at_source", "expired_at_target", "aborted"])
def test_what_fails_nothing_holds_nothing_up(run: Any, kind: str) -> None:
    run(20, kind)
    assert run(30)[0].source_start == 19


def test_findings_of_which_only_the_whole_log_reports_what_they_are_are_compared_whole(run: Any) -> None:
    run(10)
    _, reported = run(20, "foreign")
    assert not reported["resumed_partitions"]
    assert "compared whole" in reported["full_partitions"][0]["reason"]
    assert run(20, "lost")[1]["resumed_partitions"]


def test_a_log_that_was_cut_off_is_compared_whole_and_its_shorter_state_kept(
    run: Any, clusters: dict[str, Cluster]
) -> None:
    run(30)
    for cluster in clusters.values():
        cluster.log = [(offset, f"new{offset}") for offset in range(20)]
    moved, reported = run(20)
    assert not moved.resumed
    assert "records were cut off" in reported["full_partitions"][0]["reason"]
    assert run(20)[0].resumed


def test_a_topic_made_again_while_the_run_is_on_is_not_kept(
    run: Any, clusters: dict[str, Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = iter(["s1", "s2"])
    monkeypatch.setattr(
        ledgers, "topic_ids", lambda cluster, names: {n: next(ids) if cluster.side == "source" else "t1" for n in names}
    )
    run(20)
    monkeypatch.setattr(ledgers, "topic_ids", lambda cluster, names: {n: cluster.ids[n] for n in names})
    assert run(20)[1]["full_partitions"][0]["reason"] == "no earlier run has verified this partition"


def test_a_compacted_topic_never_goes_on(run: Any) -> None:
    run(20, cleaned_at_source=True)
    moved, reported = run(20, cleaned_at_target=True)
    assert not moved.resumed
    assert reported["full_partitions"][0]["reason"] == ledgers.COMPACTED


def test_a_state_made_under_other_settings_is_reported_and_replaced(run: Any) -> None:
    run(20)
    other = request(isolation="read_uncommitted")
    _, reported = run(20, asked=other)
    said = "the state is about something else (isolation read_uncommitted instead of read_committed)"
    assert reported["full_partitions"][0]["reason"] == said
    assert run(20, asked=other)[0].resumed


def test_a_cluster_without_an_id_is_reported_and_nothing_is_kept(run: Any, clusters: dict[str, Cluster]) -> None:
    clusters["target"].id = None
    moved, reported = run(20)
    assert not moved.resumed
    assert reported["problems"] == ["a cluster does not report its id"]
    assert reported["saved"] is False


def test_a_store_that_fails_is_reported_and_raises_nothing(
    clusters: dict[str, Cluster], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path)

    def fail(*arguments: Any) -> None:
        raise StoreError("the store is shut")

    monkeypatch.setattr(store, "load", fail)
    monkeypatch.setattr(store, "save", fail)
    said: list[str] = []
    made = Ledger(store, request(), clusters["source"], clusters["target"])  # type: ignore[arg-type]
    made.forward([offset_range(20)], [], said.append)
    made.keep([offset_range(20)], [result(20)], said.append)
    assert said == ["state: the store is shut, everything is compared", "state: not saved, the store is shut"]
    assert made.document()["full_partitions"][0]["reason"] == "the store is shut"


def test_entries_of_topics_that_are_gone_go_too(run: Any, clusters: dict[str, Cluster], tmp_path: Any) -> None:
    run(20)
    store, (file,) = FolderStore(tmp_path), list(tmp_path.glob("*.json"))

    def add(stored: State | None) -> State:
        assert stored is not None
        gone: Entry = entry("gone")
        return replace(stored, entries={**stored.entries, gone.topic_partition: gone})

    store.save(file.name, add)
    run(25)
    found = store.load(file.name)
    assert found is not None
    assert set(found.entries) == {PLACE}
    assert found.identity == IDENTITY
