"""The demo: two clusters and a mirror come up, the source is lost, a consumer group goes on at the target.

Every stage uses what a user would use: `python -m sandbox`, Pulumi, and `python -m ops` as processes of their own.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from . import demo_groups, demo_summary, demo_usage
from .demo_process import StageError, Stages
from .processes import Processes, resident_bytes
from .pulumi import Pulumi, PulumiError
from .state import SandboxState, write_private
from .toolchain import Tools

RECORDS = 10_000
READ_AT_SOURCE = 4_000
GROUP = "inventory-app"
TOPIC = "items"
SOURCE, TARGET = "dev", "stg"

UP_S, PULUMI_S, CLIENT_S, SYNC_S, VERIFY_S, DOWN_S = 120, 420, 120, 90, 300, 90
_MIB = 1024 * 1024


class Demo:
    """One run of the demo in one state folder."""

    def __init__(self, state: SandboxState, tools: Tools, console: Console) -> None:
        self._state = state
        self._console = console
        self._pulumi = Pulumi(state, tools)
        self._processes = Processes(state)
        self._stages = Stages(console, state.logs)
        self._folder = state.reports / f"demo-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"

    def run(self, *, keep: bool) -> int:
        """Run all stages; return 0 if nothing was lost, 1 if something was or a stage failed, 130 if interrupted.

        The sandbox is stopped whatever happens, unless `keep` is set and all stages ran.
        """
        self._state.create()
        stop = True
        try:
            summary = self._stages_in_order()
            self._console.print()
            self._console.print(demo_summary.table(summary))
            self._say(f"report: {summary['report']}", f"summary: {self._folder / 'summary.json'}")
            if keep:
                self._say("", self._how_to_go_on())
                stop = False
            return 0 if summary["nothingLost"] else 1
        except (StageError, PulumiError) as error:
            self._explain(error)
            return 1
        except KeyboardInterrupt:
            self._say(f"interrupted during: {self._stages.current}")
            return 130
        finally:
            if stop:
                self._down()

    def _stages_in_order(self) -> dict[str, Any]:
        stages = self._stages
        with stages.stage("sandbox up"):
            self._sandbox("sandbox-up", "up", timeout_s=UP_S)
        for stack in (SOURCE, TARGET):
            with stages.stage(f"pulumi up -s {stack}"):
                result = self._pulumi.run(stack, "up", "--yes", "--skip-preview", timeout_s=PULUMI_S)
                write_private(self._state.log(f"demo.pulumi-up-{stack}"), result.stdout + result.stderr)
        outputs = {stack: self._pulumi.outputs(stack, show_secrets=True) for stack in (SOURCE, TARGET)}

        with stages.stage(f"produce {RECORDS:,} records at {SOURCE}"):
            sent = self._ops("produce", SOURCE, "--topic", TOPIC, "--count", str(RECORDS), keys="produced")
            stages.say(f"{sent['delivered']} acknowledged, {sent['failed']} failed")
        with stages.stage(f"group {GROUP} reads {READ_AT_SOURCE:,} at {SOURCE} and stops"):
            self._consume(SOURCE, GROUP, "--max", str(READ_AT_SOURCE), keys="read-at-source")
        with stages.stage(f"the mirror synchronises {GROUP}"):
            before, after = demo_groups.wait_until_synced(outputs[SOURCE], outputs[TARGET], GROUP, SYNC_S)
            for (topic, partition), offset in sorted(before.items()):
                stages.say(f"{topic}-{partition}: {offset} at {SOURCE}, {after.get((topic, partition))} at {TARGET}")
        with stages.stage("verify"):
            verdict = self._verify()
            stages.say(f"verdict {verdict['verdict']}, {verdict['recordsCompared']} records compared")
        resident_mib = sum(resident_bytes(entry) for entry in self._processes.entries()) // _MIB

        with stages.stage(f"lose {SOURCE}"):
            for name in self._source_brokers(outputs):
                self._sandbox("lose-source", "kill", name, "--hold", timeout_s=CLIENT_S)
        with stages.stage(f"group {GROUP} goes on at {TARGET}"):
            self._consume(TARGET, GROUP, "--until-end", keys="read-at-target")
        with stages.stage("count every record at the target"):
            self._consume(TARGET, f"{GROUP}-audit", "--until-end", "--no-commit", keys="at-target")
        return self._summary(resident_mib, verdict)

    def _summary(self, resident_mib: int, verdict: Mapping[str, Any]) -> dict[str, Any]:
        ids = {name: demo_summary.read_ids(self._keys(name)) for name in ("produced", "at-target", "read-at-source")}
        outcome = demo_summary.count(
            ids["produced"],
            ids["at-target"],
            ids["read-at-source"],
            demo_summary.read_ids(self._keys("read-at-target")),
        )
        summary = demo_summary.document(
            outcome,
            self._stages.seconds,
            resident_mib=resident_mib,
            verdict=str(verdict["verdict"]),
            report=str(verdict["report"]),
        )
        demo_summary.write(self._folder / "summary.json", summary)
        return summary

    def _sandbox(self, label: str, *arguments: str, timeout_s: float) -> str:
        return self._stages.run(label, [sys.executable, "-m", "sandbox", *arguments], self._environment(), timeout_s)

    def _ops(self, command: str, stack: str, *arguments: str, keys: str | None = None) -> dict[str, Any]:
        extra = ["--keys-out", str(self._keys(keys))] if keys else []
        output = self._stages.run(
            f"{command}-{stack}",
            [sys.executable, "-m", "ops", command, "--stack", stack, "--json", *arguments, *extra],
            self._environment(),
            VERIFY_S if command == "verify" else CLIENT_S,
        )
        document: dict[str, Any] = json.loads(output)
        return document

    def _consume(self, stack: str, group: str, *arguments: str, keys: str) -> None:
        read = self._ops("consume", stack, "--topic", TOPIC, "--group", group, *arguments, keys=keys)
        where = ", ".join(
            f"{part['partition']}: {part['firstOffset']}-{part['lastOffset']}" for part in read["partitions"]
        )
        self._stages.say(f"{read['records']} records ({where})")

    def _verify(self) -> dict[str, Any]:
        return self._ops("verify", TARGET, "--report-dir", str(self._folder))

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self._pulumi.environment()}

    def _keys(self, name: str) -> Path:
        return self._folder / f"{name}.tsv"

    def _source_brokers(self, outputs: Mapping[str, Any]) -> list[str]:
        cluster = outputs[SOURCE]["cluster"]
        prefix = f"kafka.{cluster['namespace']}.{cluster['name']}."
        return [name for name in self._processes.names() if name.startswith(prefix)]

    def _how_to_go_on(self) -> str:
        outputs = {stack: self._pulumi.outputs(stack, show_secrets=True) for stack in (SOURCE, TARGET)}
        clients = {stack: demo_usage.client_properties(self._state, stack, outputs[stack]) for stack in outputs}
        brokers = self._source_brokers(outputs)
        return demo_usage.text(self._state, clients, brokers[0], outputs[TARGET]["cluster"]["namespace"])

    def _explain(self, error: Exception) -> None:
        self._console.print(
            f"[red]failed[/red]  {escape(self._stages.current)}: {escape(str(error))}", soft_wrap=True, highlight=False
        )
        if isinstance(error, StageError):
            self._say(*(f"  | {line}" for line in error.tail))
            self._say(*([f"log: {error.log}"] if error.log else []))
        self._say(f"all logs: {self._state.logs}")

    def _say(self, *lines: str) -> None:
        for line in lines:
            self._console.print(escape(line), highlight=False, soft_wrap=True)

    def _down(self) -> None:
        """Stop the sandbox; a second Ctrl-C does not stop the stopping."""
        before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            with self._stages.stage("sandbox down"):
                self._sandbox("sandbox-down", "down", timeout_s=DOWN_S)
        except StageError as error:
            self._explain(error)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def refuse_if_running(state: SandboxState) -> None:
    """Raise StageError if a sandbox runs in this folder: the demo starts from nothing and stops everything."""
    processes = Processes(state)
    running = [name for name in processes.names() if processes.alive(name)]
    if running:
        raise StageError(
            f"demo: state folder must not hold a running sandbox (got {state.path} with {len(running)} processes). "
            "Stop it: python -m sandbox down."
        )
