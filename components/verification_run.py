"""The run of the verification job as a resource: Pulumi remembers what was proven and what it depended on.

The job runs as a process beside Pulumi. Secrets reach it by its environment only; the request is its standard input, a
file without a name, of which nothing is left however the run ends. A run that finds a fault is recorded too, with its
verdict: the next `up` sees it and runs again. The component decides whether a bad verdict fails the `up`, see
`verification.py`.
"""

import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

import pulumi
from pulumi import dynamic

from contract.documents import STANDARD_INPUT, unnamed_file
from contract.report_rows import read_report
from contract.stack_outputs import is_of_empty_pair
from contract.terminal import printable

PROJECT = Path(__file__).resolve().parents[1]
STOP_S = 20.0
POLL_S = 0.5
REPORTED_EVERY_S = 10.0  # a job that is silent for longer is reported to be at work
ASKED_WITHIN_S = 30.0
GRACE_S = 60.0  # the job ends by its own deadline first, and writes what it knows
SLACK_WEBHOOK = "SLACK_WEBHOOK"  # variable with the address, which is a secret
_PLAIN = ("trigger", "when", "reportDir")
_FOUND = ("passed", "verdict", "message", "checks", "report", "finished_at", "records_compared")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run found. `verdict` is pass, fail, unknown, or error if the job could not judge.

    When it ended, in ISO 8601, and how many records it compared are as in the report; None if it left none.
    """

    passed: bool
    verdict: str
    message: str
    checks: list[dict[str, Any]]
    report: str
    finished_at: str | None = None
    records_compared: int | None = None


def run(
    request: Mapping[str, Any],
    environment: Mapping[str, str],
    *,
    report_dir: Path,
    deadline_s: float,
    log: Callable[[str], None],
    state: str | None = None,
    destinations: Sequence[str] = (),
) -> Outcome:
    """Run the job; `log` gets each line of its progress. Never raises for what the job itself finds or fails at.

    `state` is the URI of what the job remembers, a folder's path below the project's folder unless it is absolute.
    `destinations` are the job's arguments by `destination_arguments`.
    """
    mirror = request["mirror"]["name"]
    folder = PROJECT / report_dir
    with _alone_in(folder, deadline_s, log) as alone:
        if not alone:
            return _error(mirror, f"must have {report_dir} to itself (got another run in it for {deadline_s:.0f} s).")
        (folder / "report.json").unlink(missing_ok=True)  # an earlier run's would pass for this one's
        with unnamed_file(request) as file:
            command = [sys.executable, "-m", "spark", "--request", STANDARD_INPUT, "--report-dir", str(folder)]
            command += [*(["--state", state] if state is not None else []), *destinations]
            code, last, in_time = _follow(command, {**os.environ, **environment}, deadline_s, log, file)
        if not in_time:
            return _error(mirror, f"must end within {deadline_s:.0f} s (got no end). Last line: {last}")
        try:
            report = read_report(folder / "report.json", "groups")
        except (OSError, ValueError) as error:
            missing = f"must leave a report (got none at {report_dir}: {error}). {last}"
            return _error(mirror, missing if code in (0, 1) else f"must be able to judge (exit {code}). {last}")
    if code not in (0, 1):
        message = f"must be able to judge (exit {code}). {report.get('error') or last}"
        return replace(_error(mirror, message), report=str(report_dir / "report.html"))
    allowed = set(report.get("allowed_unknown", request["limits"]["allow_unknown"]))
    return Outcome(
        passed=code == 0,
        verdict=str(report["verdict"]),
        message="" if code == 0 else _failure(mirror, report, allowed, report_dir),
        checks=[{key: check[key] for key in ("name", "ok", "expected", "observed")} for check in report["checks"]],
        report=str(report_dir / "report.html"),
        finished_at=report.get("finished_at"),
        records_compared=report.get("records_compared"),
    )


def source_has_records(request: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    """Whether the source holds a record of the mirrored topics now; False also if it does not answer in time."""
    with unnamed_file(request) as file, suppress(OSError, subprocess.TimeoutExpired):
        asked = subprocess.run(
            [sys.executable, "-m", "spark.source_records", STANDARD_INPUT],
            cwd=PROJECT,
            env={**os.environ, **environment},
            stdin=file,
            capture_output=True,
            timeout=ASKED_WITHIN_S,
            check=False,
        )
        return asked.returncode == 0
    return False


def destination_arguments(push_gateway: str | None, *, slack: bool, index: str | None) -> list[str]:
    """Return the job's arguments for where its result is sent; of the webhook only the variable that holds its address.

    `index` is the folder whose index lists the run with others.
    """
    runs = ["--index", index] if index is not None else []
    gateway = ["--push-gateway", push_gateway] if push_gateway is not None else []
    return [*runs, *gateway, *(["--slack-webhook", f"env:{SLACK_WEBHOOK}"] if slack else [])]


@contextmanager
def _alone_in(folder: Path, deadline_s: float, log: Callable[[str], None]) -> Iterator[bool]:
    """Keep the runs of other stacks of this name out of the report's folder; yields whether they left it in time.

    If the folder cannot be made, the job reports that.
    """
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not folder.is_dir():
        yield True
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        end = time.monotonic() + deadline_s
        alone = _locked(descriptor)
        if not alone:
            log(f"waiting up to {deadline_s:.0f} s for another run that writes its report to {folder}")
        while not alone and time.monotonic() < end:
            time.sleep(POLL_S)
            alone = _locked(descriptor)
        yield alone
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _failure(mirror: str, report: Mapping[str, Any], allowed: set[str], report_dir: Path) -> str:
    """One message: every check that does not hold, with what was observed."""
    bad = [
        printable(
            f"  {check['name']} {'failed' if check['ok'] is False else 'unknown'}: {check['observed']} "
            f"(expected {check['expected']})",
            lines=False,
        )
        for check in report["checks"]
        if check["ok"] is False or (check["ok"] is None and check["name"] not in allowed)
    ]
    fix = "Correct the cause and run `pulumi up` again: it verifies again until all checks hold."
    lines = [f"mirror {mirror}: verification must hold (got verdict {report['verdict']}).", *bad]
    return "\n".join([*lines, f"Report: {report_dir / 'report.html'}. {fix}"])


def _error(mirror: str, what: str) -> Outcome:
    message = printable(f"mirror {mirror}: verification {what}".rstrip())
    return Outcome(passed=False, verdict="error", message=message, checks=[], report="")


def _follow(
    command: list[str], environment: Mapping[str, str], deadline_s: float, log: Callable[[str], None], stdin: IO[str]
) -> tuple[int, str, bool]:
    """Run a command; return its exit code, its last line, and whether it ended in time."""
    last, in_time = "", threading.Event()
    in_time.set()
    with subprocess.Popen(
        command,
        cwd=PROJECT,
        env=dict(environment),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:

        def stop() -> None:
            in_time.clear()
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()

        watchdog = threading.Timer(deadline_s, stop)
        watchdog.daemon = True
        watchdog.start()
        began = said_at = time.monotonic()
        ended = threading.Event()

        def report() -> None:
            nonlocal said_at
            while not ended.wait(REPORTED_EVERY_S / 10):
                now = time.monotonic()
                if now - said_at >= REPORTED_EVERY_S:
                    said_at = now
                    log(f"still at work after {now - began:.0f} s of at most {deadline_s:.0f} s: {last or 'starting'}")

        reporting = threading.Thread(target=report, name="verification-progress", daemon=True)
        reporting.start()
        try:
            for line in process.stdout or ():
                if line.strip():
                    last, said_at = printable(line.strip()), time.monotonic()
                    log(last)
            code = process.wait()
        except BaseException:
            process.terminate()
            raise
        finally:
            watchdog.cancel()
            ended.set()
            reporting.join()
    return code, last, in_time.is_set()


class VerificationProvider(dynamic.ResourceProvider):
    """Runs the job on create and update. What it returns holds no secret."""

    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Run the job for the first time."""
        return dynamic.CreateResult(f"verification-{props['request']['mirror']['name']}", _run(props))

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Run the job again."""
        return dynamic.UpdateResult(_run(news))

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Return whether the job must run: always if so set, until it passes, and when what it depends on changed.

        It also must once there are records, if the last run passed because there were none.
        """
        return dynamic.DiffResult(changes=must_run(olds, news) or _proves_too_little(olds, news))


