"""Runs Pulumi's preview of a stack with the policy pack and follows its event log.

Owns the process: its deadline, its interruption, and the folder of its log, which only its owner can read and which is
gone afterwards. Pulumi replaces secrets in that log by `[secret]`.
"""

import contextlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ops import interruption
from ops.connection import no_pulumi
from ops.errors import OpsError
from ops.policy import configuration
from ops.policy.events import Log, read
from ops.shell import say, terminated_gently
from ops.size_clients import count

# Pulumi offers --event-log, by which its own Automation API learns what happens, only with this.
_WITH_EVENT_LOG = {"PULUMI_DEBUG_COMMANDS": "true", "PULUMI_SKIP_UPDATE_CHECK": "true"}
_LOOK_S = 0.5
# A first interrupt lets Pulumi end what it is doing, a second one stops it at once.
INTERRUPTS = ((signal.SIGINT, 30.0), (signal.SIGINT, 10.0), (signal.SIGKILL, 10.0))
_NAMED_MAX = 3


class Asked(Protocol):
    """What `run` needs to know of a preview, of an update or of a refresh. `within_s` is its deadline."""

    @property
    def stack(self) -> str:
        """Name of the stack."""
        ...

    @property
    def folder(self) -> Path:
        """Folder of Pulumi.yaml."""
        ...

    @property
    def within_s(self) -> float:
        """Seconds after which it is given up."""
        ...

    def command(self, log: Path) -> list[str]:
        """Pulumi's command line, which writes its events to the log."""
        ...


@dataclass(frozen=True, kw_only=True)
class Request:
    """One preview to run, judged by a policy pack if there is one. `within_s` is its deadline.

    `stack_file` is read in place of the stack's own. `config` goes on top of `policy.<stack>.json` beside the project.
    """

    stack: str
    folder: Path
    pack: Path | None
    config: Path | None
    within_s: float
    stack_file: Path | None = None

    def command(self, log: Path) -> list[str]:
        """Return Pulumi's command line."""
        chosen = configuration.on_top(self.folder, self.stack, self.config)
        configured = configuration.for_pulumi(chosen, log.parent) if self.pack else []
        options = ["--non-interactive", "--color", "never", "--event-log", str(log)]
        pack = ["--policy-pack", str(self.pack.resolve()), *configured] if self.pack else []
        file = ["--config-file", str(self.stack_file.resolve())] if self.stack_file else []
        return ["pulumi", "preview", "--stack", self.stack, *file, *pack, *options]


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What a preview told: its event log, its exit code, and what it wrote for people."""

    log: Log
    exit_code: int
    stdout: str
    stderr: str

    @property
    def succeeded(self) -> bool:
        """Whether Pulumi ended with exit code 0 and its event log, written to its end, tells of no other result."""
        return self.exit_code == 0 and self.log.succeeded


def run(request: Asked, environment: Mapping[str, str], watch: Callable[[str], None] | None) -> Preview:
    """Run the preview to its end; `watch`, if there is one, is told from time to time what it is doing.

    Raises OpsError if Pulumi is missing or does not end in time. Whatever ends this function also ends Pulumi.
    """
    with tempfile.TemporaryDirectory(prefix="rt-inventory-policy-") as name, terminated_gently():
        folder = Path(name)
        log, stdout, stderr = folder / "events.json", folder / "stdout", folder / "stderr"
        process: subprocess.Popen[bytes] | None = None
        with stdout.open("wb") as out, stderr.open("wb") as err:
            try:
                with interruption.held_back():
                    process = subprocess.Popen(
                        request.command(log),
                        cwd=request.folder,
                        env={**environment, **_WITH_EVENT_LOG},
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=err,
                        start_new_session=True,
                    )
                code = _follow(process, request, log, watch)
            except FileNotFoundError as error:
                if process is not None:
                    raise
                if not request.folder.is_dir():
                    raise OpsError(f"folder {request.folder}: must exist, with Pulumi.yaml in it.") from error
                raise no_pulumi(request.stack) from error
            finally:
                if process is not None:
                    interruption.end(process, INTERRUPTS)
        said, complained = (path.read_text(encoding="utf-8", errors="replace") for path in (stdout, stderr))
        found = Preview(log=_read(log), exit_code=code, stdout=said, stderr=complained)
        if found.succeeded:
            for plugin in found.log.premature:
                say(f"warning: stack {request.stack}: {plugin} Pulumi succeeded all the same.")
        return found


def _follow(process: "subprocess.Popen[bytes]", request: Asked, path: Path, watch: Callable[[str], None] | None) -> int:
    deadline = time.monotonic() + request.within_s
    size = -1
    while time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=_LOOK_S)
        if watch is not None and (now := path.stat().st_size if path.exists() else 0) != size:
            size = now
            watch(_doing(_read(path)))
    raise OpsError(
        f"stack {request.stack}: preview must end within {request.within_s:g} s (got no end; {_doing(_read(path))}). "
        "Give it longer with --within, or look why: pulumi preview."
    )


def _doing(log: Log) -> str:
    """What the preview is busy with."""
    if log.ended:
        return "waiting for Pulumi to end"
    if not log.started:
        return "waiting for Pulumi and the policy pack to start"
    known = log.resources
    names = [str(known[urn]) for urn in log.waiting if urn in known]
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    what = f"{', '.join(names[:_NAMED_MAX])}{more}" if names else "the program"
    return f"{count(len(known), 'resource')} seen, waiting for {what}"


def _read(path: Path) -> Log:
    if not path.exists():
        return read(())
    with path.open(encoding="utf-8", errors="replace") as lines:
        return read(lines)
