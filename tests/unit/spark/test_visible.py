"""Names that others gave: no file of the report breaks by them, and no terminal obeys them."""

import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from kafka.errors import visible
from spark import command
from spark.progress import Progress
from spark.report import index, publish
from spark.report.html import as_html
from spark.report.publish import as_junit

from ...support import report_documents as made
from ..contract.test_request import GOOD
from .test_stopped import run

EVIL = "app\x1b[2J\x07\x00\x9b\x7f\ud800\ufffe\u202e<&>"
SEEN = r"app\x1b[2J\x07\x00\x9b\x7f\ud800\ufffe\u202e<&>"


def telling(text: str) -> dict[str, Any]:
    """A report that tells a text wherever others may have written it."""
    found = made.faulty()
    found["error"], found["warnings"], found["mirror"] = text, [text], text
    found["source"]["user"] = found["source"]["alias"] = text
    for check in found["checks"]:
        check |= {"ok": False, "observed": text, "expected": text}
        check["evidence"] = [*check["evidence"], {"group": text}] if check["name"] != "topic_config" else []
    for group in found["groups"]:
        group["group"] = text
    return found


def test_text_is_shown_in_characters_that_can_be_seen() -> None:
    assert visible(EVIL) == SEEN
    assert visible("two\nlines\t") == "two\nlines\\x09"
    assert visible("two\nlines", lines=False) == r"two\x0alines"
    assert visible("grün ✕ 😀 日本") == "grün ✕ 😀 日本"


def test_junit_is_well_formed_whatever_names_hold() -> None:
    suite = ElementTree.fromstring(as_junit(telling(EVIL)))  # noqa: S314 - made here
    assert suite.get("name") == f"verification {SEEN}"
    reported = {one.get("message") for one in suite.iter() if one.tag in ("failure", "error")}
    assert reported == {SEEN}
    assert sum(r"\u001b" in (one.text or "") for one in suite.iter("failure")) > 1


def test_every_file_of_the_report_is_written_whatever_names_hold(tmp_path: Path) -> None:
    document = telling(EVIL)
    publish.write_report(tmp_path, document)
    shown = {path.name for path in tmp_path.iterdir() if path.stat().st_mode & 0o077}
    assert shown == {"metrics.prom"}, "it has numbers only, and an exporter reads it as another user"
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["error"] == EVIL
    for name in ("report.html", "junit.xml"):
        text = (tmp_path / name).read_text("utf-8")
        assert not set(text) & set("\x1b\x00\x07\x7f\x9b\ufffe\u202e")
    assert r"app\x1b[2J" in as_html(document)


def test_no_escape_sequence_reaches_standard_output_or_standard_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    document = telling("a\x1b[31mb\nverdict pass") | {"verdict": "fail", "exit_code": 1, "error": None}
    monkeypatch.setattr(command, "verify", lambda *_, **__: document)
    monkeypatch.setattr(command, "_write", lambda *_: (tmp_path / "report").mkdir())
    (tmp_path / "request.json").write_text(json.dumps(GOOD))
    monkeypatch.setenv("SOURCE_PASSWORD", "made-up-password")
    with monkeypatch.context() as patch:
        patch.setattr("signal.signal", lambda *_: None)
        arguments = ["--request", str(tmp_path / "request.json"), "--report-dir", str(tmp_path / "report")]
        assert command.main(arguments) == 1
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert r"a\x1b[31mb\x0averdict pass" in said.out
    assert sum(line.startswith("verdict") for line in said.out.splitlines()) == 1


def test_a_progress_line_shows_neither_escape_sequences_nor_secrets() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress("group secret-one")
    progress.hide(["secret-one"])
    progress("group secret-one\x1b[2J\nfake line")
    progress("group pre-secret-one-post")
    progress.stage("reading secret-one\x1b")
    lines = [line.split("] ")[1] for line in stream.getvalue().splitlines()]
    assert lines == ["group secret-one", r"group [hidden]\x1b[2J\x0afake line", "group pre-[hidden]-post"]
    assert progress.line(progress.started).endswith(r"reading [hidden]\x1b")


def test_a_password_that_is_a_groups_name_is_not_shown_by_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def waiting(_: object, __: object, progress: Progress, *___: object, **____: object) -> None:
        progress("waiting for the mirror to sync the group made-up-password of made-up-password-app")
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "verify", waiting)
    code, _ = run(tmp_path, GOOD, monkeypatch)
    said = capsys.readouterr().err
    assert code == 130
    assert "waiting for the mirror to sync the group [hidden] of [hidden]-app" in said
    assert "made-up-password" not in said


@pytest.mark.parametrize(
    "name", ["a\0b" + "g" * 65_536, "\0", "\0]]>::error::x" + "\0" * 65_536], ids=["64 KiB", "NUL", "NULs"]
)
def test_junit_is_well_formed_with_groups_of_64_kib_and_with_nul(name: str) -> None:
    text = as_junit(telling(name))
    suite = ElementTree.fromstring(text)  # noqa: S314 - made here
    reported = {one.get("message") for one in suite.iter() if one.tag in ("failure", "error")}
    assert reported == {visible(name)}
    assert "\0" not in text


def test_the_longest_names_break_no_file_and_no_message(tmp_path: Path) -> None:
    document = telling(f"::error::all is lost\n{EVIL}" + "g" * 65_536)
    publish.write_report(tmp_path / "report", document)
    index.add(tmp_path, document, tmp_path / "report" / "report.html")
    assert ElementTree.parse(tmp_path / "report" / "junit.xml").getroot().tag == "testsuite"  # noqa: S314 - made here
    assert len((tmp_path / "index.html").read_text("utf-8")) < 65_536
    blocks = json.loads(json.dumps(publish.message(document, tmp_path)))["blocks"]
    texts = [part["text"] for block in blocks for part in (*block.get("elements", []), block.get("text")) if part]
    assert max(map(len, texts)) <= 3000, "Slack refuses the message"
