"""How long messages reach a terminal: whole words, whole commands; and programs get one line a message."""

import io

import pytest

from settings.text import format_count, wrap, wrap_for_stream

LONG = "error: stack prod: must exist. Run `pulumi up -s prod --with a --long list`, or choose one of these."


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_no_word_and_no_command_is_broken() -> None:
    lines = wrap(f"  {LONG}", 50).splitlines()
    assert " ".join(line.strip() for line in lines) == LONG
    assert any("`pulumi up -s prod --with a --long list`" in line for line in lines)
    assert all(line.startswith("  ") and len(line) <= 50 for line in lines)


@pytest.mark.parametrize("text", ["", "short", "  two\nlines", "x" * 90])
def test_what_fits_or_cannot_be_broken_stays(text: str) -> None:
    assert wrap(text, 80) == text


def test_only_a_terminal_gets_lines_of_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert wrap_for_stream(LONG, io.StringIO()) == LONG
    assert max(map(len, wrap_for_stream(LONG, Terminal()).splitlines())) <= 50


def test_a_number_has_the_right_noun() -> None:
    assert [format_count(number, "user") for number in (0, 1, 2)] == ["0 users", "1 user", "2 users"]
