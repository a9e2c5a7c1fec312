"""What every command shares: options, results on stdout, progress on stderr, tables, errors as one message."""

import json
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn, Self

import typer
from confluent_kafka import KafkaException
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markup import escape as escape_markup
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.style import Style
from rich.table import Table
from rich.text import Text as RichText

from contract.terminal import printable
from ops.errors import OpsError
from settings.text import wrap_for_stream

EXIT_FAILED, EXIT_UNUSABLE, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 130, 143

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of a table.")]
ProjectFolder = Annotated[Path, typer.Option("--folder", "-C", help="Folder of the Pulumi project.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def escape(text: str) -> str:
    """Return a text for a console, which shows its markup, control characters and commands to a workflow's runner."""
    return escape_markup(printable(text))


class Text(RichText):
    """A text for a console that passes nothing on to a terminal or to a workflow's runner, however it is made."""

    def __init__(self, text: str = "", *arguments: Any, **options: Any) -> None:
        super().__init__(printable(text), *arguments, **options)

    def append(self, text: RichText | str, style: str | Style | None = None) -> Self:
        """Add a text at the end, and return this one."""
        super().append(text if isinstance(text, RichText) else printable(text), style)
        return self


def stderr() -> Console:
    """Return the console for everything that is no result."""
    return Console(stderr=True, soft_wrap=True)


def log(line: str) -> None:
    """Write one line of progress to stderr: as it is, or in lines of the terminal's width."""
    stderr().print(escape(wrap_for_stream(line, sys.stderr)), highlight=False)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Show on a terminal what the command waits for, until it has been read."""
    with stderr().status(f"reading {escape(what)}"):
        yield


def show(as_json: bool, document: Mapping[str, Any], table: Callable[[], RenderableType]) -> None:
    """Write the result to stdout: the document as JSON, or the table."""
    if as_json:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        Console().print(table())


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr; yields the function that moves it to a number of records."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=stderr()) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def guard(as_json: bool, debug: bool, *foreseen: type[Exception]) -> Iterator[None]:
    """Turn an error or Ctrl-C into one message and exit code 2; with `--json` the message is the document.

    `foreseen` are errors of other packages whose text may be shown.
    """
    try:
        yield
    except Exception as error:
        if debug or not isinstance(error, (OpsError, KafkaException, OSError, *foreseen)):
            raise
        message = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        if as_json:
            sys.stdout.write(json.dumps({"error": message}) + "\n")
        text = wrap_for_stream(f"error: {message}", sys.stderr).removeprefix("error:")
        stderr().print(f"[red]error:[/red]{escape(text)}", highlight=False)
        raise typer.Exit(EXIT_UNUSABLE) from error
    except KeyboardInterrupt:
        log("Interrupted.")
        raise typer.Exit(EXIT_INTERRUPTED) from None


@contextmanager
def terminated_gently() -> Iterator[None]:
    """Let a SIGTERM, with which pipelines end a job, and a lost connection end what the command has started too."""

    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(EXIT_TERMINATED)

    heard = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


Cell = str | RichText
EMPTY = ("", "-")
_WORD_MAX = 24
"""Longer words, such as paths, are broken over lines where they do not stand in a column of names."""
_LINE, _PADDING = 1, 2
_INDENT = 4


@dataclass(frozen=True)
class Column:
    """One column: `name` if it holds names, which stay whole, `number` if it is aligned to the right."""

    title: str
    name: bool = False
    number: bool = False


class AdaptiveTable:
    """Rows under titles; a list with an entry a row where the terminal is too narrow for that.

    A column whose cells are all empty or `-` is left out, unless it holds names. Cells are shown as they are, without
    markup. `lines` are drawn between rows.
    """

    def __init__(
        self, title: str, columns: Sequence[Column], *, show_header: bool = True, lines: bool = False, caption: str = ""
    ) -> None:
        self.title = title
        self.columns = tuple(columns)
        self.rows: list[tuple[RichText, ...]] = []
        self._show_header, self._lines, self._caption = show_header, lines, caption

    def add_row(self, *cells: Cell) -> None:
        """Add a row with a cell for each column."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title}: a row must have {len(self.columns)} cells (got {len(cells)}).")
        self.rows.append(tuple(cell if isinstance(cell, RichText) else Text(cell) for cell in cells))

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or the list, for the width of the terminal."""
        shown = [at for at, column in enumerate(self.columns) if column.name or not self._is_empty(at)]
        frame = (len(shown) + 1) * _LINE + len(shown) * _PADDING
        widths = _widths([self._range(at) for at in shown], options.max_width - frame)
        if widths is None:
            yield from self._list(shown, options.max_width)
        else:
            yield self._table(shown, widths)

    def _table(self, shown: Sequence[int], widths: Sequence[int]) -> Table:
        table = Table(
            title=Text(self.title, "bold") if self.title else None,
            title_justify="left",
            show_header=self._show_header,
            show_lines=self._lines,
            caption=self._caption or None,
        )
        for at, width in zip(shown, widths, strict=True):
            column = self.columns[at]
            table.add_column(
                Text(column.title), width=width, justify="right" if column.number else "left", overflow="fold"
            )
        for row in self.rows:
            table.add_row(*(row[at] for at in shown))
        return table

    def _list(self, shown: Sequence[int], width: int) -> Iterator[RichText | Padding]:
        if self.title:
            yield Text(self.title, "bold")
        names = [at for at in shown if self.columns[at].name]
        for row in self.rows:
            yield Text(", ", overflow="fold").join(self._name(at, row[at]) for at in names)
            facts = [self._fact(at, row[at]) for at in shown if at not in names and row[at].plain.strip()]
            if facts:
                long = any(fact.cell_len > width - _INDENT for fact in facts)
                between = Text("\n" if long else "; ", overflow="fold")
                yield Padding(between.join(facts), (0, 0, 0, _INDENT), expand=False)
        if self._caption:
            yield Text(self._caption)

    def _name(self, at: int, cell: RichText) -> RichText:
        return RichText.assemble(f"{self.columns[at].title} ", cell) if self.columns[at].number else cell

    def _fact(self, at: int, cell: RichText) -> RichText:
        return RichText.assemble(f"{self.columns[at].title}: ", cell) if self._show_header else cell

    def _is_empty(self, at: int) -> bool:
        return all(row[at].plain.strip() in EMPTY for row in self.rows)

    def _range(self, at: int) -> tuple[int, int]:
        """The least and the most width that a column can use."""
        cells = [row[at] for row in self.rows]
        title = [Text(self.columns[at].title)] if self._show_header else []
        most = _longest(line for cell in (*cells, *title) for line in cell.plain.splitlines())
        if self.columns[at].name:
            words = [*(line for cell in cells for line in cell.plain.splitlines()), *_words(title)]
            return _longest(words), most
        return min(_longest(_words([*cells, *title])), _WORD_MAX), most


def _words(cells: Iterable[RichText]) -> Iterator[str]:
    return (word for cell in cells for word in cell.plain.split())


def _longest(texts: Iterable[str]) -> int:
    return max((Text(text).cell_len for text in texts), default=1)


def _widths(ranges: Sequence[tuple[int, int]], room: int) -> list[int] | None:
    """Return a width for each column, the widest ones made narrower first; None if there is not enough room."""
    if sum(least for least, _ in ranges) > room:
        return None
    widths = [most for _, most in ranges]
    while sum(widths) > room:
        at = max((at for at, (least, _) in enumerate(ranges) if widths[at] > least), key=lambda at: widths[at])
        widths[at] -= 1
    return widths


PULSE_S = 30.0


@contextmanager
def until_stopped() -> Iterator[Callable[[], bool]]:
    """Take SIGTERM and SIGINT for a wish to end; yields whether one came. A second one interrupts what still runs."""
    stopping = False

    def note(_number: int, _frame: object) -> None:
        nonlocal stopping
        if stopping:
            raise KeyboardInterrupt
        stopping = True

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def pulse(
    title: str, log: Callable[[str], None], every_s: float = PULSE_S, clock: Callable[[], float] = time.monotonic
) -> Callable[[int], None]:
    """Return the function that takes the number of records so far and logs it, at most once in `every_s` seconds."""
    last = clock()

    def beat(done: int) -> None:
        nonlocal last
        now = clock()
        if now - last >= every_s:
            last = now
            log(f"{title}: {done:,} records")

    return beat
