"""The job on a topic of 3,000 partitions, and on records of ten mebibytes, of real brokers."""

from collections.abc import Mapping

import pytest

from ...support.written_topics import SIDES, Bench, findings, own_name, record

MIB = 2**20
WIDE, BIG_BYTES = 3000, 10 * MIB
MADE_WITHIN_S = 300
ENGINES = pytest.mark.parametrize("spark_above", ["0", "1000000000"], ids=["spark", "alone"])
pytestmark = [pytest.mark.sandbox, pytest.mark.nightly]


@pytest.fixture(scope="module")
def wide(bench: Bench) -> str:
    """A topic of many partitions with a record in each, of which the target lacks three."""
    topic = bench.topic(own_name("wide"), WIDE, within_s=MADE_WITHIN_S)
    for side in SIDES:
        lost = {0, 1499, WIDE - 1} if side == "target" else set[int]()
        records = {at: [record(at)] for at in range(WIDE) if at not in lost}
        bench.write_partitions(side, topic, records, within_s=MADE_WITHIN_S)
    return topic


@pytest.fixture(scope="module")
def big(bench: Bench) -> str:
    """A topic with records of ten mebibytes, of which one differs in its last byte."""
    topic = bench.topic(own_name("big"), config={"max.message.bytes": str(BIG_BYTES + MIB)})
    for side in SIDES:
        ends = [b"a", b"b" if side == "source" else b"c", b"d"]
        bench.write(side, topic, [record(at, value=bytes(BIG_BYTES - 1) + end) for at, end in enumerate(ends)])
    return topic


@ENGINES
def test_what_is_lost_in_a_topic_of_three_thousand_partitions_is_found(
    bench: Bench, wide: str, spark_above: str
) -> None:
    result, report = bench.verify([wide], RT_INVENTORY_SPARK_ABOVE=spark_above)
    assert result.returncode == 1, result.stderr + result.stdout
    assert len(report["partitions"]) == WIDE
    assert _counts(report, wide) == {("lost", 0): 1, ("lost", 1499): 1, ("lost", WIDE - 1): 1}


@ENGINES
def test_a_record_of_ten_mebibytes_is_compared_to_its_last_byte(bench: Bench, big: str, spark_above: str) -> None:
    result, report = bench.verify([big], RT_INVENTORY_SPARK_ABOVE=spark_above)
    assert result.returncode == 1, result.stderr + result.stdout
    assert _counts(report, big) == {("altered", 0): 1}
    (altered,) = findings(report, big)["altered"]
    assert [(one["source_offset"], one["differs"]) for one in altered["samples"]] == [(1, ["value"])]


def _counts(report: Mapping[str, object], topic: str) -> dict[tuple[str, int], int]:
    found = findings(report, topic)
    return {(kind, one["partition"]): one["count"] for kind, several in found.items() for one in several}
