"""`python -m ops policy`: shows what the policy pack finds in a stack's preview, for people and for pipelines."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from ops.connection import PROJECT
from ops.errors import OpsError
from ops.pipeline import documents
from ops.policy import Change, Judgement, judging, planned, reports
from ops.policy.judging import judge
from ops.policy.reports import describe_rules
from ops.pulumi.stack import PulumiStack
from ops.pulumi.stack_file import StackFile

EXIT_FAILED, EXIT_UNUSABLE, EXIT_INTERRUPTED = 1, 2, 130
WITHIN_S = 600.0
# Without a terminal, whose width is known, as in a pipeline's log.
_WIDTH = 160


def command(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack whose preview is judged.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of a table.")] = False,
    sarif: Annotated[
        Path | None, typer.Option("--sarif", help="File to also write the findings to, as SARIF for code scanning.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder to also write preview-STACK.json (what changes and is found) and .sarif to."
        ),
    ] = None,
    pack: Annotated[Path, typer.Option("--pack", help="Folder of the policy pack.")] = PROJECT / "policies",
    config: Annotated[
        Path | None, typer.Option("--config", help="JSON file that configures the rules, on top of policy.STACK.json.")
    ] = None,
    folder: Annotated[Path, typer.Option("--folder", "-C", help="Folder of Pulumi.yaml.")] = PROJECT,
    within_s: Annotated[float, typer.Option("--within", min=1, help="Seconds after which to give up.")] = WITHIN_S,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show what Pulumi wrote, and the traceback of an error.")
    ] = False,
) -> None:
    """Judge what an update of a stack would do: run the policy pack over its preview and show what it finds.

    Example: [bold]python -m ops policy --stack stg --sarif policy.sarif[/bold]

    Deleting or replacing what holds records is found too (rule deletion-protection). Nothing is changed. Exit 0 if
    nothing mandatory is found, 1 if something is, 2 if the preview failed or did not end.
    """
    if out is not None:
        _forget(out, stack)
    try:
        judgement, changes = _judgement(PulumiStack(folder=folder, name=stack), pack, config, within_s, debug=debug)
        file = StackFile(folder, stack)
        for target in _sarif_files(sarif, out, stack):
            _write(target, reports.as_sarif(judgement, file, describe_rules(pack)))
        if out is not None:
            changed = {"changes": [change.as_json() for change in changes]}
            _write(documents.file(out, documents.PREVIEW, stack), reports.as_json(judgement, file) | changed)
    except (OpsError, OSError) as error:
        if out is not None:
            _write(documents.file(out, documents.PREVIEW, stack), {"stack": stack, "error": str(error)})
        if debug:
            raise
        if as_json:
            sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        _stderr().print(f"[red]error:[/red] {escape(str(error))}", highlight=False)
        raise typer.Exit(EXIT_UNUSABLE) from error
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        _write(None, reports.as_json(judgement, file))
    else:
        _stdout().print(reports.judgement_table(judgement), highlight=False)
    if not judgement.passed:
        raise typer.Exit(EXIT_FAILED)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("policy")(command)


def _forget(out: Path, stack: str) -> None:
    """Remove what an earlier run left, which would pass for this one's if it is killed."""
    for suffix in (".json", ".sarif"):
        documents.file(out, documents.PREVIEW, stack).with_suffix(suffix).unlink(missing_ok=True)


def _sarif_files(sarif: Path | None, out: Path | None, stack: str) -> list[Path]:
    return [
        *([sarif] if sarif else []),
        *([documents.file(out, documents.PREVIEW, stack).with_suffix(".sarif")] if out else []),
    ]


def _judgement(
    stack: PulumiStack, pack: Path, config: Path | None, within_s: float, *, debug: bool
) -> tuple[Judgement, list[Change]]:
    level = judging.configured_level(judging.configuration_files(pack, stack.folder, stack.name, config))
    with _progress(stack.name) as watch:
        preview = judging.preview_with_pack(stack, pack, config, within_s=within_s, watch=watch)
    if debug:
        _stderr().print(escape(preview.stdout + preview.stderr), highlight=False)
    return judge(stack.name, pack, preview, level), planned(preview.log.steps)


def _write(file: Path | None, document: reports.Document) -> None:
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if file is None:
        sys.stdout.write(text)
    else:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


@contextmanager
def _progress(stack: str) -> Iterator[Callable[[str], None] | None]:
    """Show what the preview is doing in a line on a terminal's stderr."""
    console = _stderr()
    if not console.is_terminal:
        yield None
        return
    with console.status(f"preview of {escape(stack)}") as status:
        yield lambda doing: status.update(f"preview of {escape(stack)}: {escape(doing)}")


def _stdout() -> Console:
    wide = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console() if wide else Console(width=_WIDTH)


def _stderr() -> Console:
    return Console(stderr=True, soft_wrap=True)
