"""The commands `python -m ops offsets ...`. Both clusters come from the outputs of the stack with the mirror.

Owns options, and which questions are asked. Does not own which offsets are right, nor how they are set.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from contract.fields import VerificationError
from kafka.cluster import Cluster
from ops.connection import PROJECT
from ops.console import EXIT_FAILED, AsJson, Debug, ProjectFolder, Text, guard, log, show, stderr
from ops.errors import OpsError
from ops.offsets import current_offsets, entries, offset_plan
from ops.offsets.entries import Entry, EntryFile
from ops.offsets.offset_plan import OffsetSelection, Origin, exact_offsets
from ops.recovery import break_glass
from ops.recovery.break_glass import BreakGlass
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.operation import default_report_dir, require_yes
from ops.verify import label_of

Side = Literal["source", "target"]
Stack = Annotated[str, typer.Option("--stack", "-s", help="Stack that declares the mirror.")]
MirrorName = Annotated[str | None, typer.Option("--mirror", help="Mirror; not needed if the stack has one.")]
Groups = Annotated[
    list[str] | None,
    typer.Option("--group", "-g", help="Consumer group; again for more. Without it all mirrored ones."),
]
Topics = Annotated[list[str] | None, typer.Option("--topic", "-t", help="Topic; once for all, or once a position.")]
Partitions = Annotated[list[int] | None, typer.Option("--partition", "-p", min=0, help="Partition, once a position.")]
Offsets = Annotated[
    list[int] | None, typer.Option("--offset", "-o", min=0, help="Offset of the next record, once a position.")
]
On = Annotated[Side, typer.Option("--on", help="Side whose groups' offsets are meant.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be set and change nothing.")]
ReportDir = Annotated[
    Path | None,
    typer.Option("--report-dir", help="Folder for the job's report. Else reports/STACK-MIRROR-offsets-TIME."),
]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""Offsets of consumer groups, and of applications that keep their own: show, translate, keep, set.

MirrorMaker's translation skips nothing but makes a group read records again, often thousands. The verification job
finds each record on both sides by its content; [bold]--exact[/bold] and [bold]translate[/bold] use that: nothing is
skipped and nothing comes again.""",
)


@app.command("show")
def show_command(
    stack: Stack = "stg",
    mirror: MirrorName = None,
    group: Groups = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Run the verification job: exact offsets, what is skipped and read again.")
    ] = False,
    report_dir: ReportDir = None,
    without_pulumi: BreakGlass = False,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show the offsets of groups on both sides, their lag, and what going on at the target would cost.

    Example: [bold]python -m ops offsets show --stack stg --group orders --exact[/bold]

    What a group would read again is computed as in [bold]status[/bold]: by offsets, so it is about right;
    [bold]--exact[/bold] counts it by the records. Positions in partitions that never had a record are left out. Nothing
    is changed and no group is joined.
    """
    with guard(as_json, debug, VerificationError):
        known = break_glass.loader(without_pulumi)(stack, mirror, os.environ, folder)
        rows, unseen = current_offsets.collect(known, group or [], os.environ, log)
        for line in unseen:
            log(f"warning: {line}")
        report = None
        if exact and rows:
            tp = report_dir or default_report_dir("offsets", known)
            found, faults, report = current_offsets.judged_groups(known, group or [], tp, os.environ, log)
            _warn(faults)
            rows = current_offsets.with_exact_offsets(rows, found)
        document = {
            "stack": known.stack,
            "mirror": known.mirror,
            "exact": exact,
            "positions": [one.as_json() for one in rows],
            "unseen": unseen,
            "report": str(report) if report else None,
        }
        show(as_json, document, lambda: current_offsets.current_offsets_table(known.mirror, rows, exact=exact))


@app.command("translate")
def translate_command(
    stack: Stack = "stg",
    mirror: MirrorName = None,
    side: Annotated[Side, typer.Option("--from", help="Side that the offsets are of.")] = "source",
    topic: Topics = None,
    partition: Partitions = None,
    offset: Offsets = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="JSON, or lines of topic,partition,offset, instead of options.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="File for the translated positions: .csv for lines, else JSON.")
    ] = None,
    report_dir: ReportDir = None,
    without_pulumi: BreakGlass = False,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Translate offsets of one side exactly to the other, for applications that keep their own offsets.

    Example: [bold]python -m ops offsets translate --stack stg --topic items --partition 0 --offset 123[/bold]

    An offset is that of the next record to read. Its counterpart on the other side is the offset of the same record,
    found by its content; where that has not arrived yet, the end of what has. Topics are named as on the side that the
    offsets are of. Exit 1 if a position has no counterpart.
    """
    with guard(as_json, debug, VerificationError):
        options = entries.of_options(topic or [], partition or [], offset or []) if topic or partition or offset else []
        if bool(options) == (file is not None):
            raise OpsError("translate: --topic, --partition and --offset, or --file must be given, not both.")
        held = _read(file, side) if file is not None else EntryFile(entries=options)
        known = break_glass.loader(without_pulumi)(stack, mirror, os.environ, folder)
        _require_same_mirror(file, held, known)
        tp = report_dir or default_report_dir("offsets", known)
        outcome = current_offsets.translate(known, side, held.entries, tp, os.environ, log)
        _warn(outcome.faults)
        there: Side = "target" if side == "source" else "source"
        if out is not None:
            _write(out, there, _translated(outcome.rows), known)
        document = {
            "stack": known.stack,
            "mirror": known.mirror,
            "from": side,
            "positions": [one.as_json(side) for one in outcome.rows],
            "faults": outcome.faults,
            "report": str(outcome.report),
        }
        show(as_json, document, lambda: current_offsets.translations_table(side, outcome.rows))
    if any(one.exact is None for one in outcome.rows):
        raise typer.Exit(EXIT_FAILED)


