"""A batch that Spark has planned and refuses since: it is planned again, and what was added up is not read again."""

from pathlib import Path

import pytest

from spark.audit.stream import plan_anew


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
