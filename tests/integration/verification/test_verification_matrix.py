"""Every fault injected into real topics of the pair: one run of the job finds each, to the record.

In every run without Spark, but for compacted topics, and on Spark some of each kind; in a nightly run every one on
both. What Spark makes of any of them is judged by tests/unit/spark too.
"""

import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from threading import Lock
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from ...support.fault_case import Expected, Place
from ...support.faults import cases
from ...support.written_topics import SIDES, START_MS, Bench, findings, own_name, record

SAMPLES_MAX = 20
WRITTEN_AT_ONCE = 8
SPARK_TASKS_AT_ONCE = "6"
CASES = cases()
CHECK_OF = {
    "lost": "records_complete",
    "no_overlap": "records_complete",
    "doubled": "records_unique",
    "altered": "records_intact",
    "wrong_partition": "records_intact",
    "out_of_order": "records_ordered",
    "foreign": "records_foreign",
}
# What a kind of fault or of log asks of Spark's own reading, decoding and joining.
ON_SPARK = (
    "aborted",
    "altered-headers",
    "before-1582-altered",
    "doubled-around-log-start",
    "equal",
)
ON_SPARK += ("expired-target", "foreign", "lost-after-transactions", "nanoseconds-lost")
ON_SPARK += ("partition-missing", "several-faults", "swapped", "undecodable-altered", "wrong-partition")
# Logs of a compacted topic that differ are compared by key, which starts Spark on either engine.
BY_KEY = ("compacted", "compacted-faults", "keyless-cleaned", "keyless-lost", "keyless-lost-uncleaned")
BY_KEY += ("undecodable-compacted",)
ENGINES = {"spark": "0", "alone": "1000000000"}  # above how many offsets Spark compares
PREFIXED = ("equal", "lost", "doubled-block", "altered-value", "swapped", "foreign-prefix", "wrong-partition")


@dataclass(frozen=True)
class Judged:
    """One run of the job over one topic a case."""

    topics: dict[str, str]
    result: subprocess.CompletedProcess[str]
    report: dict[str, Any]


def is_in_every_run(engine: str, name: str) -> bool:
    """Whether a case is judged on an engine by day too: each is on one of them at least."""
    return name in (*ON_SPARK, *BY_KEY) if engine == "spark" else name not in BY_KEY


@pytest.fixture(scope="module")
def topics(bench: Bench) -> dict[str, str]:
    """All cases, written under the same names on both sides."""

    busy = _Busy(bench)

    def written(name: str) -> str:
        topic = busy.topic(own_name(name), CASES[name].partitions, CASES[name].config)
        CASES[name].write(busy, topic)
        return topic

    with ThreadPoolExecutor(WRITTEN_AT_ONCE) as pool:  # each waits for connections, some for the brokers' cleaner
        return dict(zip(CASES, pool.map(written, CASES), strict=True))


@pytest.fixture(scope="module")
def judge(bench: Bench, topics: dict[str, str], nightly: bool) -> Callable[[str], Judged]:
    """Runs the job over the cases, once on each engine: with Spark, and without it as far as that can be."""

    @cache
    def run(engine: str) -> Judged:
        chosen = {name: topic for name, topic in topics.items() if nightly or is_in_every_run(engine, name)}
        # A hundred logs with little in them: what takes time is the waiting for brokers, which tasks do side by side.
        settings = {"RT_INVENTORY_SPARK_ABOVE": ENGINES[engine], "RT_INVENTORY_SPARK_CORES": SPARK_TASKS_AT_ONCE}
        result, report = bench.verify(list(chosen.values()), **settings)
        assert report, result.stderr
        assert ("starting Spark" in result.stderr) is bool(engine == "spark" or {*BY_KEY} & {*chosen}), result.stderr
        return Judged(chosen, result, report)

    return run


@pytest.fixture(params=list(ENGINES))
def judged(judge: Callable[[str], Judged], request: pytest.FixtureRequest) -> Judged:
    """What the run on an engine found."""
    return judge(request.param)


def tried() -> list[Any]:
    """Every case on both engines; by day on one of them, and some on both."""
    return [
        pytest.param(engine, name, marks=() if is_in_every_run(engine, name) else pytest.mark.nightly)
        for engine in ENGINES
        for name in sorted(CASES)
    ]


def found(report: dict[str, Any], topic: str) -> dict[tuple[str, int], dict[str, Any]]:
    """Findings of a topic by kind and partition, of which there may be one each."""
    every = [one for kind in findings(report, topic).values() for one in kind]
    by_place = {(one["kind"], one["partition"]): one for one in every}
    assert len(by_place) == len(every)
    return by_place


def first_places(wanted: Expected) -> list[list[Place]]:
    """What may be named: of a block that stands there twice in a row, the copy may begin at any of its records.

    Where it does depends on where the records' content cuts the log into chunks; nobody can tell either from the other.
    """
    first, block = wanted.places[:SAMPLES_MAX], len(wanted.places)
    if wanted.kind != "doubled":
        return [list(first)]
    return [
        [(here, there if at < begins else there - block) for at, (here, there) in enumerate(first)]
        for begins in range(len(first) + 1)
    ]


