"""What `python -m sandbox demo` does: bring two clusters and a mirror up, fail over, and count every record.

Every stage uses what a user would use: Pulumi and `python -m ops` as processes of their own. Where the stages run is a
`DemoClusters`: the sandbox, or the clusters of the kubeconfig. Owns the stages, the question before something is
created in a cluster, and the exit codes: 2 if the demo was refused and nothing was done.
"""

import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.markup import escape

from sandbox.demo import INDENT, SOURCE, TARGET, StageError, Stages, current, measurements, uninterrupted
from sandbox.demo.in_sandbox import SandboxClusters, refuse_if_running
from sandbox.demo.kubernetes import DemoRefusedError
from sandbox.network_command import conditions
from sandbox.pulumi import PulumiError
from sandbox.state import SandboxState
from sandbox.toolchain import locate
from settings.text import wrap_for_stream

RECORDS = 10_000
READ_AT_SOURCE = 4_000
GROUP = "inventory-app"
TOPIC = "items"

CLIENT_S, SYNC_S, VERIFY_S, RECOVERY_S = 120, 90, 300, 900
Outputs = Mapping[str, Mapping[str, Any]]


class DemoClusters(Protocol):
    """Where the demo runs: what begins and ends there, and how the source is left."""

    timeout_factor: float
    """How many times longer than in the sandbox a command may take."""
    failover: tuple[str, ...]
    """Options of `ops failover`."""

    @property
    def logs(self) -> Path:
        """Folder of the logs."""
        ...

    @property
    def reports(self) -> Path:
        """Folder of the reports, which stay."""
        ...

    @property
    def project(self) -> Path:
        """Folder with the stack files that a failover changes: copies, so that the work tree stays as it is."""
        ...

    def environment(self) -> dict[str, str]:
        """The environment of the commands."""
        ...

    def begin(self, stages: Stages) -> None:
        """Make everything ready for the first `pulumi up`."""
        ...

    def up(self, stages: Stages, stack: str) -> None:
        """Bring a stack up."""
        ...

    def outputs(self, stack: str) -> dict[str, Any]:
        """A stack's outputs, secrets in plain text."""
        ...

    def resident_mib(self) -> int | None:
        """Memory of all that runs, if it is known."""
        ...

    def lose_source(self, stages: Stages, outputs: Outputs) -> None:
        """Take the source away, where the demo may."""
        ...

    def bring_source_back(self, stages: Stages, outputs: Outputs) -> None:
        """Undo it."""
        ...

    def next_steps(self) -> str:
        """What to type next where everything is kept. Holds no secret."""
        ...

    def end(self, stages: Stages, *, keep: bool, complete: bool) -> None:
        """Remove what the demo made; raises StageError if something is left."""
        ...


