"""A running audit: the process that reads both sides, and what its report says."""

import copy
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contract.audit import AuditBucket, AuditDocument
from sandbox.state import PROJECT

from .waiting import wait_until
from .written_topics import Bench

BUCKET_S = 4
WITHIN_S = 20
EVERY_S = 5  # each reading takes a core for a second
_ROUND_WITHIN_S = 60.0
_END_WITHIN_S = 60


class Auditor:
    """An audit of topics that no mirror touches. It can be killed, and started again with the same state."""

    def __init__(self, bench: Bench, topics: list[str], folder: Path) -> None:
        self.topics = topics
        self._folder = folder
        self._environment = {**os.environ, **bench.environment, "TMPDIR": str(folder)}  # what a kill leaves lies there
        self._report = folder / "audit.json"
        self._process: subprocess.Popen[bytes] | None = None
        request = copy.deepcopy(bench.request)
        nothing: dict[str, Any] = {"connect_url": None, "offset_storage_topic": None, "connectors": {}}
        nothing |= {"internal_topics": [], "resource": None, "active": None}
        request["mirror"] |= nothing | {"topics": topics, "replication_factor": 1}
        folder.mkdir(parents=True)
        (folder / "request.json").write_text(json.dumps(request))

    def start(self, *options: str) -> None:
        """Start the process."""
        times = ("--bucket", str(BUCKET_S), "--within", str(WITHIN_S), "--every", str(EVERY_S))
        paths = ("--request", "request.json", "--state", "state", "--report", "audit.json")
        with (self._folder / "audit.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "spark", "audit", *self._absolute(paths), *times, *options],
                cwd=PROJECT,
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """End it and its JVM with SIGKILL, as a node that is lost does."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_END_WITHIN_S)

    def stop(self) -> int:
        """Ask it to end; returns its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(_END_WITHIN_S)

    def leave_planned(self, role: str, topic: str, more: int) -> None:
        """Leave what a kill leaves in front of a batch's end: it is planned, with so many more records of a topic."""
        checkpoint = self._folder / "state" / "checkpoints" / role
        last = max(int(one.name) for one in (checkpoint / "commits").glob("[0-9]*"))
        version, metadata, offsets = (checkpoint / "offsets" / f"{last}").read_text().splitlines()
        planned = json.loads(offsets)
        planned[topic] = {partition: offset + more for partition, offset in planned[topic].items()}
        (checkpoint / "offsets" / f"{last + 1}").write_text("\n".join((version, metadata, json.dumps(planned))))

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        """What it has printed so far."""
        return (self._folder / "audit.log").read_text(errors="replace")

    def document(self) -> AuditDocument:
        """Its newest report."""
        return AuditDocument.model_validate_json(self._report.read_text())

    def wait(self, what: str, condition: Callable[[AuditDocument], object]) -> AuditDocument:
        """Wait until a report that is written from now on meets the condition."""
        began = self._report.stat().st_mtime_ns if self._report.exists() else 0

        def met() -> bool:
            assert self.running, self.log()
            newer = self._report.exists() and self._report.stat().st_mtime_ns > began
            return newer and bool(condition(self.document()))

        wait_until(what, met, _ROUND_WITHIN_S)
        return self.document()

    def _absolute(self, pairs: tuple[str, ...]) -> list[str]:
        return [one if one.startswith("--") else str(self._folder / one) for one in pairs]


@contextmanager
def auditing(bench: Bench, topics: list[str], folder: Path) -> Iterator[Auditor]:
    """Yield an audit that is not started yet; it is killed in the end if it still runs."""
    auditor = Auditor(bench, topics, folder)
    try:
        yield auditor
    finally:
        if auditor.running:
            auditor.kill()


def faults(document: AuditDocument) -> dict[tuple[str, int, int], AuditBucket]:
    """The buckets that did not close well, by topic, partition and the number of the bucket since the audit began."""
    bucket_ms = document.bucket_seconds * 1000
    return {(one.topic, one.partition, (one.start_ms - document.from_ms) // bucket_ms): one for one in document.faults}
