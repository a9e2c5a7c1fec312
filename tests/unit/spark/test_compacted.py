"""Compacted logs against the oracle: what compaction and retention removed on either side is no fault."""

import random
from collections.abc import Mapping, Sequence
from itertools import chain

import pytest
from pyspark.sql import SparkSession

from spark.comparison import compacted
from spark.comparison.findings import PartitionResult
from spark.comparison.retention import expired_meanwhile

from ...support import oracle
from ...support.oracle import Log, Logs, Record
from ...support.spark_logs import reader

FAULTS = {"lost", "foreign", "altered"}


def counts(result: PartitionResult) -> dict[str, int]:
    return {one.kind: one.count for one in sorted(result.findings, key=lambda one: one.kind)}


def agree(compared: Mapping[str, Sequence[PartitionResult]], name: str) -> list[dict[str, int]]:
    """Spark and the oracle find the same in each of these partitions; return what."""
    truths = oracle.judge(dict(enumerate(CASES[name])))
    for number, (logs, result) in enumerate(zip(CASES[name], compared[name], strict=True)):
        truth = truths[number]
        assert counts(result) == truth.counts(), logs
        assert result.compared == truth.compared, logs
        for one in result.findings:
            wanted = {(tp.source, tp.target) for tp in truth.found[one.kind]}
            at = {(_at(sample.source_offset), _at(sample.target_offset)) for sample in one.samples}
            assert at <= wanted, logs
    return [truths[number].counts() for number in range(len(truths))]


def _at(offset: int | None) -> int:
    return -1 if offset is None else offset


def written(letters: str, start: int = 0) -> Log:
    """A capital letter is a tombstone of its key; equal letters are several records of one key, a dot a hole.

    A digit is a record without a key, equal digits are identical ones.
    """
    return [(start + n, _record(one, start + n)) for n, one in enumerate(letters) if one != "."]


def _record(one: str, number: int) -> Record:
    if one.isdigit():
        return Record(None, one.encode(), (), int(one))
    return Record(one.lower().encode(), None if one.isupper() else b"%d" % number, (), number)


def copied(log: Log, shift: int = 0) -> Log:
    return [(at + shift, record) for at, record in log]


def without(log: Log, *gone: int) -> Log:
    return [one for one in log if one[0] not in gone]


def faulty(dice: random.Random, *, retention: bool, faults: bool) -> Logs:
    """Both logs of a mirrored compacted topic, each cleaned on its own clock, while the source is written."""
    keys = "abcdefghij"[: dice.randint(1, 10)]
    letters = "".join(dice.choice(keys).upper() if dice.random() < 0.2 else dice.choice(keys) for _ in range(40))
    log = written(letters)
    cut = dice.randint(20, 40)
    mirrored = log[: dice.randint(cut, 40)]
    source, source_start = _cleaned(dice, log, retention=retention)
    target, target_start = _cleaned(dice, copied(mirrored, 3), retention=retention)
    if faults:
        at = dice.randrange(len(target) + 1)
        kind = dice.choice(["drop", "alter", "foreign"])
        if kind == "drop":
            gone = dice.choice(keys).encode()
            target = [one for one in target if one[1].key != gone]
        elif kind == "alter" and at < len(target):
            target[at] = (target[at][0], Record(target[at][1].key, b"other"))
        elif kind == "foreign":
            target.append((100, Record(b"stranger", b"x")))
    return Logs(
        source=source,
        target=target,
        cut=max(cut, source_start),
        source_start=source_start,
        target_start=target_start,
        compacted=True,
    )


def _cleaned(dice: random.Random, log: Log, *, retention: bool) -> tuple[list[tuple[int, Record]], int]:
    """The log after compaction up to some offset, and after retention if there is one; the last record stays."""
    clean = dice.randint(0, len(log))
    newest = {record.key: at for at, record in log}
    head = [one for one in log[:clean] if newest[one[1].key] == one[0] and (one[1].value or dice.random() < 0.5)]
    kept = [*head, *log[clean:]] or [log[-1]]
    gone = dice.randrange(len(kept)) if retention and dice.random() < 0.7 else 0
    return kept[gone:], kept[gone][0] if gone else 0


