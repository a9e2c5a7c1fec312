"""What commands ask of Pulumi: settings in a stack file, and an `up` that carries them out.

Owns the command lines, their deadline, how they are interrupted, and the wait for somebody else's update of the stack.
Does not own what is set, nor the file's text.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ops import interruption
from ops.connection import explain_pulumi, no_pulumi
from ops.errors import OpsError
from ops.exit_codes import explain_exit
from ops.recovery import stack_lock
from ops.recovery.stack_text import change_mirror
from settings import NAMESPACE
from settings.files import read_values

SWITCH = "RT_INVENTORY_SWITCH"
"""Names the mirror whose active side an `up` may change; without it an `up` refuses to."""
CONFIG_WITHIN_S = 60.0
# A first interrupt lets Pulumi write its state and release its lock, a second one stops it at once.
_INTERRUPTS = ((signal.SIGINT, 60.0), (signal.SIGINT, 10.0), (signal.SIGKILL, 10.0))
LOCK_WITHIN_S = 900.0
LOCK_EVERY_S, LOCK_REPORTED_EVERY_S = 5.0, 10.0
_SAID_MAX = 1500
_DEFAULTS = {"active": "source", "state": "running"}
_ARGUMENT_MAX = 128 * 1024  # bytes of one argument that Linux takes
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Pulumi on one stack of one project folder. `up_within_s` is the deadline of one `up`.

    `lock_within_s` is for how long an `up` waits while the stack is locked by somebody else's update.
    `repr` leaves out the environment: a passphrase may be in it.
    """

    folder: Path
    stack: str
    environment: Mapping[str, str] = field(repr=False)
    up_within_s: float = 1800.0
    lock_within_s: float = LOCK_WITHIN_S

    def declare(self, mirror: str, values: Mapping[str, str | None]) -> None:
        """Write settings of a mirror into the stack file, all else of it left as it is; None takes one out."""
        self._mirror(mirror)
        change_mirror(self._file, mirror, values)

    def insist_as_deployed(self, mirror: str, deployed: Mapping[str, str]) -> None:
        """Raise OpsError if the stack file says other things of a mirror than are deployed: it is not the newest."""
        known = self._mirror(mirror)
        different = [
            f"{key} {known.get(key, _DEFAULTS[key])}"
            for key in deployed
            if known.get(key, _DEFAULTS[key]) != deployed[key]
        ]
        if different:
            told = ", ".join(f"{key} {value}" for key, value in deployed.items())
            raise OpsError(
                f"file {self._file}: mirror {mirror} must be as it is deployed, {told} (got {', '.join(different)}). "
                f"Take the newest stack file, or carry this one out: pulumi up -s {self.stack}. Nothing was changed."
            )

    def write(self, file: Path, values: Mapping[str, Any]) -> None:
        """Write whole settings into a stack file or a copy of one; what is not changed keeps its comments."""
        for key, value in values.items():
            # As `pulumi config --json` shows them: an objectValue says that the value is one.
            entry = {"value": json.dumps(value), "objectValue": {}, "secret": False}
            document = json.dumps({f"{NAMESPACE}:{key}": entry})
            if len(document.encode()) >= _ARGUMENT_MAX:
                raise OpsError(
                    f"file {file}: {key} must fit into a command line (got {len(document.encode())} bytes, allowed "
                    f"{_ARGUMENT_MAX - 1}). Change it by hand."
                )
            command = ["pulumi", "config", "set-all", "--json", document, "--config-file", str(file.resolve())]
            command += ["--stack", self.stack, "--non-interactive"]
            self._run(command, self.environment, CONFIG_WITHIN_S, "config set-all")
        written = read_values(file)
        if wrong := [key for key, value in values.items() if written.get(key) != value]:
            raise OpsError(f"file {file}: {', '.join(wrong)} must be what was written (Pulumi wrote something else).")

    def up(self, mirror: str | None, say: Say) -> None:
        """Carry the settings out; raises OpsError with Pulumi's own words if it fails or does not end in time.

        `mirror` is the one whose active side may change. While somebody else's update runs it waits, and reports whose.
        """
        command = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive", "--color", "never"]
        switch = {SWITCH: mirror} if mirror is not None else {}
        environment = {**self.environment, **switch, "PULUMI_SKIP_UPDATE_CHECK": "true"}
        say(f"pulumi up -s {self.stack}")
        deadline, reported_at = time.monotonic() + self.lock_within_s, float("-inf")
        while True:
            try:
                self._run([*command, "--stack", self.stack], environment, self.up_within_s, "up", say)
                return
            except _LockedError as error:
                left_s = deadline - time.monotonic()
                if error.lock.is_left_over or left_s <= 0:
                    raise self._locked(error.lock) from None
                if time.monotonic() - reported_at >= LOCK_REPORTED_EVERY_S:
                    reported_at = time.monotonic()
                    say(f"  stack {self.stack} is locked by {error.lock}: waiting, for {left_s:.0f} s at most")
                time.sleep(min(LOCK_EVERY_S, left_s))

    def _locked(self, lock: stack_lock.StackLock) -> OpsError:
        if lock.is_left_over:
            return OpsError(
                f"stack {self.stack}: must not be locked (locked by {lock}, which has ended). Release its lock, then "
                f"run this again: pulumi cancel --yes -s {self.stack}."
            )
        return OpsError(
            f"stack {self.stack}: somebody else's update must end within {self.lock_within_s:.0f} s (locked by {lock})."
            " Wait for it, or if it was killed release its lock, then run this again: "
            f"pulumi cancel --yes -s {self.stack}."
        )

    @property
    def _file(self) -> Path:
        return self.folder / f"Pulumi.{self.stack}.yaml"

    def _mirror(self, name: str) -> Mapping[str, Any]:
        """Entry of a mirror in the stack file; raises OpsError unless there is one, SettingsError."""
        mirrors = read_values(self._file).get("mirrors") or []
        found: list[dict[str, Any]] = [each for each in mirrors if isinstance(each, dict) and each.get("name") == name]
        if len(found) != 1:
            raise OpsError(f"file {self._file}: mirrors must hold {name} once (got {len(found)} times).")
        return found[0]

    def _run(
        self,
        command: list[str],
        environment: Mapping[str, str],
        within_s: float,
        words: str,
        say: Say = lambda _: None,
    ) -> None:
        child: subprocess.Popen[bytes] | None = None
        with tempfile.TemporaryFile() as said:
            try:
                with interruption.held_back():
                    child = subprocess.Popen(
                        command,
                        cwd=self.folder,
                        env=dict(environment),
                        stdin=subprocess.DEVNULL,
                        stdout=said,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                code = child.wait(timeout=within_s)
            except FileNotFoundError as error:
                raise no_pulumi(self.stack) from error
            except BaseException as error:
                late = isinstance(error, subprocess.TimeoutExpired)
                if child is not None:
                    if not late:
                        patience_s = _INTERRUPTS[0][1]
                        say(f"  waiting until `pulumi {words}` has written its state, for {patience_s:.0f} s at most")
                    _interrupt(child)
                if not late:
                    raise
                raise OpsError(
                    f"stack {self.stack}: `pulumi {words}` must end within {within_s:.0f} s (got no end; "
                    f"{_last(_written(said.fileno()))})."
                ) from error
            if code != 0:
                written = _written(said.fileno())
                if (lock := stack_lock.read(written)) is not None:
                    raise _LockedError(self.stack, lock)
                text = _last(written)
                wrong = f"stack {self.stack}: `pulumi {words}` must succeed ({explain_exit(code)}; {text})."
                raise OpsError(explain_pulumi(self.stack, text, code) or wrong)


def _interrupt(child: "subprocess.Popen[bytes]") -> None:
    """Stop a child that runs; whoever asks this process to end meanwhile waits until that is done."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in interruption.ASKED}
    try:
        interruption.end(child, _INTERRUPTS)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _LockedError(OpsError):
    """The stack is locked by somebody else's update."""

    def __init__(self, stack: str, lock: stack_lock.StackLock) -> None:
        super().__init__(f"stack {stack}: must not be locked (locked by {lock}). Wait for it, then run this again.")
        self.lock = lock


def _written(descriptor: int) -> str:
    """The end of what Pulumi wrote, at most 1 MiB."""
    return os.pread(descriptor, 1 << 20, max(0, os.fstat(descriptor).st_size - (1 << 20))).decode(errors="replace")


def _last(text: str) -> str:
    """The end of what Pulumi wrote, on one line. It shows secrets as `[secret]`."""
    problems = re.findall(r"^\s*(?:error|\S+ error):.*$", text, re.MULTILINE)
    lines = problems or text.splitlines()[-12:]
    return " ".join(line.strip() for line in lines if line.strip())[-_SAID_MAX:] or "no message"
