"""Child process of the exporter, `python -m ops.metrics.collector`: takes snapshots on request.

A line on standard input asks for a snapshot, a line of JSON on standard output is the answer. It ends with its input,
once it has answered, so it does not outlive the exporter for long. The exporter ends it if it hangs.
"""

import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from ops import verify
from ops.connection import PROJECT
from ops.errors import OpsError
from ops.inspection import snapshot
from ops.inspection.probes import FORESEEN, ClusterReadings, MirrorReadings, certificates_of, error_text, run_probes
from ops.metrics import mirror_metrics
from ops.metrics.mirror_metrics import Family, merged, of_json
from ops.pulumi.process import stop
from ops.pulumi.stack import stack_outputs
from ops.recovery import mirror_context
from ops.recovery.mirror_context import MirrorContext

MIRRORS_AT_ONCE = 4
MIRROR_WITHIN_S = snapshot.READ_WITHIN_S + 10.0
TIMESTAMP, DURATION, ERROR = (
    f"{mirror_metrics.PREFIX}_status_timestamp_seconds",
    f"{mirror_metrics.PREFIX}_status_duration_seconds",
    f"{mirror_metrics.PREFIX}_status_error",
)
_HELP = {
    TIMESTAMP: "When the last snapshot that succeeded was taken.",
    DURATION: "How long the last snapshot that succeeded took.",
    ERROR: "1 if the last snapshot failed, so that nothing else is known now; 0 if it succeeded.",
}