def rewritten() -> list[Logs]:
    source = written("abab")
    hot = Logs(source=source, target=copied([source[1], source[2]][:1], 5), cut=2, compacted=True)
    deleted = Logs(source=written("abA"), target=copied(written("abA")[1:2], 5), cut=2, compacted=True)
    kept = Logs(
        source=written("abA"), target=copied(written("abA")[1:2], 5), cut=2, compacted=True, never_cleaned="target"
    )
    extra = Logs(source=written(".ba"), target=copied(written("ab"), 5), cut=2, compacted=True)
    whole = Logs(source=written(".ba"), target=copied(written("ab"), 5), cut=2, compacted=True, never_cleaned="source")
    lost = Logs(source=written("abb"), target=copied(written("abb")[1:]), cut=3, compacted=True)
    return [hot, lost, deleted, kept, extra, whole]


def clean() -> list[Logs]:
    dice = random.Random(3)  # noqa: S311 - test data, not a secret
    cases = [faulty(dice, retention=number % 3 > 0, faults=False) for number in range(24)]
    return [one for one in cases if {record for _, record in one.source} & {record for _, record in one.target}]


def spoilt() -> list[Logs]:
    dice = random.Random(11)  # noqa: S311 - test data, not a secret
    return [faulty(dice, retention=number % 4 > 2, faults=True) for number in range(12)]


def one_sided() -> list[Logs]:
    log = written("abcdef")
    target = Logs(source=log, target=log[3:], cut=6, target_start=3, compacted=True)
    source = Logs(source=log[4:], target=log, cut=6, source_start=4, compacted=True)
    behind = Logs(source=log, target=without(log, 0, 1, 4), cut=6, target_start=2, compacted=True)
    never = Logs(source=log, target=log[3:], cut=6, compacted=True)
    emptied = Logs(source=log, target=[], cut=6, target_start=9, position=3, compacted=True)
    nothing = Logs(source=[], target=log, cut=6, source_start=6, compacted=True)
    return [target, source, behind, never, emptied, nothing]


def trimmed_meanwhile() -> list[Logs]:
    log = written("abcdef")
    at_target = Logs(source=log, target=log[3:], cut=6, compacted=True)
    at_source = Logs(source=log[4:], target=log, cut=6, compacted=True)
    return [at_target, at_source]


def without_key() -> list[Logs]:
    """A topic that held records without a key before it was compacted; the logs were cleaned at different times."""
    log = written("0a1b2c3d4e")

    def case(source: Log, target: Log, **more: object) -> Logs:
        return Logs(**{"source": source, "target": target, "cut": 10, "compacted": True, **more})  # type: ignore[arg-type]

    superseded = written("0aa1a2b3c4d")
    return [
        case(log, without(log, 0, 2)),
        case(log, copied(log[1:], -1)),
        case(without(log, 0, 2, 4), log),
        case(log, without(log, 4)),
        case(log, without(log, 0, 2), never_cleaned="target"),
        case(log, log[:8]),
        case(log, [*log, (10, log[6][1]), (11, Record(None, b"other"))]),
        case(log, [(n, log[at][1]) for n, at in enumerate((1, 3, 4, 5, 6, 7, 8, 9))]),
        case(superseded, copied([one for one in superseded if one[1].key is not None][2:], -1), cut=11),
        case(superseded, without(superseded, 0, 1, 2, 3), cut=11),
        case(log, without(log, 0, 1, 2, 4), target_start=2),
        case(written("0000a"), copied(written("0000a")[2:], -2), cut=5),
        case(written("0000a"), written("..00a"), cut=5),
        case(log, without(log, 1, 3, 4, 6), cut=10),
    ]


def faulty_without_key(dice: random.Random) -> Logs:
    """Both logs of a topic that was given its `compact` late; some records were lost, copied twice or are foreign."""
    letters = "".join(dice.choice("ab01234567") for _ in range(14))
    log = written(letters)
    arrived = [record for _, record in log]
    for _ in range(dice.randint(0, 2)):
        at = dice.randrange(len(arrived))
        kind = dice.choice(["drop", "double", "foreign"])
        if kind == "drop":
            del arrived[at]
        else:
            arrived.insert(at, arrived[at] if kind == "double" else Record(None, b"other%d" % at))
    target = _swept(dice, list(enumerate(arrived)))
    never = dice.choice(["", "", "source", "target"])
    return Logs(source=_swept(dice, log), target=target, cut=14, compacted=True, never_cleaned=never)