class Demo:
    """One run of the demo."""

    def __init__(self, clusters: DemoClusters, console: Console) -> None:
        self._clusters = clusters
        self._console = console
        self._stages = Stages(console, clusters.logs)
        self._folder = clusters.reports / f"demo-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"

    def run(self, *, keep: bool) -> int:
        """Run all stages; return 0 if nothing was lost, 1 if something was or a stage failed, 130 if interrupted.

        Whatever happens, the clusters are asked to remove what was made.
        """
        complete, code = False, 1
        try:
            summary = self._stages_in_order(keep)
            self._console.print()
            self._console.print(measurements.summary_table(summary))
            self._print(f"report: {summary['report']}", f"summary: {self._folder / 'summary.json'}")
            if keep:
                self._print("", self._clusters.next_steps())
            complete, code = True, 0 if summary["nothingLost"] else 1
        except (StageError, PulumiError) as error:
            self._explain(error)
        except KeyboardInterrupt:
            self._print(f"interrupted during: {self._stages.current}")
            code = 130
        finally:
            removed = self._end(keep, complete)
        return code if removed else code or 1

    def _stages_in_order(self, keep: bool) -> dict[str, Any]:
        stages, clusters = self._stages, self._clusters
        clusters.begin(stages)
        for stack in (SOURCE, TARGET):
            with stages.stage(f"pulumi up -s {stack}"):
                clusters.up(stages, stack)
        outputs = {stack: clusters.outputs(stack) for stack in (SOURCE, TARGET)}

        with stages.stage(f"produce {RECORDS:,} records at {SOURCE}"):
            sent = self._ops("produce", SOURCE, "--topic", TOPIC, "--count", str(RECORDS), keys="produced")
            stages.report(f"{sent['delivered']} acknowledged, {sent['failed']} failed")
        with stages.stage(f"group {GROUP} reads {READ_AT_SOURCE:,} at {SOURCE} and stops"):
            self._consume(SOURCE, GROUP, "--max", str(READ_AT_SOURCE), keys="read-at-source")
        with stages.stage(f"the mirror synchronises {GROUP}"):
            within_s = SYNC_S * clusters.timeout_factor
            before, after = measurements.wait_until_synced(outputs[SOURCE], outputs[TARGET], GROUP, within_s)
            for (topic, partition), offset in sorted(before.items()):
                stages.report(f"{topic}-{partition}: {offset} at {SOURCE}, {after.get((topic, partition))} at {TARGET}")
        with stages.stage("verify"):
            verdict = self._verify()
            stages.report(f"verdict {verdict['verdict']}, {verdict['recordsCompared']} records compared")
        resident_mib = clusters.resident_mib()

        clusters.lose_source(stages, outputs)
        options = clusters.failover
        with stages.stage(" ".join(["ops failover --to", TARGET, *options])):
            self._recover("failover", "--to", TARGET, *options)
        with stages.stage(f"group {GROUP} goes on at {TARGET}"):
            self._consume(TARGET, GROUP, "--until-end", keys="read-at-target")
        with stages.stage("count every record at the target"):
            self._consume(TARGET, f"{GROUP}-audit", "--until-end", "--no-commit", keys="at-target")
        if keep:
            clusters.bring_source_back(stages, outputs)
            with stages.stage(f"ops failback --to {SOURCE}"):
                self._recover("failback", "--to", SOURCE)
        return self._summary(resident_mib, verdict)

    def _summary(self, resident_mib: int | None, verdict: Mapping[str, Any]) -> dict[str, Any]:
        ids = {name: measurements.read_ids(self._keys(name)) for name in ("produced", "at-target", "read-at-source")}
        outcome = measurements.count_records(
            ids["produced"],
            ids["at-target"],
            ids["read-at-source"],
            measurements.read_ids(self._keys("read-at-target")),
        )
        summary = measurements.summary_document(
            outcome,
            self._stages.seconds,
            resident_mib=resident_mib,
            verdict=str(verdict["verdict"]),
            report=str(verdict["report"]),
        )
        measurements.write_summary(self._folder / "summary.json", summary)
        return summary

    def _ops(self, command: str, stack: str, *arguments: str, keys: str | None = None) -> dict[str, Any]:
        extra = ["--keys-out", str(self._keys(keys))] if keys else []
        output = self._stages.run(
            f"{command}-{stack}",
            [sys.executable, "-m", "ops", command, "--stack", stack, "--json", *arguments, *extra],
            self._clusters.environment(),
            (VERIFY_S if command == "verify" else CLIENT_S) * self._clusters.timeout_factor,
        )
        document: dict[str, Any] = json.loads(output)
        return document

    def _consume(self, stack: str, group: str, *arguments: str, keys: str) -> None:
        read = self._ops("consume", stack, "--topic", TOPIC, "--group", group, *arguments, keys=keys)
        where = ", ".join(
            f"{part['partition']}: {part['firstOffset']}-{part['lastOffset']}" for part in read["partitions"]
        )
        self._stages.report(f"{read['records']} records ({where})")

    def _verify(self) -> dict[str, Any]:
        return self._ops("verify", TARGET, "--report-dir", str(self._folder))

    def _recover(self, command: str, *arguments: str) -> None:
        """Run a failover or a failback as the people on call do, and show its last lines."""
        report = self._folder / command
        words = [
            sys.executable,
            "-m",
            "ops",
            command,
            *arguments,
            "--yes",
            "-C",
            str(self._clusters.project),
            "--report-dir",
            str(report),
        ]
        within_s = RECOVERY_S * self._clusters.timeout_factor
        environment = {**self._clusters.environment(), "COLUMNS": str(self._console.width - INDENT)}
        for line in self._stages.run(command, words, environment, within_s).splitlines():
            self._stages.report(line.rstrip())

    def _keys(self, name: str) -> Path:
        return self._folder / f"{name}.tsv"

    def _explain(self, error: Exception) -> None:
        self._console.print(
            f"[red]failed[/red]  {escape(self._stages.current)}: {escape(str(error))}", soft_wrap=True, highlight=False
        )
        if isinstance(error, StageError):
            self._print(*(f"  | {line}" for line in error.tail))
            self._print(*([f"log: {error.log}"] if error.log else []))
        self._print(f"all logs: {self._clusters.logs}")

    def _print(self, *lines: str) -> None:
        for line in lines:
            self._console.print(escape(line), highlight=False, soft_wrap=True)

    def _end(self, keep: bool, complete: bool) -> bool:
        try:
            with uninterrupted():
                self._clusters.end(self._stages, keep=keep, complete=complete)
        except StageError as error:
            self._explain(error)
            return False
        return True


