"""A batch that Spark has planned and refuses since: it is planned again, and what was added up is not read again."""

from pathlib import Path
from typing import cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark.audit import stream
from spark.audit.store import AuditStore
from spark.audit.stream import AuditError, Reading, plan_anew

from .test_audit_judging import request


def noted(checkpoint: Path) -> dict[str, set[str]]:
    return {kind: {one.name for one in (checkpoint / kind).iterdir()} for kind in ("offsets", "commits")}


@pytest.mark.parametrize(
    ("stored", "offsets", "commits"),
    [(1, {"0", "1"}, {"0", "1"}), (2, {"0", "1", "2"}, {"0", "1", "2"})],
    ids=["it was not added up", "it was added up"],
)
def test_a_planned_batch_is_forgotten_or_counts_as_ended(
    tmp_path: Path, stored: int, offsets: set[str], commits: set[str]
) -> None:
    for kind, numbers in (("offsets", "012"), ("commits", "01")):
        (tmp_path / kind).mkdir()
        for number in numbers:
            (tmp_path / kind / number).write_text(f"v1 of {kind}")
            (tmp_path / kind / f".{number}.crc").write_text(f"crc of {kind}")
    plan_anew(tmp_path, stored)
    found = noted(tmp_path)
    assert found == {
        kind: numbers | {f".{number}.crc" for number in numbers}
        for kind, numbers in (("offsets", offsets), ("commits", commits))
    }
    plan_anew(tmp_path, stored)
    assert noted(tmp_path) == found, "a batch whose end is noted stays"
    if stored == 2:
        assert (tmp_path / "commits" / "2").read_text() == "v1 of commits"


def test_before_the_first_batch_there_is_nothing_to_forget(tmp_path: Path) -> None:
    plan_anew(tmp_path, -1)
    assert not list(tmp_path.iterdir())


class RefusedQuery:
    """A query that Spark ends with a message, for a batch that it has planned before."""

    def __init__(self, message: str) -> None:
        self.message = message

    @property
    def writeStream(self) -> "RefusedQuery":  # noqa: N802 - Spark's name
        return self

    def foreachBatch(self, _: object) -> "RefusedQuery":  # noqa: N802 - Spark's name
        return self

    def option(self, *_: str) -> "RefusedQuery":
        return self

    def trigger(self, *, availableNow: bool) -> "RefusedQuery":  # noqa: N803 - Spark's name
        assert availableNow
        return self

    def start(self) -> "RefusedQuery":
        return self

    def awaitTermination(self, _: int) -> bool:  # noqa: N802 - Spark's name
        raise PySparkException(self.message)

    def stop(self) -> None:
        """It has ended."""


@pytest.mark.parametrize(
    "message",
    [
        "Kafka data source in Trigger.AvailableNow should provide the same topic partitions in pre-fetched offset to "
        "end offset for each microbatch.",
        "For Kafka data source with Trigger.AvailableNow, end offset should have lower or equal offset per each topic "
        "partition than pre-fetched offset.",
        "Some of partitions in Kafka topic(s) have been lost during running query with Trigger.AvailableNow.",
    ],
    ids=["partitions were added", "a topic was created again", "a topic was deleted"],
)
def test_whatever_ends_a_reading_its_batch_is_planned_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    monkeypatch.setattr(stream, "_records", lambda *_: RefusedQuery(message))
    monkeypatch.setattr(stream, "let_go", lambda _: None)
    store = AuditStore(tmp_path, "mirror mm2", 0)
    checkpoint = tmp_path / "checkpoints" / "source"
    for kind, numbers in (("offsets", "01"), ("commits", "0")):
        (checkpoint / kind).mkdir(parents=True)
        for number in numbers:
            (checkpoint / kind / number).write_text("v1")
    reading = Reading(
        role="source", side=request().source, topics=("items",), prefix="", isolation="read_committed",
        bucket_ms=60_000, from_ms=0,
    )  # fmt: skip
    store.add("source", 0, {}, {})
    with pytest.raises(AuditError, match="must be readable"):
        stream.read(cast("SparkSession", None), reading, store, 1.0)
    store.close()
    assert noted(checkpoint) == {"offsets": {"0"}, "commits": {"0"}}