def assert_as_expected(finding: dict[str, Any], wanted: Expected) -> None:
    """The samples are the first of all places, each with both offsets; lost records are reported by offset range."""
    if wanted.number:
        return
    samples = finding["samples"]
    assert [(one["source_offset"], one["target_offset"]) for one in samples] in first_places(wanted)
    assert all(len(one["digest"]) == 16 for one in samples)
    if wanted.differs:
        assert samples[0]["differs"] == list(wanted.differs)
    if wanted.target_partition is not None:
        assert samples[0]["target_partition"] == wanted.target_partition
    if wanted.runs:
        runs = [(run["first"], run["last"], run["where"]) for run in finding["runs"]]
        assert runs == list(wanted.runs)
        assert sum(run["records"] for run in finding["runs"]) == wanted.count


@pytest.mark.parametrize(("judged", "name"), tried(), indirect=["judged"])
def test_what_was_done_to_a_topic_is_found_to_the_record_and_nothing_else(judged: Judged, name: str) -> None:
    got = found(judged.report, judged.topics[name])
    counts = {place: finding["count"] for place, finding in got.items()}
    assert counts == {(one.kind, one.partition): one.count for one in CASES[name].expected}
    for one in CASES[name].expected:
        assert_as_expected(got[one.kind, one.partition], one)


def test_each_check_counts_its_own_faults(judged: Judged) -> None:
    assert judged.result.returncode == 1
    evidence = {one["name"]: one["evidence"] for one in judged.report["checks"]}
    for check in set(CHECK_OF.values()):
        wanted = {
            (topic, one.partition, one.kind, one.count)
            for name, topic in judged.topics.items()
            for one in CASES[name].expected
            if CHECK_OF.get(one.kind) == check
        }
        got = {(one["topic"], one["partition"], one["kind"], one["count"]) for one in evidence[check]}
        assert got == wanted


def test_a_partition_that_the_target_does_not_have_fails_its_own_check(judged: Judged) -> None:
    check = {one["name"]: one for one in judged.report["checks"]}["partitions_match"]
    assert check["ok"] is False
    assert judged.topics["partition-missing"] in check["observed"]


def test_clean_topics_alone_pass(bench: Bench, topics: dict[str, str], nightly: bool) -> None:
    clean = [topic for name, topic in topics.items() if not CASES[name].expected and (nightly or name not in BY_KEY)]
    result, report = bench.verify(clean)
    assert result.returncode == 0, result.stderr + result.stdout
    assert not any(part["findings"] for part in report["partitions"])


def test_records_that_are_older_than_the_mirror_are_not_judged_where_it_is_said_from_where_it_counts(
    bench: Bench,
) -> None:
    topic = bench.topic(own_name("older"))
    bench.write("target", topic, [record(1000 + number, timestamp=START_MS - 60_000) for number in range(5)])
    for side in SIDES:
        bench.write(side, topic, [record(number) for number in range(20)])
    for where in ({"0": 5}, datetime.fromtimestamp((START_MS - 1000) / 1000, UTC).isoformat()):
        result, report = bench.verify([topic], {"counts_from": {topic: where}})
        assert result.returncode == 0, result.stderr + result.stdout
        assert report["partitions"][0]["findings"] == []
        assert report["partitions"][0]["target_start"] == 5
        assert any(topic in line and "0: 5" in line for line in report["warnings"])
    _, report = bench.verify([topic], {"counts_from": {topic: {"0": 4}}})
    assert found(report, topic)["foreign", 0]["count"] == 1


def test_faults_are_found_under_prefixed_names(bench: Bench) -> None:
    topics, renamed = {}, _Renamed(bench)
    for name in PREFIXED:
        case = CASES[name]
        topics[name] = renamed.topic(own_name(f"prefixed-{name}"), case.partitions, case.config, naming="prefixed")
        case.write(renamed, topics[name])
    _, report = bench.verify(list(topics.values()), {"naming": "prefixed"})
    for name in PREFIXED:
        got = {place: finding["count"] for place, finding in found(report, topics[name]).items()}
        assert got == {(one.kind, one.partition): one.count for one in CASES[name].expected}, name


class _Busy(Bench):
    """A bench with one producer and one admin client a side for all that it does: a login takes a broker's time."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.request, bench.environment, bench.folder)
        self._lock, self._producers, self._admins = Lock(), dict[str, Producer](), dict[str, AdminClient]()

    def _producer(self, side: str, more: Mapping[str, Any] | None = None) -> Producer:
        if more is not None:  # a transactional one, of one transaction
            return super()._producer(side, more)
        with self._lock:
            if side not in self._producers:
                self._producers[side] = super()._producer(side)
            return self._producers[side]

    def add_partitions(self, side: str, topic: str, total: int) -> None:
        """Give a topic more partitions, of which a producer that has written to it knows nothing."""
        super().add_partitions(side, topic, total)
        with self._lock:
            self._producers.pop(side, None)

    def admin(self, side: str) -> AdminClient:
        """The side's admin client."""
        with self._lock:
            if side not in self._admins:
                self._admins[side] = super().admin(side)
            return self._admins[side]


class _Renamed(_Busy):
    """A bench that writes the target's topics under their prefixed names."""

    def write(self, side: str, topic: str, records: Any, partition: int = 0) -> None:
        """Write records to one partition, in their order."""
        super().write(side, self.target_name(topic, "prefixed") if side == "target" else topic, records, partition)
