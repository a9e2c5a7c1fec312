"""What a failover or failback has done so far: a ConfigMap beside the mirror.

Whoever runs the command next, on whatever machine, goes on where it stopped. Owns reading, writing and the refusal of
two at once. Does not own the steps.
"""

import json
from collections.abc import Mapping
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

    def begin(self, command: str, options: Mapping[str, Any]) -> None:
        """Begin an operation, or go on with the same one; raises OpsError if another is under way."""
        if self.under_way and self.entry is not None:
            known = {"command": self.entry["command"], **self.entry["options"]}
            asked = {"command": command, **options}
            if different := [key for key in {**known, **asked} if known.get(key) != asked.get(key)]:
                told = ", ".join(f"{key} {known.get(key)!r} (got {asked.get(key)!r})" for key in different)
                raise OpsError(
                    f"ConfigMap {self.namespace}/{self.name}: a {known['command']} since {self.entry['startedAt']} is "
                    f"not finished; it must be finished as it began: {told}. Run that command again, or delete the "
                    "ConfigMap if you know that nobody goes on with it."
                )
            return
        before = self.entry
        self.entry = {
            "version": VERSION,
            "command": command,
            "options": dict(options),
            "startedAt": now(),
            "finishedAt": None,
            "steps": {},
            # What a failback needs to know of the failover before it.
            "before": {key: before[key] for key in ("command", "finishedAt", "steps")} if before else None,
        }
        self._write()

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
        body = client.V1ConfigMap(metadata=metadata, data={KEY: json.dumps(self.entry, indent=1)})
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


def now() -> str:
    """Return this moment, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
