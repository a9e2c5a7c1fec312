"""A name from a cluster is only shown: it moves no cursor, sets no colour, and gives a workflow's runner no command."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from contract.terminal import printable
from ops.console import AdaptiveTable, Column, Text, escape, guard, log
from ops.doctor.command import shown
from ops.doctor.diagnosis import diagnose
from ops.errors import OpsError
from ops.offsets import offset_plan
from ops.pipeline import documents
from ops.recovery import client_workloads, failover_result
from ops.status import document as status
from tests.support.mirror_symptoms import seen, side
from tests.support.recovery_pair import finished_failover, group, observe, resource

EVIL = "shop\x1b[2J\u202e\r\n::error::all is lost"
SHOWN = "shop\\x1b[2J\\u202e\\x0d\n\\x3a:error::all is lost"


def test_control_characters_and_commands_are_shown() -> None:
    assert printable(EVIL) == SHOWN
    assert printable("a ##[error]b") == "a \\x23#[error]b"
    assert printable(EVIL, lines=False) == "shop\\x1b[2J\\u202e\\x0d\\x0a\\x3a:error::all is lost"


@pytest.mark.parametrize("text", ["fd00::1", "items: 3 of 4", "a::b", "über ✓", "# head", "::1"])
def test_any_other_text_stays(text: str) -> None:
    assert printable(text) == text


def test_neither_progress_nor_an_error_passes_them_on(capsys: pytest.CaptureFixture[str]) -> None:
    log(EVIL)
    with pytest.raises(BaseException), guard(as_json=False, debug=False):  # noqa: B017, PT011  # typer's Exit, whatever its class
        raise OpsError(EVIL)
    assert capsys.readouterr().err == f"{SHOWN}\nerror: {SHOWN}\n"


@pytest.mark.parametrize("width", [20, 200])
def test_neither_a_table_nor_a_list_passes_them_on(width: int) -> None:
    out = io.StringIO()
    table = AdaptiveTable("groups", [Column("group", name=True), Column("state")])
    table.add_row(EVIL, "a long text that is broken ::error::here")
    Console(file=out, width=width).print(table, escape(EVIL))
    assert not set("\x1b\u202e\r") & set(out.getvalue())
    assert not [line for line in out.getvalue().splitlines() if line.strip().startswith(("::", "│ ::"))]


@pytest.mark.parametrize("before", range(78, 83))
def test_no_line_that_is_broken_within_a_name_begins_with_a_command(before: int) -> None:
    out = io.StringIO()
    Console(file=out, width=80).print(Text("g" * before + "::error file=a.py::all is lost, ab::cd and fd00::1"))
    assert not [line for line in out.getvalue().splitlines() if line.startswith("::")]
    assert "ab::cd and fd00::1" in out.getvalue().replace("\n", "")


LONGEST = EVIL + "g" * 32_767  # of a group's name and of a client's id, in Kafka's protocol


def lines(shown: RenderableType, width: int) -> list[str]:
    """What a log gets, line by line: no name moves a cursor in it or is a command to the runner."""
    out = io.StringIO()
    Console(file=out, width=width).print(shown)
    assert not set(out.getvalue()) & set("\x1b\u202e\r\0\x9b")
    found = out.getvalue().splitlines()
    assert not [line for line in found if line.strip("│ ").startswith("::") or "##[" in line]
    return found


@pytest.mark.parametrize("width", [20, 80, 200])
@pytest.mark.parametrize("name", [EVIL, f"a##[error]{EVIL}\0\x9b", LONGEST], ids=["short", "older form", "longest"])
def test_a_screen_of_status_passes_on_no_name_wherever_it_is_shown(name: str, width: int) -> None:
    groups = (group(name, skipped=7), group("orders"))
    seen = observe(groups=groups, mirror=resource(ready=False, reason=name), unknown={"fence": name})
    document = json.loads(json.dumps(status.document(seen)))
    assert [one for one in document["problems"] if name in one]
    found = lines(status.table(document), width)
    assert len(found) < 20_000


ONE_LINE = EVIL.replace("\r\n", " ")  # the pattern .* of a mirror carries no name with line ends
NAMES_64_KIB = {
    "64 KiB": "g" * 65_536 + ONE_LINE,
    "64 KiB with NUL": f"a\0b{ONE_LINE}" + "g" * 65_536,
    "NUL alone": "\0",
    "a command after NUL": "\0::error::all is lost",
}


@pytest.mark.parametrize("width", [20, 200])
@pytest.mark.parametrize("name", NAMES_64_KIB.values(), ids=NAMES_64_KIB.keys())
def test_no_screen_passes_on_a_groups_name_of_64_kib_or_with_nul(name: str, width: int) -> None:
    change = offset_plan.Change(group=name, topic=name, partition=0, now=None, wanted=7)
    plan = offset_plan.Plan(side="target", cluster="es-tgt", changes=(change,), left=(name,), notes=(name,))
    states = {name: "STABLE"}
    sides = {role: side(role, groups=states) for role in ("source", "target")}
    examined = seen(**sides, unseen=(name,), notes=(name,))
    findings = diagnose(examined)
    assert [one.where for one in findings] == [f"group {name}"]
    done = finished_failover({name: {"setBack": {"items-0": 3}, "withoutPosition": ["items-0"]}})
    for screen in (offset_plan.plan_table(plan), shown(examined, findings), failover_result.summary(done)):
        assert len(lines(screen, width)) < 40_000


@pytest.mark.parametrize("name", NAMES_64_KIB.values(), ids=NAMES_64_KIB.keys())
def test_a_log_gets_a_name_of_64_kib_or_with_nul_as_text(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    log(f"  group {name}: set back from 15 to 12 on items-0")
    said = capsys.readouterr().err
    assert not set(said) & set("\x1b\u202e\r\0\x9b")
    assert not [line for line in said.splitlines() if line.strip().startswith("::")]


def test_what_a_failover_reports_passes_on_no_name() -> None:
    unknown = {"workloads": [EVIL], "restart": "unknown", "workloadsWhy": EVIL}
    left = {"workloads": [EVIL], "restart": "late", "notRestarted": {EVIL: EVIL}}
    reported = [*client_workloads.summary(unknown), *client_workloads.summary(left)]
    assert len([lines(line, 80) for line in reported]) == 3


def test_the_comment_of_a_pull_request_shows_characters_that_cannot_be_seen(tmp_path: Path) -> None:
    checks = [{"name": "groups", "ok": False, "expected": EVIL, "observed": EVIL}]
    mirror = {"mirror": "mm2", "verdict": "fail", "checks": checks}
    (tmp_path / "verification-stg.json").write_text(json.dumps({"mirrors": [mirror], "error": EVIL}), encoding="utf-8")
    text = documents.report(documents.read(tmp_path))
    assert not set(text) & set("\x1b\u202e\r")
    assert "x1b" in text
    assert "u202e" in text


def test_only_the_console_makes_texts_from_those_of_rich() -> None:
    package = Path(documents.__file__).parents[1]
    others = [
        path.name for path in package.rglob("*.py") if "from rich.text import" in path.read_text(encoding="utf-8")
    ]
    assert others == ["console.py"]
