"""A process that looks whenever it is asked: `python -m ops.metrics.looker`. One that hangs is ended, whatever it does.

A line on standard input asks for a look, a line of JSON on standard output is what it brought. It ends with its input,
once it has looked: so it does not outlive for long who started it.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ops.errors import OpsError
from ops.interruption import end
from ops.metrics.families import of_json
from ops.metrics.looking import Look, look

_MODULE = "ops.metrics.looker"
_PATIENCE = ((signal.SIGTERM, 1.0), (signal.SIGKILL, 5.0))


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is looked at."""

    stack: str
    mirror: str | None
    folder: str
    verified: bool


@dataclass
class Looker:
    """The other side of such a process, which is started when it is needed."""

    task: Task
    environment: Mapping[str, str]
    _process: "subprocess.Popen[bytes] | None" = None
    _over: bool = False
    _said: "queue.Queue[bytes]" = field(default_factory=queue.Queue)

    def look(self, within_s: float) -> Look:
        """Return a new look; raises OpsError if the process brings none in time, and ends it."""
        process = self._started()
        try:
            if process.stdin is None:
                raise OSError
            process.stdin.write(b"\n")
            process.stdin.flush()
            line = self._said.get(timeout=within_s)
        except queue.Empty:
            self.close()
            raise OpsError(f"stack {self.task.stack}: a look must end within {within_s:.0f} s (got no end).") from None
        except OSError:
            line = b""
        if not line:
            code = self.close()
            raise OpsError(f"stack {self.task.stack}: the process that looks must not end by itself (got exit {code}).")
        return of_document(json.loads(line))

    def end(self) -> None:
        """End the process for good: no look starts another one."""
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
        end(process, _PATIENCE)
        return process.returncode

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._over:
            raise OpsError(f"stack {self.task.stack}: no look must begin any more.")
        if self._process is None:
            self._said = queue.Queue()
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, json.dumps(asdict(self.task))],
                env=dict(self.environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            threading.Thread(target=_listen, args=(self._process, self._said), daemon=True).start()
        return self._process


def _listen(process: "subprocess.Popen[bytes]", said: "queue.Queue[bytes]") -> None:
    """Hand on each line, at last an empty one."""
    stdout = process.stdout
    for line in stdout or ():
        said.put(line)
    said.put(b"")


def as_document(found: Look) -> dict[str, Any]:
    """Return a look as JSON values."""
    return {
        "stack": found.stack,
        "mirrors": list(found.mirrors),
        "errors": dict(found.errors),
        "unknown": list(found.unknown),
        "metrics": [one.as_json() for one in found.families],
    }


def of_document(document: Mapping[str, Any]) -> Look:
    """Return the look of a document by `as_document`."""
    return Look(
        stack=document["stack"],
        families=[of_json(one) for one in document["metrics"]],
        mirrors=tuple(document["mirrors"]),
        errors=document["errors"],
        unknown=tuple(document["unknown"]),
    )


def main() -> None:
    """Look as often as somebody asks."""
    task = Task(**json.loads(sys.argv[1]))
    # What a library prints must not be taken for a look.
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for _ in sys.stdin.buffer:
        found = look(task.stack, task.mirror, os.environ, Path(task.folder), verified=task.verified)
        told.write(json.dumps(as_document(found)) + "\n")
        told.flush()


if __name__ == "__main__":
    main()
