"""The command `ops verify`: runs the verification job for a mirror of a stack, and prints the verdict.

The job is a process of its own. Other commands run it with `plan` and `run`.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.console import Group, RenderableType

from contract.documents import STANDARD_INPUT, unnamed_file
from contract.fields import url_problem
from contract.report_rows import read_report
from contract.stack_outputs import is_of_empty_pair as of_empty_pair
from ops.connection import PROJECT
from ops.console import (
    EXIT_FAILED,
    AdaptiveTable,
    AsJson,
    Column,
    Debug,
    ProjectFolder,
    Text,
    guard,
    log,
    show,
    terminated_gently,
)
from ops.errors import OpsError
from ops.pulumi import process
from ops.pulumi.stack import stack_outputs

EXIT_OK = 0
REPORTS = Path("reports")
DEADLINE_S = 900.0  # of a request that states none
GRACE_S = 60.0  # the job ends by its own deadline first, and writes what it knows
# The JVM of the job ignores SIGINT and ends with the job, which writes what it knows.
LADDER: process.SignalLadder = ((signal.SIGINT, 30.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 10.0))
KILLED_WITHIN_S = 10.0
POSITION_KEYS = (
    *("group", "topic", "partition"),
    *("committed", "synced", "lowest", "lag", "skipped", "repeated", "judged"),
)
"""What commands use of a report's row of a group's position, of which there may be a million."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One verification to run. `repr` shows the names of the secrets only."""

    stack: str
    mirror: str
    request: Mapping[str, Any]
    secrets: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Plan(stack={self.stack!r}, mirror={self.mirror!r}, secrets={sorted(self.secrets)})"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The job's result: its exit code (0 or 1), the report's content, and the folder of the reports.

    Of the rows of groups the report has POSITION_KEYS.
    """

    mirror: str
    exit_code: int
    report: Mapping[str, Any]
    report_dir: Path
    index_dir: Path | None = None

    @property
    def index(self) -> Path | None:
        """Path of the page that lists this run with others, if it is in one."""
        return self.index_dir / "index.html" if self.index_dir is not None else None

    @property
    def html(self) -> Path:
        """Path of the report to read."""
        return self.report_dir / "report.html"

    def as_json(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        return {
            "mirror": self.mirror,
            "verdict": self.report.get("verdict"),
            "recordsCompared": self.report.get("records_compared"),
            "seconds": self.report.get("seconds"),
            "checks": self.report.get("checks", []),
            "report": str(self.html),
            "reportJson": str(self.report_dir / "report.json"),
            "index": str(self.index) if self.index is not None else None,
        }


def label_of(stack: str) -> str:
    """Return the stack as its program and its metrics call it: of `acme/kafka/stg` the last part."""
    return stack.rpartition("/")[2]


def checks_of(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the checks of a run, each with `name` and `ok`: of a report all, of a stack output those that do not hold.

    A stack that an older release of this project has deployed exports all of them as well.
    """
    if found.get("checks") is not None:
        return [{"name": str(check.get("name")), "ok": check.get("ok")} for check in found["checks"]]
    answers = (("failed", False), ("unknown", None))
    return [{"name": name, "ok": ok} for key, ok in answers for name in str(found.get(key) or "").split(", ") if name]


def is_of_empty_pair(found: Mapping[str, Any]) -> bool:
    """Whether a run compared no record, for there was none, by the names of a stack output."""
    unknown = {check["name"] for check in checks_of(found) if check["ok"] is None}
    return of_empty_pair(found.get("recordsCompared"), unknown)


def plan(stack: str, outputs: Mapping[str, Any], mirror: str | None = None) -> Plan:
    """Return the verification of `mirror`, or of the stack's only mirror, from the stack's outputs."""
    requests: Mapping[str, Any] = outputs.get("verificationRequests") or {}
    if not requests:
        raise OpsError(
            f"stack {stack}: output verificationRequests must hold a mirror (got none). "
            "Name the stack that declares the mirror, as a rule the target's: --stack stg."
        )
    if mirror is None and len(requests) != 1:
        raise OpsError(f"stack {stack}: --mirror must be given (allowed {', '.join(sorted(requests))}).")
    name = mirror if mirror is not None else next(iter(requests))
    if name not in requests:
        raise OpsError(
            f"stack {stack}: --mirror must be one of the stack's (got {name!r}, allowed {', '.join(sorted(requests))})."
        )
    secrets = (outputs.get("verificationEnvironment") or {}).get(name) or {}
    return Plan(stack=stack, mirror=name, request={"stack": label_of(stack), **requests[name]}, secrets=secrets)


