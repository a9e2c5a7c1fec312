"""The journal of a failover or failback: a ConfigMap beside the mirror with the steps that are done.

The next command, on any machine, resumes after the last step. A running command holds the journal: it renews its entry
every few seconds, and a second command is refused at once. A process of this machine is checked by its id; of a process
on another machine only the time of its latest renewal is known. Does not own the steps.
"""

import getpass
import json
import os
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kubernetes import client
from kubernetes.client.rest import ApiException

from ops.errors import OpsError
from ops.recovery.kubernetes_access import CALL_WITHIN_S, kubernetes

RENEW_S = 10.0
LEASE_S = 60.0
"""A holder that has not renewed its entry for this long has ended."""


def this_process(since: str) -> dict[str, Any]:
    """Return this process as a journal names it."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in pods
        user = str(os.getuid())
    return {
        "id": uuid.uuid4().hex,
        "user": user,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "since": since,
        "renewedAt": since,
    }


def is_alive(holder: Mapping[str, Any] | None) -> bool:
    """Whether a holder is still at work: its process runs on this machine, or it has renewed its entry lately."""
    if not holder or not _renewed_lately(holder):
        return False
    if holder.get("host") != socket.gethostname() or not isinstance(holder.get("pid"), int):
        return True
    try:
        os.kill(holder["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it runs, as another user
        return True
    return True


def is_same(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Whether both are the same process."""
    return bool(one) and bool(other) and (one or {}).get("id") == (other or {}).get("id")


def described(holder: Mapping[str, Any]) -> str:
    """Return who a holder is and since when, for a message."""
    who = f"{holder.get('user')}@{holder.get('host')}, process {holder.get('pid')}"
    return f"{who}, since {holder.get('since')}, last seen {holder.get('renewedAt')}"


def _renewed_lately(holder: Mapping[str, Any]) -> bool:
    try:
        renewed = datetime.fromisoformat(str(holder.get("renewedAt")))
    except ValueError:
        return False
    renewed = renewed if renewed.tzinfo else renewed.replace(tzinfo=UTC)
    return abs((datetime.now(UTC) - renewed).total_seconds()) < LEASE_S


KEY = "journal.json"
VERSION = 1
_SUFFIX = "-failover"
_LABELS = {"app.kubernetes.io/managed-by": "rt-inventory-ops"}
_CONFLICT, _MISSING = 409, 404
_SHAPE: dict[str, type | tuple[type, ...]] = {
    "command": str,
    "options": dict,
    "startedAt": str,
    "finishedAt": (str, type(None)),
    "steps": dict,
}
HARMLESS: Mapping[str, tuple[str, ...]] = {"failover": ("drain", "prove", "measure"), "failback": ("survey",)}
"""Steps of each command that change nothing."""
Facts = dict[str, Any]


