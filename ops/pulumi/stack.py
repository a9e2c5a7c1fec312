"""One Pulumi stack of one project folder: everything that commands ask of Pulumi's command line.

Owns the command lines, their deadlines, how they are interrupted, and the wait for somebody else's update of the stack.
Does not own what is judged or planned from the results. Why not the Automation API: docs/adr/0027.
"""

import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract.stack_outputs import OutputsError, StackOutputs
from ops.console import log, terminated_gently
from ops.errors import OpsError
from ops.pulumi import process, stack_file
from ops.pulumi.events import EventLog, read_event_log
from ops.pulumi.process import StackLock, explain_exit, explain_failure, find_lock, missing_stack, no_pulumi
from settings import NAMESPACE
from settings.files import read_values

SWITCH = "RT_INVENTORY_SWITCH"
"""Names the mirror whose active side an `up` may change; without it an `up` refuses to."""
READ_WITHIN_S, CHANGE_WITHIN_S = 60.0, 300.0
LOCK_WITHIN_S = 900.0
LOCK_EVERY_S, LOCK_REPORTED_EVERY_S = 5.0, 10.0
_MESSAGE_MAX = 1500
_ARGUMENT_MAX = 128 * 1024  # bytes of one argument that Linux takes
# Pulumi offers --event-log, which its own Automation API reads, only with PULUMI_DEBUG_COMMANDS.
_WITH_EVENT_LOG = {"PULUMI_DEBUG_COMMANDS": "true", "PULUMI_SKIP_UPDATE_CHECK": "true"}
_CLIENT_SIDE_APPLY = {"PULUMI_K8S_ENABLE_SERVER_SIDE_APPLY": "false"}
_BATCH = ("--non-interactive", "--color", "never")
Log = Callable[[str], None]


class NotDeployedError(OpsError):
    """The stack exists and has no outputs yet."""


class _LockedError(OpsError):
    """The stack is locked by somebody else's update."""

    def __init__(self, stack: str, lock: StackLock, folder: Path) -> None:
        super().__init__(process.explain_lock(stack, lock, folder))
        self.lock = lock


@dataclass(frozen=True, kw_only=True)
class EngineRun:
    """A preview or a refresh that ended: its event log, its exit code, and what it wrote for people.

    `folder` is the project's, for commands that messages name.
    """

    log: EventLog
    exit_code: int
    stdout: str
    stderr: str
    folder: Path = Path()

    @property
    def succeeded(self) -> bool:
        """Whether the exit code is 0 and the event log ends with a summary that reports no other result."""
        return self.exit_code == 0 and self.log.succeeded