def new_report_dir(planned: Plan, folder: Path = REPORTS, moment: datetime | None = None) -> Path:
    """Make `<folder>/<stack>-<mirror>-<UTC time>` and return it: by a later second if another run has that one."""
    moment = moment or datetime.now(UTC)
    while True:
        made = folder / f"{planned.stack}-{planned.mirror}-{moment:%Y%m%dT%H%M%SZ}"
        try:
            made.mkdir(parents=True)
        except FileExistsError:
            moment += timedelta(seconds=1)
        except OSError as error:
            raise OpsError(
                f"verify: {folder} must be writable ({error.strerror}). Choose one with --report-dir."
            ) from None
        else:
            return made


def index_of(report_dir: Path) -> Path | None:
    """Return the folder whose index lists a run: the nearest one above its reports that is called `reports`, if any."""
    return next((folder for folder in report_dir.resolve().parents if folder.name == REPORTS.name), None)


def run(
    planned: Plan,
    report_dir: Path,
    environment: Mapping[str, str],
    log: Callable[[str], None],
    state: str | None = None,
    push_gateway: str | None = None,
    index: Path | None = None,
) -> Verdict:
    """Run the job and return its verdict.

    Secrets are in the child's environment only. The request is the job's standard input, a file without a name:
    nothing is left of it, however this command ends. The job ends by its own deadline; `GRACE_S` seconds after that it
    gets the signals of `LADDER`.

    Args:
        planned: the request, and the secrets that it names.
        report_dir: folder for the report.
        environment: environment of the job, without the secrets.
        log: gets each line of the job's progress.
        state: URI of the offsets that are verified already; a relative path is one below the working directory.
        push_gateway: address of a Prometheus push gateway that gets the metrics of the run.
        index: folder of the index that lists the run; None for the one of `index_of`.

    Raises:
        OpsError: the job could not judge (exit 2), or ended by itself; with its last line.
    """
    report_dir = report_dir.resolve()
    index = index.resolve() if index is not None else index_of(report_dir)
    (report_dir / "report.json").unlink(missing_ok=True)  # an earlier run's would pass for this one's
    timeout_s = planned.request.get("limits", {}).get("deadline_seconds", DEADLINE_S) + GRACE_S
    with unnamed_file(planned.request) as request:
        command = [sys.executable, "-m", "spark", "--request", STANDARD_INPUT, "--report-dir", str(report_dir)]
        command += ["--index", str(index)] if index is not None else []
        command += ["--state", _absolute(state)] if state is not None else []
        command += ["--push-gateway", push_gateway] if push_gateway is not None else []
        code, last = follow(command, {**environment, **planned.secrets}, log, timeout_s, request)
    try:
        report = read_report(report_dir / "report.json", "groups", *POSITION_KEYS)
    except (OSError, ValueError) as error:
        unreadable = f"report must be readable at {report_dir} ({error}). {last}"
        unable = f"verification must be able to judge (exit {code}). {last}".rstrip()
        problem = unreadable if code in (EXIT_OK, EXIT_FAILED) else unable
        raise OpsError(f"mirror {planned.mirror}: {problem}") from error
    if code not in (EXIT_OK, EXIT_FAILED):
        problem = f"verification must be able to judge (exit {code}). {report.get('error') or last}"
        raise OpsError(f"mirror {planned.mirror}: {problem} Report: {report_dir / 'report.html'}")
    listed = index if index is not None and (index / "index.html").is_file() else None
    return Verdict(mirror=planned.mirror, exit_code=code, report=report, report_dir=report_dir, index_dir=listed)


def _absolute(state: str) -> str:
    """Return the URI, or the absolute path of a folder: the job runs in another working directory."""
    return state if "://" in state or not state.strip() else str(Path(state).resolve())