@app.command("export")
def export_command(
    out: Annotated[Path, typer.Option("--out", help="File to write: .csv for lines, else JSON.")],
    stack: Stack = "stg",
    mirror: MirrorName = None,
    group: Groups = None,
    on: On = "target",
    without_pulumi: BreakGlass = False,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write groups' positions of one side into a file.

    Example: [bold]python -m ops offsets export --stack stg --on source --group orders --out orders.csv[/bold]

    Lines are what kafka-consumer-groups.sh --reset-offsets --from-file reads: topic,partition,offset for one group,
    group,topic,partition,offset for several.
    """
    with guard(as_json, debug, VerificationError):
        known = break_glass.loader(without_pulumi)(stack, mirror, os.environ, folder)
        cluster = _connect(known, on)
        found = current_offsets.committed(known, cluster, on, group or [])
        _write(out, on, found, known)
        names = sorted({str(one.group) for one in found})
        document = {"file": str(out), "side": on, "groups": names, "positions": len(found)}
        show(as_json, document, lambda: Text(f"{len(found)} positions of {', '.join(names)} on the {on}: {out}"))


@app.command("import")
def import_command(
    file: Annotated[Path, typer.Option("--file", "-f", help="File of `export` or `translate`, or such lines.")],
    stack: Stack = "stg",
    mirror: MirrorName = None,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", "-g", help="Groups of the file to set; for lines without a group, whose they are."),
    ] = None,
    on: On = "target",
    yes: Yes = False,
    dry_run: DryRun = False,
    without_pulumi: BreakGlass = False,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Set groups' offsets on one side to those of a file, while the groups are inactive there.

    Example: [bold]python -m ops offsets import --stack stg --file orders.csv --group orders[/bold]

    Shows a plan and asks. All of it is checked first: when one offset is wrong, none is set.
    """
    with guard(as_json, debug, VerificationError):
        held = _read(file, on)
        wanted = entries.by_group(held.entries, group or [])
        known = break_glass.loader(without_pulumi)(stack, mirror, os.environ, folder)
        _require_same_mirror(file, held, known)
        cluster = _connect(known, on)
        planned = offset_plan.plan(known, cluster, on, wanted)
        complete = _carry_out(cluster, planned, yes=yes, dry_run=dry_run, as_json=as_json)
    if not complete:
        raise typer.Exit(EXIT_FAILED)


@app.command("set")
def set_command(
    group: Annotated[list[str], typer.Option("--group", "-g", help="Consumer group; again for more.")],
    stack: Stack = "stg",
    mirror: MirrorName = None,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="To what the records prove: the exact counterpart of the other side's offsets."),
    ] = False,
    to_synced: Annotated[
        bool, typer.Option("--to-synced", help="To MirrorMaker's newest checkpoints; only on the target.")
    ] = False,
    topic: Topics = None,
    partition: Partitions = None,
    offset: Offsets = None,
    on: On = "target",
    yes: Yes = False,
    dry_run: DryRun = False,
    report_dir: ReportDir = None,
    without_pulumi: BreakGlass = False,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Set groups' offsets on one side while the groups are inactive there.

    Example: [bold]python -m ops offsets set --stack stg --group orders --exact[/bold]

    Shows a plan and asks. All of it is checked first: when one offset is wrong, none is set. It is safe to run again.
    Exit 1 if a position is left as it is because it has no exact counterpart.
    """
    with guard(as_json, debug, VerificationError):
        options = entries.of_options(topic or [], partition or [], offset or []) if topic or partition or offset else []
        if sum((exact, to_synced, bool(options))) != 1:
            raise OpsError(
                "set: --exact, --to-synced, or --topic, --partition and --offset must be given, one of them."
            )
        if to_synced and on == "source":
            raise OpsError(
                "set: --to-synced must be on the target (got --on source): checkpoints lead to the target only."
            )
        known = break_glass.loader(without_pulumi)(stack, mirror, os.environ, folder)
        cluster = _connect(known, on)
        if exact:
            chosen = exact_offsets(
                known,
                Origin(_connect(known, _other(on)), _other(on)),
                group,
                report_dir or default_report_dir("offsets", known),
                os.environ,
                log,
            )
        elif to_synced:
            chosen = OffsetSelection(wanted=offset_plan.synced_offsets(known, cluster, group))
        else:
            chosen = OffsetSelection(wanted=entries.by_group(options, group))
        planned = offset_plan.plan(
            known, cluster, on, chosen.wanted, left=chosen.left, notes=chosen.notes, within_logs=not options
        )
        complete = _carry_out(cluster, planned, yes=yes, dry_run=dry_run, as_json=as_json)
    if not complete:
        raise typer.Exit(EXIT_FAILED)


def register(parent: typer.Typer) -> None:
    """Add the commands to the command line."""
    parent.add_typer(app, name="offsets")


def _carry_out(cluster: Cluster, planned: offset_plan.Plan, *, yes: bool, dry_run: bool, as_json: bool) -> bool:
    """Set what is planned if that is wanted; return whether every position had an offset to set."""
    if not dry_run:
        if planned.pending:
            stderr().print(offset_plan.plan_table(planned))
            require_yes(yes, f"Set {planned.pending} offsets on {planned.cluster}?", as_json)
        offset_plan.carry_out(cluster, planned)
    number = 0 if dry_run else planned.pending
    show(as_json, {**planned.as_json(), "dryRun": dry_run, "set": number}, lambda: offset_plan.plan_table(planned))
    log(f"{number} of {len(planned.changes)} offsets were set." if number else "Nothing was set.")
    return not planned.left


def _connect(known: MirrorContext, side: Side) -> Cluster:
    cluster = known.source() if side == "source" else known.target()
    cluster.connect()
    return cluster


def _other(side: Side) -> Side:
    return "target" if side == "source" else "source"


def _read(file: Path, side: Side) -> EntryFile:
    found = entries.read(file)
    if found.side not in (None, side):
        raise OpsError(
            f"file {file}: must hold offsets of the {side} (got side {found.side}). Translate them first: "
            f"python -m ops offsets translate --from {found.side} --file {file} --out OTHER."
        )
    return found


def _require_same_mirror(file: Path | None, found: EntryFile, known: MirrorContext) -> None:
    """Raise OpsError if a file names another stack or mirror: its offsets are of other clusters."""
    stack, mirror = found.stack or known.stack, found.mirror or known.mirror
    if (label_of(stack), mirror) != (known.label, known.mirror):
        raise OpsError(
            f"file {file}: must hold offsets of mirror {known.mirror} of stack {known.stack} (got mirror {mirror} of "
            f"stack {stack}). Offsets of other clusters are of other records here. Give "
            f"--stack {stack} --mirror {mirror}, or a file of this mirror."
        )


def _write(out: Path, side: Side, found: Sequence[Entry], known: MirrorContext) -> None:
    entries.write(out, side, found, {"stack": known.stack, "mirror": known.mirror})


def _translated(rows: Sequence[current_offsets.Translated]) -> list[Entry]:
    return [
        Entry(group=one.entry.group, topic=one.topic, partition=one.entry.partition, offset=one.exact)
        for one in rows
        if one.exact is not None
    ]


def _warn(faults: Sequence[str]) -> None:
    for fault in faults:
        log(f"warning: {fault}")
