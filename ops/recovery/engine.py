"""What commands ask of Pulumi: settings in a stack file, and an `up` that carries them out.

Owns the command lines, their deadline and how they are interrupted. Does not own what is set.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ops import interruption
from ops.connection import explain_pulumi, no_pulumi
from ops.errors import OpsError
from settings import NAMESPACE
from settings.files import read_values

SWITCH = "RT_INVENTORY_SWITCH"
"""Names the mirror whose active side an `up` may change; without it an `up` refuses to."""
CONFIG_WITHIN_S = 60.0
# A first interrupt lets Pulumi write its state and release its lock, a second one stops it at once.
_INTERRUPTS = ((signal.SIGINT, 60.0), (signal.SIGINT, 10.0), (signal.SIGKILL, 10.0))
_SAID_MAX = 1500
_DEFAULTS = {"active": "source", "state": "running"}
_ARGUMENT_MAX = 128 * 1024  # bytes of one argument that Linux takes
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Pulumi on one stack of one project folder. `up_within_s` is the deadline of one `up`.

    `repr` leaves out the environment: a passphrase may be in it.
    """

    folder: Path
    stack: str
    environment: Mapping[str, str] = field(repr=False)
    up_within_s: float = 1800.0

    def declare(self, mirror: str, values: Mapping[str, str | None]) -> None:
        """Write settings of a mirror into the stack file, comments left as they are; None takes one out."""
        place, known = self._mirror(mirror)
        for key, value in values.items():
            path = f"{NAMESPACE}:mirrors[{place}].{key}"
            if value is not None:
                self._config("set", path, value)
            elif key in known:
                self._config("rm", path)

    def insist_as_deployed(self, mirror: str, deployed: Mapping[str, str]) -> None:
        """Raise OpsError if the stack file says other things of a mirror than are deployed: it is not the newest."""
        _, known = self._mirror(mirror)
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

        `mirror` is the one whose active side may change.
        """
        command = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive", "--color", "never"]
        switch = {SWITCH: mirror} if mirror is not None else {}
        environment = {**self.environment, **switch, "PULUMI_SKIP_UPDATE_CHECK": "true"}
        say(f"pulumi up -s {self.stack}")
        self._run([*command, "--stack", self.stack], environment, self.up_within_s, "up")

    @property
    def _file(self) -> Path:
        return self.folder / f"Pulumi.{self.stack}.yaml"

    def _mirror(self, name: str) -> tuple[int, Mapping[str, Any]]:
        """Place and entry of a mirror in the stack file; raises OpsError unless there is one, SettingsError."""
        mirrors = read_values(self._file).get("mirrors") or []
        found = [(at, each) for at, each in enumerate(mirrors) if isinstance(each, dict) and each.get("name") == name]
        if len(found) != 1:
            raise OpsError(f"file {self._file}: mirrors must hold {name} once (got {len(found)} times).")
        return found[0]

    def _config(self, *words: str) -> None:
        command = ["pulumi", "config", words[0], "--path", *words[1:], "--stack", self.stack, "--non-interactive"]
        self._run(command, self.environment, CONFIG_WITHIN_S, f"config {words[0]}")

    def _run(self, command: list[str], environment: Mapping[str, str], within_s: float, words: str) -> None:
        with tempfile.TemporaryFile() as said:
            try:
                child = subprocess.Popen(
                    command,
                    cwd=self.folder,
                    env=dict(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except FileNotFoundError as error:
                raise no_pulumi(self.stack) from error
            try:
                code = child.wait(timeout=within_s)
            except subprocess.TimeoutExpired as error:
                _interrupt(child)
                raise OpsError(
                    f"stack {self.stack}: `pulumi {words}` must end within {within_s:.0f} s (got no end; "
                    f"{_last(said.fileno())})."
                ) from error
            except BaseException:
                _interrupt(child)
                raise
            if code != 0:
                text = _last(said.fileno())
                wrong = f"stack {self.stack}: `pulumi {words}` must succeed ({text})."
                raise OpsError(explain_pulumi(self.stack, text) or wrong)


def _interrupt(child: "subprocess.Popen[bytes]") -> None:
    """Stop a child that runs; whoever asks this process to end meanwhile waits until that is done."""
    asked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in asked}
    try:
        interruption.end(child, _INTERRUPTS)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _last(descriptor: int) -> str:
    """The end of what Pulumi wrote, on one line. It shows secrets as `[secret]`."""
    text = os.pread(descriptor, 1 << 20, max(0, os.fstat(descriptor).st_size - (1 << 20))).decode(errors="replace")
    problems = re.findall(r"^\s*(?:error|\S+ error):.*$", text, re.MULTILINE)
    lines = problems or text.splitlines()[-12:]
    return " ".join(line.strip() for line in lines if line.strip())[-_SAID_MAX:] or "no message"