@dataclass(frozen=True, kw_only=True)
class PulumiStack:
    """A stack by its project folder and name. `repr` leaves out the environment: a passphrase may be in it.

    Args:
        folder: Folder of Pulumi.yaml and of the stack files.
        name: Name of the stack; with organization and project where the backend is Pulumi Cloud.
        environment: Environment of Pulumi, which decides the backend, the passphrase and the kubeconfig.
        up_within_s: Deadline of one `up` in seconds.
        lock_within_s: Seconds that an `up` waits while the stack is locked by somebody else's update.
        ladder: How `up`, preview and refresh are stopped, where not as is usual for each.
        require_permission: Called before `set_mirror` and each `up`; raises to forbid it.
    """

    folder: Path
    name: str
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    up_within_s: float = 1800.0
    lock_within_s: float = LOCK_WITHIN_S
    ladder: process.SignalLadder | None = None
    require_permission: Callable[[], None] = lambda: None

    @property
    def file(self) -> Path:
        """The stack file."""
        return self.folder / f"Pulumi.{self.name}.yaml"

    def outputs(self, *, secrets: bool = True) -> dict[str, Any]:
        """Return the stack's outputs; without `secrets` those read `[secret]`. Raises NotDeployedError if none."""
        shown = ["--show-secrets"] if secrets else []
        command = ["stack", "output", "--json", *shown, "--non-interactive", "-s", self.name]
        try:
            done = self._run(command, READ_WITHIN_S)
        except process.DeadlineExceededError:
            raise process.UnreachableError(
                f"stack {self.name}: its outputs must come within {READ_WITHIN_S:.0f} s."
            ) from None
        if missing_stack(done.stderr, done.exit_code):
            known = self._known_stacks()
            raise OpsError(explain_failure(self.name, done.stderr, done.exit_code, self.folder, known))
        self._require_success("stack output", done)
        outputs: dict[str, Any] = json.loads(done.stdout)
        if not outputs:
            raise NotDeployedError(
                f"stack {self.name}: outputs must exist (got none). Run `{process.up(self.name, self.folder)}`."
            )
        return outputs

    def deployed_stacks(self) -> set[str]:
        """Return the names of the project's stacks that have resources."""
        listed = json.loads(self._call(["stack", "ls", "--json", "--non-interactive"], "stack ls").stdout)
        return {each["name"].rsplit("/", 1)[-1] for each in listed if each.get("resourceCount") != 0}

    def ensure_exists(self) -> None:
        """Create the stack if the backend has none of that name."""
        self._call(["stack", "select", "--create", self.name, *_BATCH[:1]], "stack select", CHANGE_WITHIN_S)

    def export_state(self) -> dict[str, Any]:
        """Return the stack's state; secrets in it stay encrypted."""
        command = ["stack", "export", "--stack", self.name, "--non-interactive"]
        state: dict[str, Any] = json.loads(self._call(command, "stack export").stdout)
        return state

    def import_state(self, state: Mapping[str, Any]) -> None:
        """Replace the stack's state."""
        with tempfile.TemporaryDirectory(prefix="rt-inventory-state-") as folder:
            file = Path(folder) / "state.json"
            file.touch(mode=0o600)
            file.write_text(json.dumps(state), encoding="utf-8")
            command = ["stack", "import", "--file", str(file), "--stack", self.name, "--non-interactive"]
            self._call(command, "stack import", CHANGE_WITHIN_S)

    def import_resources(self, file: Path) -> None:
        """Run `pulumi import` of a file; the cluster does not change by it."""
        command = ["import", "--file", str(file.resolve()), "--stack", self.name, "--yes", "--generate-code=false"]
        self._call([*command, "--skip-preview", *_BATCH[:1]], "import", CHANGE_WITHIN_S, one_stream=True)

    def preview_document(self, *, client_side_apply: bool = False) -> dict[str, Any]:
        """Return what `pulumi preview --json` writes.

        With `client_side_apply` the provider does not ask the API server, so fields that others own are no conflict.
        """
        document: dict[str, Any] = json.loads(
            self._call(
                ["preview", "--json", "--stack", self.name, "--non-interactive"],
                "preview",
                CHANGE_WITHIN_S,
                variables=_CLIENT_SIDE_APPLY if client_side_apply else {},
            ).stdout
        )
        return document

    def preview(
        self,
        *,
        within_s: float,
        pack: Path | None = None,
        pack_config: Path | None = None,
        config_file: Path | None = None,
        watch: Log | None = None,
    ) -> EngineRun:
        """Run a preview with its event log to its end; whether it succeeded is in the result.

        Args:
            within_s: Deadline in seconds.
            pack: Folder of a policy pack that judges the preview.
            pack_config: File that configures the pack.
            config_file: Stack file that is read in place of the stack's own.
            watch: Receives a line from time to time that says what Pulumi is doing.
        """
        options = ["--config-file", str(config_file.resolve())] if config_file else []
        if pack is not None:
            options += ["--policy-pack", str(pack.resolve())]
            options += ["--policy-pack-config", str(pack_config.resolve())] if pack_config else []
        return self._observe(["preview", "--stack", self.name, *options, *_BATCH], within_s, watch)

    def refresh_preview(self, *, within_s: float, watch: Log | None = None) -> EngineRun:
        """Run a refresh that changes nothing, with its event log; Pulumi fails it if something drifted."""
        options = ["--preview-only", "--expect-no-changes", *_BATCH]
        return self._observe(["refresh", "--stack", self.name, *options], within_s, watch)

    def set_mirror(self, mirror: str, values: Mapping[str, str | None]) -> None:
        """Write settings of a mirror into the stack file and leave all else as it is; None removes a setting."""
        self.require_permission()
        stack_file.mirror_entry(self.file, mirror)  # raises unless it is there once
        stack_file.change_mirror(self.file, mirror, values)

    def require_as_deployed(self, mirror: str, deployed: Mapping[str, str]) -> None:
        """Raise OpsError if the stack file has other settings of a mirror than are deployed: it is not the newest."""
        stack_file.require_as_deployed(self.file, self.name, mirror, deployed)

    def set_config(self, file: Path, values: Mapping[str, Any]) -> None:
        """Replace settings in a stack file as `pulumi config set-all` does: comments and the other settings stay.

        Raises OpsError if Pulumi cannot write one, or writes another value.
        """
        # The one form that writes lists and maps, reads a text that begins with "-" as a value, and keeps values that
        # look secret as they are. An empty objectValue says that the value is one.
        for key, value in values.items():
            entry = {"value": json.dumps(value), "objectValue": {}, "secret": False}
            document = json.dumps({f"{NAMESPACE}:{key}": entry})
            if len(document.encode()) >= _ARGUMENT_MAX:
                raise OpsError(
                    f"file {file}: {key} must fit into a command line (got {len(document.encode())} bytes, allowed "
                    f"{_ARGUMENT_MAX - 1}). Change it by hand."
                )
            command = ["config", "set-all", "--json", document, "--config-file", str(file.resolve())]
            self._call([*command, "--stack", self.name, "--non-interactive"], "config set-all", one_stream=True)
        written = read_values(file)
        if wrong := [key for key, value in values.items() if written.get(key) != value]:
            raise OpsError(f"file {file}: {', '.join(wrong)} must be what was written (Pulumi wrote something else).")

    def up(self, mirror: str | None, log: Log) -> None:
        """Apply the settings; raises OpsError with Pulumi's own message if that fails or does not end in time.

        `mirror` is the one whose active side may change. It waits while somebody else's update runs, and reports whose.
        """
        command = ["up", "--yes", "--skip-preview", *_BATCH, "--stack", self.name]
        log(f"pulumi up -s {self.name}")
        deadline, reported_at = time.monotonic() + self.lock_within_s, float("-inf")
        while True:
            self.require_permission()
            try:
                self._update(command, {SWITCH: mirror} if mirror is not None else {}, log)
                return
            except _LockedError as error:
                left_s = deadline - time.monotonic()
                if error.lock.is_left_over or left_s <= 0:
                    why = process.explain_lock(self.name, error.lock, self.folder, self.lock_within_s)
                    raise OpsError(why) from None
                if time.monotonic() - reported_at >= LOCK_REPORTED_EVERY_S:
                    reported_at = time.monotonic()
                    log(f"  stack {self.name} is locked by {error.lock}: waiting, for {left_s:.0f} s at most")
                time.sleep(min(LOCK_EVERY_S, left_s))

    def _update(self, command: list[str], switch: Mapping[str, str], log: Log) -> None:
        ladder = self.ladder or process.UPDATE_LADDER
        try:
            done = self._run(
                command,
                self.up_within_s,
                variables={**switch, "PULUMI_SKIP_UPDATE_CHECK": "true"},
                ladder=ladder,
                one_stream=True,
                on_interrupt=lambda: log(
                    f"  waiting until `pulumi up` has written its state, for {ladder[0][1]:.0f} s at most"
                ),
            )
        except process.DeadlineExceededError as error:
            raise OpsError(
                f"stack {self.name}: `pulumi up` must end within {self.up_within_s:.0f} s (got no end; "
                f"{_message(error.stdout)})."
            ) from None
        self._require_success("up", done, one_stream=True)

    def _known_stacks(self) -> list[str]:
        """The stacks of the project in the backend; none if they cannot be listed."""
        try:
            done = self._run(["stack", "ls", "--json", "--non-interactive"], READ_WITHIN_S)
            return [str(each["name"]) for each in json.loads(done.stdout)] if done.exit_code == 0 else []
        except (OpsError, process.DeadlineExceededError, ValueError, KeyError, TypeError):
            return []

    def _observe(self, command: list[str], within_s: float, watch: Log | None) -> EngineRun:
        """Run a command with an event log, which only its owner can read and which is gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="rt-inventory-events-") as scratch, terminated_gently():
            path, size = Path(scratch) / "events.json", -1

            def report() -> None:
                nonlocal size
                if watch is not None and (now := path.stat().st_size if path.exists() else 0) != size:
                    size = now
                    watch(_read(path).progress())

            try:
                done = self._run(
                    [*command, "--event-log", str(path)],
                    within_s,
                    variables=_WITH_EVENT_LOG,
                    ladder=self.ladder or process.PREVIEW_LADDER,
                    on_poll=report,
                )
            except process.DeadlineExceededError:
                raise OpsError(
                    f"stack {self.name}: {command[0]} must end within {within_s:g} s (got no end; "
                    f"{_read(path).progress()}). Give it longer with --within, or find out why: pulumi {command[0]}."
                ) from None
            printed = {"stdout": done.stdout, "stderr": done.stderr}
            ended = EngineRun(log=_read(path), exit_code=done.exit_code, folder=self.folder, **printed)
        if ended.succeeded:
            for plugin in ended.log.premature_exits:
                log(f"warning: stack {self.name}: {plugin} Pulumi succeeded all the same.")
        return ended

    def _call(
        self,
        command: Sequence[str],
        name: str,
        within_s: float = READ_WITHIN_S,
        *,
        variables: Mapping[str, str] | None = None,
        one_stream: bool = False,
    ) -> process.Completed:
        """Run a command that must succeed; `name` is what messages call it."""
        # What changes the state is given the time to release the stack's lock.
        ladder = process.READ_LADDER if within_s == READ_WITHIN_S else process.UPDATE_LADDER
        try:
            done = self._run(command, within_s, variables=variables, ladder=ladder, one_stream=one_stream)
        except process.DeadlineExceededError:
            raise OpsError(
                f"stack {self.name}: `pulumi {name}` must end within {within_s:.0f} s. Check the backend."
            ) from None
        self._require_success(name, done, one_stream=one_stream)
        return done

    def _run(
        self,
        command: Sequence[str],
        within_s: float,
        *,
        variables: Mapping[str, str] | None = None,
        ladder: process.SignalLadder = process.READ_LADDER,
        one_stream: bool = False,
        on_poll: Callable[[], None] | None = None,
        on_interrupt: Callable[[], None] = lambda: None,
    ) -> process.Completed:
        try:
            return process.run(
                ["pulumi", *command],
                folder=self.folder,
                environment={**self.environment, **(variables or {})},
                within_s=within_s,
                ladder=ladder,
                one_stream=one_stream,
                on_poll=on_poll,
                on_interrupt=on_interrupt,
            )
        except FileNotFoundError as error:
            if not self.folder.is_dir():
                raise OpsError(f"folder {self.folder}: must exist, with Pulumi.yaml in it.") from error
            raise no_pulumi(self.name) from error

    def _require_success(self, name: str, done: process.Completed, *, one_stream: bool = False) -> None:
        """Raise OpsError unless the exit code is 0. stdout may hold secrets unless it is the display of a run."""
        if done.exit_code == 0:
            return
        printed = done.stdout if one_stream else done.stderr
        if (lock := find_lock(printed)) is not None:  # who holds it is in no line of errors
            raise _LockedError(self.name, lock, self.folder)
        text = _diagnostics(done.stdout) or _message(printed)
        wrong = f"stack {self.name}: `pulumi {name}` must succeed ({explain_exit(done.exit_code)}; {text})."
        known = explain_failure(self.name, text, done.exit_code, self.folder)
        raise process.UnreachableError(wrong) if known is None and name == "stack output" else OpsError(known or wrong)


def stack_outputs(stack: str, environment: Mapping[str, str], folder: Path, *, secrets: bool = True) -> dict[str, Any]:
    """Return the outputs of a stack by its name; without `secrets` those read `[secret]`."""
    return PulumiStack(folder=folder, name=stack, environment=environment).outputs(secrets=secrets)


def typed_outputs(stack: str, outputs: Mapping[str, Any], *needed: str) -> StackOutputs:
    """Return the outputs as their model; raises OpsError if a `needed` key is missing or a value has another type."""
    try:
        return StackOutputs.read(stack, outputs, *needed)
    except OutputsError as error:
        raise OpsError(str(error)) from None


def _read(path: Path) -> EventLog:
    if not path.exists():
        return read_event_log(())
    with path.open(encoding="utf-8", errors="replace") as lines:
        return read_event_log(lines)


def _message(text: str) -> str:
    """The error lines of what Pulumi wrote, else its end, on one line. Pulumi shows secrets as `[secret]` there."""
    lines = re.findall(r"^\s*(?:error|\S+ error):.*$", text, re.MULTILINE) or text.splitlines()[-12:]
    return " ".join(line.strip() for line in lines if line.strip())[-_MESSAGE_MAX:] or "no message"


def _diagnostics(stdout: str) -> str:
    """The engine's error diagnostics in the document of `preview --json`, "" in other output."""
    try:
        diagnostics = json.loads(stdout)["diagnostics"]
        messages = [each.get("message", "") for each in diagnostics if each["severity"] == "error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return " ".join(message.strip() for message in messages)[-_MESSAGE_MAX:]