def follow(
    command: list[str],
    environment: Mapping[str, str],
    log: Callable[[str], None],
    timeout_s: float,
    stdin: IO[str] | int = subprocess.DEVNULL,
) -> tuple[int, str]:
    """Run a command with `log` for each line of its output; return its exit code and its last line.

    It has a process group of its own, which ends with this function: at the deadline, or when an exception ends this
    command, the group gets the signals of `LADDER`.
    """
    with process.end_requests_deferred():
        child = subprocess.Popen(
            command,
            cwd=PROJECT,
            env=dict(environment),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    output = _Output(child, log)
    try:
        if output.follow(timeout_s):
            return child.wait(), output.last
        for number, within_s in LADDER:
            log(f"verification: no end within {timeout_s:.0f} s: {number.name}, and {within_s:.0f} s to end")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            if output.follow(within_s):
                break
        return child.wait(KILLED_WITHIN_S), f"It had not ended after {timeout_s:.0f} s and was stopped. {output.last}"
    except BaseException:
        log(f"waiting until the verification has ended, for {LADDER[0][1]:.0f} s at most before it is killed")
        process.stop(child, LADDER)
        raise
    finally:
        if child.stdout:
            child.stdout.close()


class _Output:
    """What a process writes, line by line, and its `last` line."""

    def __init__(self, child: "subprocess.Popen[bytes]", log: Callable[[str], None]) -> None:
        self.last = ""
        self._child, self._log = child, log
        self._pipe = child.stdout.fileno() if child.stdout else -1
        self._rest = b""

    def follow(self, within_s: float) -> bool:
        """Log each line until the process has ended; return whether it has ended within these seconds.

        The output of a process that it leaves behind is not waited for.
        """
        deadline = time.monotonic() + within_s
        while (left_s := deadline - time.monotonic()) > 0:
            ended = self._child.poll() is not None
            if not select.select([self._pipe], [], [], 0 if ended else min(left_s, process.POLL_S))[0]:
                if ended:
                    return True
                continue
            if not (read := os.read(self._pipe, 65536)):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(left_s)
                    self._add(b"\n")
                    return True
            self._add(read)
        return False

    def _add(self, read: bytes) -> None:
        *lines, self._rest = (self._rest + read).split(b"\n")
        for line in (each.decode(errors="replace").rstrip() for each in lines):
            if line:
                self.last = line.strip()
                self._log(line)


def verdict_table(outcome: Verdict) -> RenderableType:
    """Return the checks with what was expected and observed, the verdict and the report's path."""
    columns = Column("check", name=True), Column("holds"), Column("expected"), Column("observed")
    table = AdaptiveTable(f"mirror {outcome.mirror}", columns)
    for check in outcome.report.get("checks", []):
        table.add_row(
            str(check.get("name")),
            _mark(check.get("ok")),
            str(check.get("expected")),
            str(check.get("observed")),
        )
    runs = [f"all runs: {outcome.index}"] if outcome.index is not None else []
    return Group(table, f"verdict: [bold]{outcome.report.get('verdict')}[/bold]", f"report: {outcome.html}", *runs)


def _mark(ok: Any) -> Text:
    if ok is None:
        return Text("unknown", "yellow")
    return Text("yes", "green") if ok else Text("no", "red")


def command(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack that declares the mirror.")] = "stg",
    mirror: Annotated[str | None, typer.Option("--mirror", help="Mirror; not needed if the stack has one.")] = None,
    report_dir: Annotated[
        Path | None, typer.Option("--report-dir", help="Folder for the reports. [default: reports/STACK-MIRROR-TIME]")
    ] = None,
    state: Annotated[
        str | None, typer.Option("--state", metavar="URI", help="Folder or s3://bucket/prefix of verified offsets.")
    ] = None,
    push_gateway: Annotated[
        str | None, typer.Option("--push-gateway", metavar="URL", help="Push the metrics to this gateway as well.")
    ] = None,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Prove that every record and every group's offset is on the target: run the verification job, print the verdict.

    Example: [bold]python -m ops verify --stack stg[/bold]

    Exit 0 if every check holds, apart from unknown ones that allowUnknown names, 1 if one fails or is unknown, 2 if the
    job could not run. With --state only what is new since the last run with it is compared. An unreachable gateway
    changes neither verdict nor exit code.
    """
    with guard(as_json, debug), terminated_gently():
        if push_gateway is not None and (problem := url_problem(push_gateway)):
            raise OpsError(f"verify: --push-gateway {problem}.")
        planned = plan(stack, stack_outputs(stack, os.environ, folder), mirror)
        reports = report_dir or new_report_dir(planned)
        outcome = run(planned, reports, os.environ, log, state, push_gateway)
        show(as_json, outcome.as_json(), lambda: verdict_table(outcome))
    if outcome.exit_code:
        raise typer.Exit(EXIT_FAILED)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("verify")(command)