def must_run(olds: Mapping[str, Any], news: Mapping[str, Any]) -> bool:
    """Whether what is remembered (`olds`) still proves what is declared (`news`)."""
    return (
        news["when"] == "always"
        or olds.get("passed") is not True
        or any(olds.get(key) != news[key] for key in ("trigger", "reportDir"))
    )


def _proves_too_little(olds: Mapping[str, Any], news: Mapping[str, Any]) -> bool:
    unknown = {check["name"] for check in olds.get("checks") or () if check.get("ok") is None}
    request, environment = news.get("request"), news.get("environment")
    if not is_of_empty_pair(olds.get("records_compared"), unknown) or not isinstance(request, Mapping):
        return False
    return isinstance(environment, Mapping) and source_has_records(whole_numbers(request), environment)


def _run(props: Mapping[str, Any]) -> dict[str, Any]:
    outcome = run(
        whole_numbers(props["request"]),
        props["environment"],
        report_dir=Path(props["reportDir"]),
        deadline_s=float(props["deadlineSeconds"]) + GRACE_S,
        state=props.get("state"),
        destinations=props.get("told") or (),
        log=_log_progress,
    )
    return {**{key: props[key] for key in _PLAIN}, **asdict(outcome)}


def whole_numbers(value: Any) -> Any:
    """Return the value with whole numbers as such: they reach a provider as floating point."""
    if isinstance(value, Mapping):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _log_progress(line: str) -> None:
    """Show progress: the engine puts what a provider writes into the log of the `up`."""
    sys.stderr.write(f"verification: {line}\n")
    sys.stderr.flush()


class VerificationRun(dynamic.Resource, module="verification", name="Run"):
    """The latest run. Its inputs are what the proof depends on; the outputs are what the job found."""

    passed: pulumi.Output[bool]
    verdict: pulumi.Output[str]
    message: pulumi.Output[str]
    checks: pulumi.Output[list[Mapping[str, Any]]]
    report: pulumi.Output[str]
    finished_at: pulumi.Output[str | None]
    records_compared: pulumi.Output[int | None]

    def __init__(
        self, resource_name: str, props: Mapping[str, pulumi.Input[Any]], opts: pulumi.ResourceOptions
    ) -> None:
        """Register the run.

        `props` are request, environment, trigger, when, reportDir, deadlineSeconds, state, and told.
        """
        super().__init__(VerificationProvider(), resource_name, {**props, **dict.fromkeys(_FOUND)}, opts)
