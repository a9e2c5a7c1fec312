"""What every command shares: options, results on stdout, words and progress on stderr, errors as one message.

Owns how a command speaks. Does not own what it says.
"""

import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from confluent_kafka import KafkaException
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ops.errors import OpsError
from settings.wording import for_stream

EXIT_FAILED, EXIT_UNUSABLE, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 130, 143

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of a table.")]
ProjectFolder = Annotated[Path, typer.Option("--folder", "-C", help="Folder of the Pulumi project.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def stderr() -> Console:
    """Return the console for everything that is no result."""
    return Console(stderr=True, soft_wrap=True)


def say(line: str) -> None:
    """Write one line of progress to stderr: as it is, or in lines of the terminal's width."""
    stderr().print(escape(for_stream(line, sys.stderr)), highlight=False)


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
    """Turn an error into one message and exit code 2; with `--json` the message is the document. Ctrl-C is told too.

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
        told = for_stream(f"error: {message}", sys.stderr).removeprefix("error:")
        stderr().print(f"[red]error:[/red]{escape(told)}", highlight=False)
        raise typer.Exit(EXIT_UNUSABLE) from error
    except KeyboardInterrupt:
        say("Interrupted.")
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