_FAILED, _REFUSED = 1, 2


def in_sandbox(state: SandboxState, console: Console, *, keep: bool, latency: str | None = None) -> int:
    """Run the demo in a sandbox that is started for it, with this round trip between the sites: `100ms`.

    Raises NetworkUsageError for a latency that is none.
    """
    conditions(latency, None, None)
    try:
        refuse_if_running(state)
    except StageError as error:
        return _refused(error)
    return Demo(SandboxClusters(state, locate(), latency), console).run(keep=keep)


def on_current(
    console: Console,
    contexts: Mapping[str, str | None],
    release: Path | None,
    expose: str | None,
    *,
    keep: bool,
    yes: bool,
) -> int:
    """Run the demo on the clusters of the kubeconfig, once the user has agreed to what it will make there."""
    folder = current.default_folder(os.environ)
    try:
        with current.alone(folder):
            clusters = current.prepare(folder, contexts, release, expose, keep=keep)
            for line in clusters.plan():
                console.print(escape(line), soft_wrap=True)
            if not yes and not _agreed(console):
                console.print("Nothing was done.")
                return 0
            return Demo(clusters, console).run(keep=keep)
    except DemoRefusedError as error:
        return _refused(error)


def remove(console: Console) -> int:
    """Remove what a demo has left in clusters."""
    folder = current.default_folder(os.environ)
    stages = Stages(console, folder / "logs")
    try:
        with current.alone(folder):
            if not current.remove(folder, stages):
                console.print(escape(f"No demo is left (state: {folder})."), soft_wrap=True)
    except DemoRefusedError as error:
        return _refused(error)
    except StageError as error:
        for line in (str(error), *(f"  | {line}" for line in error.tail), f"log: {error.log}"):
            console.print(escape(line), soft_wrap=True)
        return _FAILED
    return 0


def _agreed(console: Console) -> bool:
    if not sys.stdin.isatty():
        raise DemoRefusedError("demo: must be confirmed (got no terminal to ask). Add YES=1.")
    try:
        return console.input("Go on? (y/N) ").strip().lower() in ("y", "yes")
    except EOFError:  # the end of the input
        return False


def _refused(error: Exception) -> int:
    sys.stderr.write(f"{wrap_for_stream(str(error), sys.stderr)}\n")
    return _REFUSED
