"""What is generated is as it is committed, and Grafana's own library reads it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from monitoring import __main__ as generated
from monitoring import dashboards
from monitoring.__main__ import built, main
from monitoring.dashboards import pages, panels, queries
from monitoring.dashboards.panels import FieldConfig, Series

ROOT = Path(__file__).parents[3]


def test_everything_generated_is_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 0, capsys.readouterr().out


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The dashboards and the page in a folder of their own."""
    for name, text in dashboards.texts().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "monitoring.md").write_text(generated.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(dashboards, "FOLDER", tmp_path)
    monkeypatch.setattr(generated, "PAGE", tmp_path / "monitoring.md")
    return tmp_path


def test_what_is_stale_is_named_and_written(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet, gone, more = copied / "rt-inventory-fleet.json", copied / "rt-inventory-groups.json", copied / "old.json"
    fleet.write_text(fleet.read_text(encoding="utf-8").replace("Largest lag", "Lag"), encoding="utf-8")
    gone.unlink()
    more.write_text("{", encoding="utf-8")
    assert main(["check"]) == 1
    reported = capsys.readouterr()
    for path in (fleet, gone, more):
        assert f"{path}: stale\n" in reported.out
    assert "python -m monitoring write" in reported.err
    assert main(["write"]) == 0
    assert f"{more}: removed\n" in capsys.readouterr().out
    assert main(["check"]) == 0
    assert not more.exists()


def test_writing_leaves_alone_what_is_fresh(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["write"]) == 0
    assert capsys.readouterr().out == ""
    assert (copied / "rt-inventory-fleet.json").exists()


@pytest.mark.parametrize("uid", sorted(dashboards.documents()))
def test_the_library_reads_what_it_wrote(uid: str) -> None:
    register_default_plugins()
    document = dashboards.documents()[uid]
    again = Dashboard.from_json(document)
    for marks in document["annotations"]["list"]:
        for name in pages.ANNOTATION_TEXTS:
            del marks[name]
    assert json.loads(json.dumps(again, cls=JSONEncoder)) == document


def test_making_them_twice_makes_the_same() -> None:
    assert built() == built()


def test_whoever_ships_them_needs_no_library() -> None:
    asked = "import sys, monitoring.dashboards, monitoring.stack_monitoring"
    asked += "; print('grafana_foundation_sdk' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_word_has_the_number_that_it_is_shown_by() -> None:
    expression = queries.coded("s", "status", panels.CONNECTOR_STATES, "task")
    for number, (word, _) in panels.numbered(panels.CONNECTOR_STATES).items():
        assert f'status="{word}"}} == 1) * {number}' in expression


def test_thresholds_are_drawn_only_where_there_are_some() -> None:
    def drawn(field: FieldConfig) -> object:
        panel = panels.graph("Title", "What it tells.", [Series("up", "up")], field).build()
        shown = json.loads(json.dumps(panel, cls=JSONEncoder))
        return shown["fieldConfig"]["defaults"]["custom"].get("thresholdsStyle")

    assert drawn(FieldConfig(unit=panels.NUMBER)) is None
    assert drawn(FieldConfig(unit=panels.NUMBER, steps=panels.limits(1, 2))) == {"mode": "dashed"}
