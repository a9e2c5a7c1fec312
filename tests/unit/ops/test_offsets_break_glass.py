"""The commands about offsets while Pulumi's state is lost: they read the copy beside the mirror."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kafka.topic_partition import TopicPartition
from ops.cli import app
from ops.pulumi.process import UnreachableError
from ops.recovery import break_glass, mirror_context
from tests.support.offset_clusters import MadeUpPair

PLACE = ("-t", "items", "-p", "0", "-o", "70")
COMMANDS = [
    ("show",),
    ("export", "--out", "kept.json"),
    ("translate", *PLACE),
    ("import", "--file", "kept.csv", "--group", "orders", "--dry-run"),
    ("set", "--group", "orders", *PLACE, "--dry-run"),
]


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the copy is asked for, while Pulumi cannot be reached."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept.csv").write_text("items,0,70\n", encoding="utf-8")
    pair = MadeUpPair(tmp_path)
    pair.source_cluster.groups["orders"] = {TopicPartition("items", 0): 60}
    pair.target_cluster.groups["orders"] = {TopicPartition("items", 0): 40}
    pair.install(monkeypatch)
    load, asked = mirror_context.load, list[tuple[Any, ...]]()

    def by_copy(*words: Any) -> Any:
        asked.append(words[:2])
        return load(*words)

    def unreachable(*_: Any) -> Any:
        raise UnreachableError("stack stg: no state.")

    monkeypatch.setattr(break_glass, "load", by_copy)
    monkeypatch.setattr(mirror_context, "load", unreachable)
    return asked


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["offsets", *words, "--mirror", "mm2"], env={"COLUMNS": "200"})


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_each_reads_the_copy_beside_the_mirror(copies: list[tuple[Any, ...]], words: tuple[str, ...]) -> None:
    result = run(*words, "--break-glass")
    assert copies == [("stg", "mm2")]
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_each_names_the_option_where_the_state_is_out_of_reach(
    copies: list[tuple[Any, ...]], words: tuple[str, ...]
) -> None:
    result = run(*words)
    assert (result.exit_code, copies) == (2, [])
    assert "If the bucket or its key is lost: --break-glass." in result.stderr
