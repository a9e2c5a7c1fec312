"""Partitions that differ in very many records: what is only counted is counted right."""

import random
from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from kafka.group_positions import GroupPosition
from spark.comparison import bulk, compare
from spark.comparison.bulk import Bulk
from spark.comparison.compare import Compared, Comparison
from spark.comparison.findings import PartitionResult, Run
from spark.comparison.retention import expired_meanwhile
from spark.progress import Progress

from ...support import expired_logs as expiry_cases
from ...support import oracle
from ...support.compared_logs import TOPIC
from ...support.expired_logs import drawn, salted
from ...support.oracle import Log, Logs, Record
from ...support.spark_logs import reader


def log(letters: str, start: int = 0) -> Log:
    """Two different letters make records that are no altered one of each other."""
    return [(start + n, Record(None, one.encode(), (), ord(one))) for n, one in enumerate(letters) if one != "."]


CASES = [
    Logs(source=log("ab..c"), aborted=log("xy", 2), target=log("abxyc"), cut=5),
    Logs(source=log("a.bc"), aborted=log("a", 1), target=log("aaabcz"), cut=4),
    Logs(source=log("abcdefgh"), target=log("cdeh"), cut=8),
    Logs(source=log("rstuvw", 2), target=log("pqrstuvw"), cut=8, source_start=2),
    Logs(source=[], target=log("abc"), cut=3, source_start=3),
    Logs(source=log("ab"), pending=log("cd", 2), target=log("abbcd"), cut=2),
]


def test_what_is_counted_agrees_with_the_oracle(results: dict[int, PartitionResult]) -> None:
    for number, truth in oracle.judge(dict(enumerate(CASES))).items():
        found = {one.kind: one.count for one in results[number].findings}
        assert dict(sorted(found.items())) == truth.counts(), CASES[number]
        assert results[number].compared == truth.compared


def test_only_what_may_be_something_else_is_undecided(results: dict[int, PartitionResult]) -> None:
    assert [bool(results[number].undecided) for number in results] == [False, True, True, False, False, True]


def test_counted_records_carry_where_they_stand(results: dict[int, PartitionResult]) -> None:
    (lost,) = results[2].findings
    assert lost.runs == (Run(0, 1, 2, "head"), Run(5, 5, 1), Run(6, 6, 1))
    assert [one.source_offset for one in lost.samples] == [0, 1, 5, 6]
    (aborted,) = results[0].findings
    assert aborted.runs == (Run(2, 2, 1), Run(3, 3, 1))


def test_what_retention_deleted_meanwhile_is_excused_where_it_was_counted(results: dict[int, PartitionResult]) -> None:
    tp = ("t", 2)
    (found,) = expired_meanwhile([results[2]], {tp: 0}, {tp: 2})
    assert {one.kind: one.count for one in found.findings} == {"lost": 2, "expired_at_target": 2}


def many(*logs: Logs) -> dict[int, Logs]:
    return {number: salted(one, number) for number, one in enumerate(logs)}


def counts(result: PartitionResult) -> dict[str, int]:
    return {one.kind: one.count for one in sorted(result.findings, key=lambda one: one.kind)}


DICE = random.Random(5)  # noqa: S311 - test data, not a secret
NAMES = (  # a partition whose records are named costs several jobs: each kind of case once
    "smallest",
    "the log start inside the repeated block",
    "from the beginning after it had begun at latest",
    "latest, and a log start of 1",
    "a source that was emptied",
    "lost, while the target still holds what is older",
    "aborted at the log start",
    "lost, while the target still holds an aborted record that is older",
    "all stamped, the source has removed some",
    "stamped up to a change of the topic",
    "a mirror that stands",
)
LETTERS = "".join(chr(0x4E00 + n) for n in range(40))
LACKING = "".join(letter for n, letter in enumerate(LETTERS) if n not in (20, 21, 25, 39))
SCATTERED = Logs(source=log(LETTERS), target=log(LACKING), cut=len(LETTERS))
NAMED = many(*(expiry_cases.CASES[name].logs for name in NAMES), *(drawn(DICE) for _ in range(6)))
POSITIONS = [
    GroupPosition(
        group=f"g{turn}",
        topic=TOPIC,
        partition=number,
        committed=DICE.randint(0, logs.cut),
        synced=DICE.randint(0, logs.target_start + len(logs.target)),
    )
    for number, logs in NAMED.items()
    for turn in range(3)
]
BEFORE_B = GroupPosition(group="g", topic=TOPIC, partition=NAMES.index("smallest"), committed=1, synced=1)
PLAIN = {**expiry_cases.DOUBLED, **expiry_cases.BOUNDED}
COUNTED = many(*(one.logs for one in PLAIN.values()), *(drawn(DICE, stamps=False) for _ in range(30)))