@dataclass
class Journal:
    """The journal of one mirror. Each change is written before it counts.

    `entry` is the operation under way or the latest one: command, options, startedAt, finishedAt (None while it is
    under way), its steps that are done, each with finishedAt and what it learned, `of`: the names of all its steps,
    `at`: the step that was begun last, `begun`: all that were ever begun, and `holder`: the process that carries it
    out, None after it has ended. `repr` leaves out the environment.
    """

    namespace: str
    name: str
    environment: Mapping[str, str] = field(repr=False)
    entry: Facts | None
    _version: str | None
    context: str | None = None
    _own: Facts | None = field(default=None, init=False, repr=False, compare=False)
    _writing: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False, compare=False)

    @classmethod
    def load(cls, namespace: str, mirror: str, environment: Mapping[str, str], context: str | None = None) -> "Journal":
        """Read the journal of a mirror by a context of the kubeconfig; one that was never failed over is empty."""
        name = f"{mirror}{_SUFFIX}"
        return cls(namespace, name, environment, *_stored(namespace, name, environment, context), context)

    @property
    def mirror(self) -> str:
        """The name of the mirror."""
        return self.name.removesuffix(_SUFFIX)

    @property
    def under_way(self) -> bool:
        """Whether an operation was begun and has not ended."""
        return self.entry is not None and self.entry.get("finishedAt") is None

    @property
    def begun_here(self) -> bool:
        """Whether this process has begun the operation, or has gone on with it."""
        return self._own is not None

    @property
    def steps(self) -> Mapping[str, Facts]:
        """Steps that are done, with what they learned."""
        return {} if self.entry is None else self.entry["steps"]

    @property
    def may_have_changed(self) -> bool:
        """Whether an operation is under way of which a step was begun that changes something."""
        entry = self.entry
        return entry is not None and self.under_way and not begun(entry) <= set(HARMLESS.get(entry["command"], ()))

    def begins(self, command: str) -> bool:
        """Whether a command must be judged: it is not under way itself, and another has changed nothing."""
        entry = self.entry
        if entry is None or not self.under_way:
            return True
        return bool(entry["command"] != command) and not self.may_have_changed

    def require_free(self) -> None:
        """Raise OpsError if another process carries out an operation on this mirror now."""
        entry = self.entry or {}
        if self.under_way and is_alive(entry.get("holder")):
            raise self._held(entry)

    def begin(
        self,
        command: str,
        options: Mapping[str, Any],
        *,
        gives_up: bool = False,
        steps: Sequence[str] = (),
    ) -> None:
        """Begin an operation, or go on with the same one; raises OpsError if another is under way.

        One of which no step was begun that changes something is begun anew. `gives_up`: an operation of the same
        command may go on with these options although it began with others. `steps`: the names of all its steps.
        """
        self.require_free()
        self._own = this_process(now())
        held = {"of": list(steps), "holder": self._own}
        entry = self.entry
        if entry is None or not self.under_way:
            before = {key: entry[key] for key in ("command", "finishedAt", "steps")} if entry else None
        elif entry["command"] == command and (entry["options"] == dict(options) or gives_up):
            # Written in any case: whoever else is at it ends at its next note.
            self.entry = {**entry, "options": dict(options), "resumedAt": now(), **held}
            self._write()
            return
        elif not self.may_have_changed:
            before = entry["before"]
        else:
            raise self._other(entry, command, options)
        self.entry = {
            "version": VERSION,
            "command": command,
            "options": dict(options),
            "startedAt": now(),
            "finishedAt": None,
            "steps": {},
            "begun": [],
            "before": _kept(before),
            **held,
        }
        self._write()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Renew the entry every `RENEW_S` seconds, so that others see that this process is at work.

        At the end the operation is no longer held: whoever runs the command next goes on with it.
        """
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(RENEW_S):
                with suppress(OpsError):  # the next note of a step reports it; until then others see an old entry
                    self._hold({"renewedAt": now()})

        renewing = threading.Thread(target=renew, name="journal", daemon=True)
        renewing.start()
        try:
            yield
        finally:
            ended.set()
            renewing.join()
            if self.under_way:
                with suppress(OpsError):
                    self._hold(None)

    def _hold(self, changes: Facts | None) -> None:
        with self._writing:
            if self.entry is None or not self.entry.get("holder"):
                return
            held = None if changes is None else {**self.entry["holder"], **changes}
            self.entry = {**self.entry, "holder": held}
            self._write()

    def forget(self, *steps: str) -> None:
        """Note that steps must be done again."""
        with self._writing:
            entry = self.entry or {"steps": {}}
            kept = {name: facts for name, facts in entry["steps"].items() if name not in steps}
            self.entry = {**entry, "steps": kept}
            self._write()

    def start(self, step: str) -> None:
        """Note that a step begins: from now on it may have changed something."""
        with self._writing:
            entry = self.entry or {"steps": {}}
            earlier = [name for name in entry.get("begun") or [] if name != step]
            self.entry = {**entry, "at": step, "begun": [*earlier, step]}
            self._write()

    def _other(self, entry: Facts, command: str, options: Mapping[str, Any]) -> OpsError:
        known, asked = {"command": entry["command"], **entry["options"]}, {"command": command, **options}
        different = [key for key in {**known, **asked} if known.get(key) != asked.get(key)]
        differences = ", ".join(f"{key} {known.get(key)!r} (got {asked.get(key)!r})" for key in different)
        return OpsError(
            f"ConfigMap {self.namespace}/{self.name}: a {known['command']} since {entry['startedAt']} is not finished; "
            f"it must be finished as it began: {differences}. Run that command again. (Do not delete the ConfigMap: "
            "what a failback needs to know is in it only.)"
        )

    def done(self, step: str, facts: Mapping[str, Any]) -> None:
        """Note that a step of the operation under way is done, with what it learned."""
        with self._writing:
            entry = self.entry or {"steps": {}}
            entry["steps"][step] = {**facts, "finishedAt": now()}
            self.entry = entry
            self._write()

    def finish(self) -> None:
        """Note that all steps are done."""
        with self._writing:
            before = self.entry
            self.entry = {**(before or {}), "finishedAt": now(), "at": None, "holder": None}
            try:
                self._write()
            except BaseException:
                self.entry = before  # nobody else can see that it has finished
                raise

    def _held(self, entry: Facts) -> OpsError:
        """The error for a second command. Nothing of it has changed anything."""
        return OpsError(
            f"ConfigMap {self.namespace}/{self.name}: a {entry['command']} must be carried out by one command at a "
            f"time (held by {described(entry['holder'])}). Wait until it has ended; `python -m ops status` "
            "shows how far it is."
        )

    def _write(self) -> None:
        """Write the entry if nobody else has changed it since it was read; raises OpsError."""
        try:
            self._version = self._replace()
        except _ChangedError:
            entry, version = _stored(self.namespace, self.name, self.environment, self.context)
            theirs = (entry or {}).get("holder")
            if entry is not None and is_same(self._own, theirs):  # an earlier write whose answer was lost
                self._version = version
                self._version = self._replace()
                return
            if entry is not None and entry.get("finishedAt") is None and is_alive(theirs):
                raise self._held(entry) from None
            raise

    def _replace(self) -> str:
        metadata = client.V1ObjectMeta(
            name=self.name, namespace=self.namespace, labels=_LABELS, resource_version=self._version
        )
        body = client.V1ConfigMap(metadata=metadata, data={KEY: json.dumps(self.entry)})
        with kubernetes(self.environment, self.context) as api:
            core = client.CoreV1Api(api)
            try:
                if self._version is None:
                    written = core.create_namespaced_config_map(self.namespace, body, _request_timeout=CALL_WITHIN_S)
                else:
                    written = core.replace_namespaced_config_map(
                        self.name, self.namespace, body, _request_timeout=CALL_WITHIN_S
                    )
            except ApiException as error:
                if error.status != _CONFLICT:
                    raise
                raise _ChangedError(
                    f"ConfigMap {self.namespace}/{self.name}: must be written by one command at a time (somebody else "
                    "has changed it). Look who is at it, then run this again: it goes on where the other stopped."
                ) from None
        return str(written.metadata.resource_version)


class _ChangedError(OpsError):
    """Somebody else has changed the ConfigMap since it was read."""


def _stored(
    namespace: str, name: str, environment: Mapping[str, str], context: str | None
) -> tuple[Facts | None, str | None]:
    """The entry of a ConfigMap with its resourceVersion, None if it does not exist; raises OpsError."""
    with kubernetes(environment, context) as api:
        try:
            found = client.CoreV1Api(api).read_namespaced_config_map(name, namespace, _request_timeout=CALL_WITHIN_S)
        except ApiException as error:
            if error.status != _MISSING:
                raise
            return None, None
    try:
        return _read((found.data or {})[KEY]), found.metadata.resource_version
    except (KeyError, ValueError):
        raise OpsError(
            f"ConfigMap {namespace}/{name}: {KEY} must hold a journal (got something else). Correct or delete it."
        ) from None


def _read(text: str) -> Facts:
    """The entry that a text holds; raises ValueError if it holds something else."""
    entry = json.loads(text)
    if not isinstance(entry, dict) or entry.get("version") != VERSION:
        raise ValueError(text)
    if not set(_SHAPE) <= set(entry) or not all(isinstance(entry[key], kind) for key, kind in _SHAPE.items()):
        raise ValueError(text)
    return entry


def begun(entry: Mapping[str, Any]) -> set[str]:
    """Return the steps of an entry that were begun, done or not, also those that are to be done again."""
    at = entry.get("at")
    return {*entry["steps"], *(entry.get("begun") or ()), *([at] if at else [])}


def _kept(before: Facts | None) -> Facts | None:
    """What a failback needs to know of the failover before it: where both sides stood when the mirror was stopped."""
    if before is None:
        return None
    return {**before, "steps": {name: facts for name, facts in before["steps"].items() if name == "stop"}}


def now() -> str:
    """Return this moment, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
