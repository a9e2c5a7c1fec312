"""A disk that fills up while a command writes: one error that names the file, and every earlier file as it was."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from components.__main__ import write as write_manifests
from ops.cli import app
from ops.errors import OpsError
from ops.offsets.entries import Entry, write
from ops.policy import command
from ops.promotion.record import Record
from ops.pulumi.stack_file import change_setting
from ops.render import command as render
from tests.support import event_logs
from tests.support.full_disk import ERROR, REASON, full_disk
from tests.support.pulumi_program import on_path
from tests.support.stack_values import SOURCE

OLD = "of an earlier run\n"
SPACE = 16


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["kept.json", "kept.csv"])
def test_kept_positions_are_not_lost_to_those_that_have_no_room(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(OLD, encoding="utf-8")
    entries = [Entry(group="orders", topic="items", partition=number, offset=5) for number in range(20)]
    with full_disk(SPACE), pytest.raises(OpsError, match=rf"{name}: must be writable \(got {REASON}\)"):
        write(tmp_path / name, "target", entries, {})
    assert files(tmp_path) == {name: OLD}


def test_a_stack_file_stays_as_it_was(tmp_path: Path) -> None:
    file, text = tmp_path / "Pulumi.dev.yaml", yaml.safe_dump({"config": {"rt-inventory:active": True}})
    file.write_text(text, encoding="utf-8")
    with full_disk(SPACE), pytest.raises(OpsError) as caught:
        change_setting(file, "fence", lambda _: {"topics": ["items"]}, "by a failover")
    assert str(caught.value) == (
        f"file {file}: must be writable ({REASON}). This file was not changed. Make room, or give the right to write, "
        "then run the same command again."
    )
    assert files(tmp_path) == {file.name: text}


def test_a_promotion_whose_record_has_no_room_ends_before_its_first_change(tmp_path: Path) -> None:
    record = Record.begin("dev", "stg", tmp_path, {})
    with full_disk(SPACE), pytest.raises(OSError, match=rf"{REASON}: '{tmp_path}/record.json'"):
        record.keep(tmp_path / "record.json")
    assert files(tmp_path) == {}


def test_a_new_pair_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    with full_disk(400):  # enough for the smaller files
        result = CliRunner().invoke(app, ["new", str(folder), "--yes", "--expose", "route", "--topics", "orders"])
    assert result.exit_code == 2, result.output
    assert "error:" in result.stderr
    assert REASON in result.stderr
    assert str(folder) in result.stderr.replace("\n", "")
    assert files(folder) == {}


def test_a_gate_whose_findings_have_no_room_does_not_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path(tmp_path / "bin", monkeypatch).answers(log=event_logs.log())
    out = tmp_path / "out"
    out.mkdir()
    (out / "findings.sarif").write_text(OLD, encoding="utf-8")
    judged = command.as_sarif
    with ExitStack() as disk:

        def filling(*found: Any) -> Any:  # after the preview, whose stand-in for Pulumi writes files too
            disk.enter_context(full_disk(SPACE))
            return judged(*found)

        monkeypatch.setattr(command, "as_sarif", filling)
        sarif = str(out / "findings.sarif")
        result = CliRunner().invoke(app, ["policy", "-s", "stg", "--json", "--sarif", sarif, "--out", str(out)])
    assert result.exit_code == 2, result.output
    assert json.loads(result.stdout) == {"error": f"[Errno {ERROR}] {REASON}: '{sarif}'"}
    assert files(out) == {"findings.sarif": OLD}


def test_manifests_of_an_earlier_rendering_stay(tmp_path: Path) -> None:
    write_manifests(tmp_path, [{"kind": "KafkaTopic", "metadata": {"name": "old", "namespace": "kafka"}}])
    before = files(tmp_path)
    new = [{"kind": "KafkaTopic", "metadata": {"name": name, "namespace": "kafka"}} for name in ("new", "newer")]
    with full_disk(SPACE), pytest.raises(OSError, match=REASON):
        write_manifests(tmp_path, new)
    assert files(tmp_path) == before
    assert before


def test_plain_rules_of_an_earlier_rendering_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "PROJECT", tmp_path)
    text = yaml.safe_dump({"config": {f"rt-inventory:{key}": value for key, value in SOURCE.items()}})
    (tmp_path / "Pulumi.dev.yaml").write_text(text, encoding="utf-8")
    words = ["render", "--as", "prometheus", "--stack", "dev", "--out", str(tmp_path / "out")]
    assert CliRunner().invoke(app, words).exit_code == 0
    before = files(tmp_path)
    with full_disk(SPACE):
        result = CliRunner().invoke(app, words)
    assert (result.exit_code, REASON in result.output, str(tmp_path / "out") in result.output) == (2, True, True)
    assert files(tmp_path) == before