@dataclass(frozen=True, kw_only=True)
class MetricsSnapshot:
    """The metrics of one collection, the mirrors that were inspected, and what went wrong.

    `errors` are by mirror, "" for the stack itself; `unknown` are sentences on what could not be read of a mirror that
    was inspected.
    """

    stack: str
    families: list[Family] = field(default_factory=list)
    mirrors: tuple[str, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


def collect(
    stack: str,
    mirror: str | None,
    environment: Mapping[str, str],
    folder: Path = PROJECT,
    *,
    verified: bool = True,
    debug: bool = False,
) -> MetricsSnapshot:
    """Take a snapshot of one mirror of a stack, or of each. An error is in the result; an unforeseen one by its type.

    Args:
        stack: name of the stack that declares the mirrors.
        mirror: name of one of them; None for all.
        environment: for Pulumi and the kubeconfig.
        folder: project folder of the stack.
        verified: whether the metrics of the last verification are among the others.
        debug: whether an unforeseen error is raised.
    """
    began, label = time.monotonic(), verify.label_of(stack)
    try:
        outputs = stack_outputs(stack, environment, folder)
        names = [mirror] if mirror is not None else mirror_context.names(outputs)
        if not names:
            verify.plan(stack, outputs)  # raises the error for that
        known = {name: mirror_context.of_outputs(stack, outputs, name, environment, folder) for name in names}
    except Exception as error:
        if debug and not isinstance(error, FORESEEN):
            raise
        return failed(stack, mirror, error_text(error))
    probes = {name: partial(_mirror, one, environment, began, verified=verified) for name, one in known.items()}
    rounds = math.ceil(len(probes) / MIRRORS_AT_ONCE)
    results = run_probes(probes, rounds * MIRROR_WITHIN_S, debug=debug, at_once=MIRRORS_AT_ONCE)
    found = [
        one
        for name in names
        for one in (results.found[name][0] if name in results.found else [status(ERROR, 1, label, name)])
    ]
    unknown = [
        f"mirror {name}: {what} is unknown: {why}"
        for name in names
        for what, why in (results.found[name][1].items() if name in results.found else ())
    ]
    return MetricsSnapshot(
        stack=label, families=merged(found), mirrors=tuple(names), errors=results.problems, unknown=tuple(unknown)
    )


def failed(stack: str, mirror: str | None, why: str, mirrors: Iterable[str] = ()) -> MetricsSnapshot:
    """Return a snapshot without metrics but the error of the mirror, or of those that are known, else of the stack."""
    names, label = tuple(mirrors) or (mirror or "",), verify.label_of(stack)
    families = merged(status(ERROR, 1, label, name) for name in names)
    return MetricsSnapshot(
        stack=label, families=families, mirrors=names if names != ("",) else (), errors=dict.fromkeys(names, why)
    )


def status(name: str, value: float, stack: str, mirror: str) -> Family:
    """Return a metric about the snapshot of a mirror."""
    return Family(name=name, text=_HELP[name], samples=[({"stack": stack, "mirror": mirror}, float(value))])


def _mirror(
    pair: MirrorContext, environment: Mapping[str, str], began: float, *, verified: bool
) -> tuple[list[Family], Mapping[str, str]]:
    """Return the metrics of a mirror, and what could not be learned of it with the reasons."""
    seen = snapshot.collect(pair, environment, more=_certificate_probes)
    families = [
        *mirror_metrics.families(seen, [certificate for found in seen.more.found.values() for certificate in found]),
        status(TIMESTAMP, seen.at, pair.label, pair.mirror),
        status(DURATION, time.monotonic() - began, pair.label, pair.mirror),
        status(ERROR, 0, pair.label, pair.mirror),
        *(mirror_metrics.verification_families(pair) if verified else []),
    ]
    # Journal and break-glass copy need rights in Kubernetes that an exporter may lack: no metric is missing for that.
    of_kubernetes = (snapshot.RECOVERY, snapshot.ACTIVE_SIDE)
    unknown = {what: why for what, why in seen.unknown.items() if what not in of_kubernetes}
    return families, {**unknown, **seen.more.problems}


def _certificate_probes(readings: MirrorReadings) -> snapshot.Probes:
    sides = {"source": readings.source, "target": readings.target}
    return {f"certificates of the {role}": partial(_certificates, role, one) for role, one in sides.items()}


def _certificates(role: str, readings: ClusterReadings) -> list[tuple[str, datetime]]:
    return [(f"{role}: {one.what}", one.ends) for one in certificates_of(readings)]


_MODULE = "ops.metrics.collector"
_PATIENCE = ((signal.SIGTERM, 1.0), (signal.SIGKILL, 5.0))


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is collected."""

    stack: str
    mirror: str | None
    folder: str
    verified: bool


@dataclass
class CollectorProcess:
    """The exporter's end of such a process, which is started when it is needed."""

    task: Task
    environment: Mapping[str, str] = field(repr=False)
    _process: "subprocess.Popen[bytes] | None" = None
    _over: bool = False
    _answers: "queue.Queue[bytes]" = field(default_factory=queue.Queue)

    def collect(self, within_s: float) -> MetricsSnapshot:
        """Return a new snapshot; raises OpsError if the process brings none in time, and ends it."""
        process = self._started()
        try:
            if process.stdin is None:
                raise OSError
            process.stdin.write(b"\n")
            process.stdin.flush()
            line = self._answers.get(timeout=within_s)
        except queue.Empty:
            self.close()
            raise OpsError(
                f"stack {self.task.stack}: a snapshot must end within {within_s:.0f} s (got no end)."
            ) from None
        except OSError:
            line = b""
        if not line:
            code = self.close()
            raise OpsError(f"stack {self.task.stack}: the collector process must not end by itself (got exit {code}).")
        return of_document(json.loads(line))

    def end(self) -> None:
        """End the process for good: no snapshot starts another one."""
        self._over = True
        self.close()

    def close(self) -> int | None:
        """End the process with everything that it has started; return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        with suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        stop(process, _PATIENCE)
        return process.returncode

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._over:
            raise OpsError(f"stack {self.task.stack}: no snapshot must begin any more.")
        if self._process is None:
            self._answers = queue.Queue()
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, json.dumps(asdict(self.task))],
                env=dict(self.environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            threading.Thread(target=_listen, args=(self._process, self._answers), daemon=True).start()
        return self._process


def _listen(process: "subprocess.Popen[bytes]", answers: "queue.Queue[bytes]") -> None:
    """Put each line of a process into the queue, and an empty one when it has ended."""
    stdout = process.stdout
    for line in stdout or ():
        answers.put(line)
    answers.put(b"")


def as_document(found: MetricsSnapshot) -> dict[str, Any]:
    """Return a snapshot as JSON values."""
    return {
        "stack": found.stack,
        "mirrors": list(found.mirrors),
        "errors": dict(found.errors),
        "unknown": list(found.unknown),
        "metrics": [one.as_json() for one in found.families],
    }


def of_document(document: Mapping[str, Any]) -> MetricsSnapshot:
    """Return the snapshot of a document by `as_document`."""
    return MetricsSnapshot(
        stack=document["stack"],
        families=[of_json(one) for one in document["metrics"]],
        mirrors=tuple(document["mirrors"]),
        errors=document["errors"],
        unknown=tuple(document["unknown"]),
    )


def main() -> None:
    """Take a snapshot for each line on standard input."""
    task = Task(**json.loads(sys.argv[1]))
    # What a library prints must not be taken for a snapshot.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for _ in sys.stdin.buffer:
        found = collect(task.stack, task.mirror, os.environ, Path(task.folder), verified=task.verified)
        answers.write(json.dumps(as_document(found)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