def _swept(dice: random.Random, log: Log) -> Log:
    """The log after its cleaner has been at it up to some offset."""
    clean = dice.choice([0, dice.randint(0, len(log) - 1)])
    newest = {record.key: at for at, record in log}
    return [one for one in log if one[0] >= clean or (one[1].key is not None and newest[one[1].key] == one[0])]


def spoilt_without_key() -> list[Logs]:
    dice = random.Random(7)  # noqa: S311 - test data, not a secret
    return [faulty_without_key(dice) for _ in range(60)]


CASES = {
    "without a key": without_key(),
    "spoilt without a key": spoilt_without_key(),
    "rewritten": rewritten(),
    "clean": clean(),
    "spoilt": spoilt(),
    "one-sided": one_sided(),
    "trimmed meanwhile": trimmed_meanwhile(),
}


@pytest.fixture(scope="module")
def compared(spark: SparkSession) -> dict[str, list[PartitionResult]]:
    """What the comparison finds in all of CASES, compared at once."""
    with pytest.MonkeyPatch.context() as patch:
        held, results = reader(spark, patch, dict(enumerate(chain.from_iterable(CASES.values()))))
        compacted.compare(held, list(results), results)
    found = iter([results[tp] for tp in sorted(results)])
    return {name: [next(found) for _ in cases] for name, cases in CASES.items()}


def test_a_key_that_one_side_lacks_is_excused_only_where_that_sides_log_may_have_dropped_it(
    compared: Mapping[str, list[PartitionResult]],
) -> None:
    found = agree(compared, "rewritten")
    assert found[:2] == [{"lost": 1}, {"lost": 1}], "the target shows no newer record of either key"
    assert found[2:] == [{}, {"lost": 1}, {}, {"foreign": 1}], "only a log that is cleaned drops a record"


def test_clean_pairs_hold_however_the_two_logs_were_cleaned(compared: Mapping[str, list[PartitionResult]]) -> None:
    found = agree(compared, "clean")
    assert not any(FAULTS & one.keys() for one in found)
    assert {kind for one in found for kind in one} == {"expired_at_source", "expired_at_target"}


def test_faults_in_compacted_logs_are_found(compared: Mapping[str, list[PartitionResult]]) -> None:
    assert {kind for one in agree(compared, "spoilt") for kind in one} >= FAULTS


def test_what_retention_left_on_one_side_only_has_expired(compared: Mapping[str, list[PartitionResult]]) -> None:
    assert agree(compared, "one-sided") == [
        {"expired_at_target": 3},
        {"expired_at_source": 4},
        {"expired_at_target": 2, "lost": 1},
        {"lost": 3},
        {"expired_at_target": 4, "lost": 2},
        {"expired_at_source": 6},
    ]


def test_keys_that_retention_deleted_meanwhile_have_expired(compared: Mapping[str, list[PartitionResult]]) -> None:
    at_target, at_source = compared["trimmed meanwhile"]
    assert [counts(at_target), counts(at_source)] == [{"lost": 3}, {"foreign": 4}]
    topic_partitions = ("t", at_source.partition), ("t", at_target.partition)
    now = expired_meanwhile([at_target, at_source], {topic_partitions[0]: 4}, {topic_partitions[1]: 3})
    assert [counts(one) for one in now] == [{"expired_at_target": 3}, {"expired_at_source": 4}]


def test_a_record_without_a_key_is_out_of_scope_only_where_the_other_log_was_cleaned(
    compared: Mapping[str, list[PartitionResult]],
) -> None:
    assert agree(compared, "without a key") == [
        {},
        {"lost": 1},
        {},
        {"lost": 1},
        {"lost": 2},
        {"lost": 2},
        {"doubled": 1, "foreign": 1},
        {"lost": 2},
        {"lost": 1},
        {},
        {"expired_at_target": 2},
        {"lost": 2},
        {},
        {"lost": 4},
    ]
    cleaned = [(one.cleaned_at_source, one.cleaned_at_target) for one in compared["without a key"]]
    assert cleaned[:3] == [(0, 2), (0, 0), (3, 0)]


def test_faults_in_records_without_a_key_are_found(compared: Mapping[str, list[PartitionResult]]) -> None:
    found = agree(compared, "spoilt without a key")
    assert {kind for one in found for kind in one} >= {"lost", "foreign", "doubled"}
    assert {} in found