@pytest.fixture(scope="module")
def counted(spark: SparkSession) -> dict[int, PartitionResult]:
    """What is found in CASES and, behind them, in COUNTED if no record is brought to the driver."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk, "NAMED_MAX", -1)
        every = [*CASES, *COUNTED.values()]
        held, found = reader(spark, patch, dict(enumerate(every)))
        Bulk(held, found).compare(list(found), set(found), [])
    return {result.partition: result for result in found.values()}


@pytest.fixture
def results(counted: dict[int, PartitionResult]) -> dict[int, PartitionResult]:
    """What is found in CASES."""
    return {number: counted[number] for number in range(len(CASES))}


@pytest.fixture(scope="module")
def named(spark: SparkSession) -> Compared:
    """What is found in NAMED if Spark compares every partition that differs, and brings the offending records back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "ROWS_MAX", -1)
        held, _ = reader(spark, patch, NAMED)
        return Comparison(held, lambda: held).run([*POSITIONS, BEFORE_B], Progress())


def test_spark_counts_as_expired_what_a_log_start_proves_and_no_more(named: Compared) -> None:
    truths = oracle.judge(NAMED)
    for result in named.partitions:
        truth = truths[result.partition]
        assert (counts(result), result.compared) == (truth.counts(), truth.compared), NAMED[result.partition]
    for number, name in enumerate(NAMES):
        assert counts(named.partitions[number]) == dict(sorted(expiry_cases.CASES[name].found.items())), name


def test_retention_that_goes_on_explains_no_lost_record_behind_what_it_deleted(spark: SparkSession) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "ROWS_MAX", -1)
        held, _ = reader(spark, patch, {0: SCATTERED})
        (result,) = Comparison(held, lambda: held).run([], Progress()).partitions
    (lost,) = result.findings
    assert lost.runs == (Run(20, 21, 2, "gap"), Run(25, 25, 1, "gap"), Run(39, 39, 1, "tail"))
    for now, wanted in ((10, {"lost": 4}), (21, {"expired_at_target": 1, "lost": 3})):
        (found,) = expired_meanwhile([result], {(TOPIC, 0): 0}, {(TOPIC, 0): now})
        assert counts(found) == wanted


def test_positions_are_exact_whatever_has_expired_or_is_doubled(named: Compared) -> None:
    for one in named.groups:
        assert one.synced is not None
        truth = oracle.position(NAMED[one.partition], one.committed, one.synced)
        assert (one.skipped, one.repeated, one.lowest) == (truth.skipped, truth.repeated, truth.lowest), one
        assert one.judged


def test_a_group_may_stand_at_each_copy_of_a_record_that_is_doubled_in_front_of_the_log_start(named: Compared) -> None:
    """The source holds b at offset 1, its log start, the target a, b, b: neither copy of b has expired."""
    (found,) = [one for one in named.groups if one.group == BEFORE_B.group]
    assert (found.lowest, found.highest, found.skipped, found.repeated) == (1, 2, 0, 0)


def test_spark_counts_the_same_if_it_brings_no_record_back(counted: dict[int, PartitionResult]) -> None:
    for number, truth in oracle.judge(COUNTED).items():
        result = counted[len(CASES) + number]
        assert (counts(result), result.compared) == (_counted(truth.counts()), truth.compared), COUNTED[number]


def _counted(truth: Mapping[str, int]) -> dict[str, int]:
    """Without what is reported of records that are named only."""
    return {kind: count for kind, count in truth.items() if kind != "no_overlap"}
