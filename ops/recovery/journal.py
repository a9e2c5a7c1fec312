"""What a failover or failback has done so far: a ConfigMap beside the mirror.

Whoever runs the command next, on whatever machine, goes on where it stopped. Owns reading, writing and the refusal of
two at once. Does not own the steps.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kubernetes import client  # type: ignore[import-untyped]  # ships no types
from kubernetes.client.rest import ApiException  # type: ignore[import-untyped]  # ships no types

from ops.errors import OpsError
from ops.recovery.kubernetes_access import CALL_WITHIN_S, kubernetes

KEY = "journal.json"
VERSION = 1
_LABELS = {"app.kubernetes.io/managed-by": "rt-inventory-ops"}
_CONFLICT, _MISSING = 409, 404
_SHAPE: dict[str, type | tuple[type, ...]] = {
    "command": str,
    "options": dict,
    "startedAt": str,
    "finishedAt": (str, type(None)),
    "steps": dict,
}
Facts = dict[str, Any]


@dataclass
class Journal:
    """The journal of one mirror. Each change is written before it counts.

    `entry` is the operation under way or the latest one: command, options, startedAt, finishedAt (None while it is
    under way) and its steps, each with finishedAt and what it learned. `repr` leaves out the environment.
    """

    namespace: str
    name: str
    environment: Mapping[str, str] = field(repr=False)
    entry: Facts | None
    _version: str | None

    @classmethod
    def load(cls, namespace: str, mirror: str, environment: Mapping[str, str]) -> "Journal":
        """Read the journal of a mirror; one that was never failed over has an empty one."""
        name = f"{mirror}-failover"
        with kubernetes(environment) as api:
            try:
                found = client.CoreV1Api(api).read_namespaced_config_map(
                    name, namespace, _request_timeout=CALL_WITHIN_S
                )
            except ApiException as error:
                if error.status != _MISSING:
                    raise
                return cls(namespace, name, environment, None, None)
        try:
            entry = _read((found.data or {})[KEY])
        except (KeyError, ValueError):
            raise OpsError(
                f"ConfigMap {namespace}/{name}: {KEY} must hold a journal (got something else). Correct or delete it."
            ) from None
        return cls(namespace, name, environment, entry, found.metadata.resource_version)

    @property
    def under_way(self) -> bool:
        """Whether an operation was begun and has not ended."""
        return self.entry is not None and self.entry.get("finishedAt") is None

    @property
    def steps(self) -> Mapping[str, Facts]:
        """Steps that are done, with what they learned."""
        return {} if self.entry is None else self.entry["steps"]

    def begins(self, command: str, harmless: Collection[str]) -> bool:
        """Whether a command must be judged: it is not under way itself, and another has done `harmless` steps only."""
        entry = self.entry
        if entry is None or not self.under_way:
            return True
        return bool(entry["command"] != command) and set(entry["steps"]) <= set(harmless)

    def begin(
        self, command: str, options: Mapping[str, Any], harmless: Collection[str] = (), *, gives_up: bool = False
    ) -> None:
        """Begin an operation, or go on with the same one; raises OpsError if another is under way.

        One that has done `harmless` steps only, which change nothing, is begun anew. `gives_up`: an operation of the
        same command may go on with these options although it began with others.
        """
        entry = self.entry
        if entry is None or not self.under_way:
            before = {key: entry[key] for key in ("command", "finishedAt", "steps")} if entry else None
        elif entry["command"] == command and (entry["options"] == dict(options) or gives_up):
            # Written in any case: whoever else is at it ends at its next note.
            self.entry = {**entry, "options": dict(options), "resumedAt": now()}
            self._write()
            return
        elif set(entry["steps"]) <= set(harmless):
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
            "before": _kept(before),
        }
        self._write()

    def forget(self, *steps: str) -> None:
        """Note that steps must be done again."""
        entry = self.entry or {"steps": {}}
        self.entry = {**entry, "steps": {name: facts for name, facts in entry["steps"].items() if name not in steps}}
        self._write()

    def _other(self, entry: Facts, command: str, options: Mapping[str, Any]) -> OpsError:
        known, asked = {"command": entry["command"], **entry["options"]}, {"command": command, **options}
        different = [key for key in {**known, **asked} if known.get(key) != asked.get(key)]
        told = ", ".join(f"{key} {known.get(key)!r} (got {asked.get(key)!r})" for key in different)
        return OpsError(
            f"ConfigMap {self.namespace}/{self.name}: a {known['command']} since {entry['startedAt']} is not finished; "
            f"it must be finished as it began: {told}. Run that command again. (Do not delete the ConfigMap: what a "
            "failback needs to know is in it only.)"
        )

    def done(self, step: str, facts: Mapping[str, Any]) -> None:
        """Note that a step of the operation under way is done, with what it learned."""
        entry = self.entry or {"steps": {}}
        entry["steps"][step] = {**facts, "finishedAt": now()}
        self.entry = entry
        self._write()

    def finish(self) -> None:
        """Note that all steps are done."""
        self.entry = {**(self.entry or {}), "finishedAt": now()}
        self._write()

    def _write(self) -> None:
        metadata = client.V1ObjectMeta(
            name=self.name, namespace=self.namespace, labels=_LABELS, resource_version=self._version
        )
        body = client.V1ConfigMap(metadata=metadata, data={KEY: json.dumps(self.entry)})
        with kubernetes(self.environment) as api:
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
                raise OpsError(
                    f"ConfigMap {self.namespace}/{self.name}: must be written by one command at a time (somebody else "
                    "has changed it). Look who is at it, then run this again: it goes on where the other stopped."
                ) from None
        self._version = written.metadata.resource_version


def _read(text: str) -> Facts:
    """The entry that a text holds; raises ValueError if it holds something else."""
    entry = json.loads(text)
    if not isinstance(entry, dict) or entry.get("version") != VERSION:
        raise ValueError(text)
    if not set(_SHAPE) <= set(entry) or not all(isinstance(entry[key], kind) for key, kind in _SHAPE.items()):
        raise ValueError(text)
    return entry


def _kept(before: Facts | None) -> Facts | None:
    """What a failback needs to know of the failover before it: where both sides stood when the mirror was stopped."""
    if before is None:
        return None
    return {**before, "steps": {name: facts for name, facts in before["steps"].items() if name == "stop"}}


def now() -> str:
    """Return this moment, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
