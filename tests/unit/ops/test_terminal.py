"""A name from a cluster is only shown: it moves no cursor, sets no colour, and gives a workflow's runner no command."""

import io

import pytest
from rich.console import Console

from contract.terminal import printable
from ops.console import AdaptiveTable, Column, escape, guard, log
from ops.errors import OpsError

EVIL = "shop\x1b[2J\u202e\r\n::error::all is lost"
SHOWN = "shop\\x1b[2J\\u202e\\x0d\n\\x3a:error::all is lost"


def test_control_characters_and_commands_are_shown() -> None:
    assert printable(EVIL) == SHOWN
    assert printable("a ##[error]b") == "a \\x23#[error]b"
    assert printable(EVIL, lines=False) == "shop\\x1b[2J\\u202e\\x0d\\x0a::error::all is lost"


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
