"""Where the journal of a mirror is kept: ConfigMaps beside it, compressed where it is large.

The ConfigMap `<mirror>-failover` holds the journal as JSON that people can read. Its resourceVersion decides between
two who write. What a step has learned and is large is compressed and lies in ConfigMaps of its own, named after their
content, which the first one names. They are written before it names them and removed after it no longer does: whoever
reads finds the former journal or the new one, whenever a writer is killed. Owns the format and its limits. Does not own
what a journal says.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from kubernetes import client
from kubernetes.client.rest import ApiException
from urllib3.exceptions import HTTPError

from ops.errors import OpsError
from ops.recovery.kubernetes_access import CALL_WITHIN_S, kubernetes

KEY, CHUNK_KEY = "journal.json", "facts.json.gz"
PLAIN, CHUNKED = 1, 2
"""Versions of the format: all in one ConfigMap, and some of it in others."""
CHUNK_BYTES = 1_000_000
"""The values of a ConfigMap may have 1,048,576 bytes together, those of binaryData before base64."""
CHUNKS_MAX = 256
PLAIN_MAX = 8192
"""Characters that the facts of one step may have in the first ConfigMap."""
BYTES_PER_POSITION = 8
"""What an offset takes at most, compressed: 5 bytes were measured for offsets below 10⁹."""
_LABELS = {"app.kubernetes.io/managed-by": "rt-inventory-ops"}
_MISSING, _CONFLICT = 404, 409
_READ_AGAIN = 3
_CONFIG_MAPS, _SHOWN = "configMaps", ("finishedAt", "seconds")
_TABLE_MIN = 16  # fewer positions are not worth a table
_LIST = -1
_SHAPE: dict[str, type | tuple[type, ...]] = {
    "command": str,
    "options": dict,
    "startedAt": str,
    "finishedAt": (str, type(None)),
    "steps": dict,
}
Facts = dict[str, Any]


class ChangedError(OpsError):
    """Somebody else has changed the journal since it was read."""


class JournalStore:
    """The ConfigMaps of one journal. `name` is that of the first one."""

    def __init__(self, namespace: str, name: str, environment: Mapping[str, str], context: str | None = None) -> None:
        self.namespace = namespace
        self.name = name
        self._environment = environment
        self._context = context
        self._uid: str | None = None
        self._named: set[str] = set()
        # By the identity of facts that are stored apart: the facts, and what the journal has in their place.
        self._stored: dict[int, tuple[Facts, Facts]] = {}

    def read(self, *, whole: bool = True) -> tuple[Facts | None, str | None]:
        """Return the journal with its resourceVersion, None if there is none; raises OpsError.

        Without `whole` the facts of a step that lie elsewhere are left out: what remains says when it was done.
        """
        for _ in range(_READ_AGAIN):  # a chunk that is gone was replaced since the first ConfigMap was read
            with self._kubernetes() as api:
                found = self._get(api, self.name)
                if found is None:
                    return None, None
                entry = self._parse((found.data or {}).get(KEY, ""))
                self._uid, self._named = found.metadata.uid, _names(entry)
                with suppress(_MissingError):
                    if whole:
                        self._fill(api, entry)
                    return entry, str(found.metadata.resource_version)
        raise OpsError(
            f"ConfigMap {self.namespace}/{self.name}: those that it names must be there, unchanged (got others than "
            f"{', '.join(sorted(self._named))}). Restore them from a backup of the cluster; without one mirror "
            "everything again: docs/runbook.md#mirror-everything-again."
        )

    def write(self, entry: Facts, version: str | None) -> str:
        """Store the journal and return its resourceVersion.

        Raises ChangedError if it is not the one that was read, by `version`; None: there was none.
        """
        with self._kubernetes() as api:
            document = self._with_chunks_apart(api, entry)
            named = _names(document)
            document["version"] = CHUNKED if named else PLAIN
            metadata = client.V1ObjectMeta(
                name=self.name, namespace=self.namespace, labels=_LABELS, resource_version=version
            )
            body = client.V1ConfigMap(metadata=metadata, data={KEY: json.dumps(document, indent=1)})
            core = client.CoreV1Api(api)
            try:
                if version is None:
                    written = core.create_namespaced_config_map(self.namespace, body, _request_timeout=CALL_WITHIN_S)
                else:
                    written = core.replace_namespaced_config_map(
                        self.name, self.namespace, body, _request_timeout=CALL_WITHIN_S
                    )
            except ApiException as error:
                if error.status != _CONFLICT:
                    raise
                raise ChangedError(
                    f"ConfigMap {self.namespace}/{self.name}: must be written by one command at a time (somebody else "
                    "has changed it). Look who is at it, then run this again: it goes on where the other stopped."
                ) from None
            for unnamed in sorted(self._named - named):
                with suppress(ApiException, HTTPError):  # what cannot be deleted goes with the first ConfigMap
                    core.delete_namespaced_config_map(unnamed, self.namespace, _request_timeout=CALL_WITHIN_S)
        self._uid, self._named = written.metadata.uid, named
        return str(written.metadata.resource_version)

    def require_room(self, positions: int) -> None:
        """Raise OpsError unless so many offsets of groups can be kept; nothing is changed."""
        chunks = -(-positions * BYTES_PER_POSITION // CHUNK_BYTES)
        if chunks > CHUNKS_MAX:
            raise OpsError(
                f"ConfigMap {self.namespace}/{self.name}: the journal must fit into {CHUNKS_MAX} ConfigMaps (got "
                f"{positions} offsets of groups, about {chunks}). Narrow `groups` of the mirror to those that must go "
                "on, run `pulumi up`, and run this again."
            )
        if positions * BYTES_PER_POSITION > PLAIN_MAX:
            with self._kubernetes() as api:
                probe = self._chunk(f"{self.name}-0", bytes(min(CHUNK_BYTES, positions * BYTES_PER_POSITION)))
                client.CoreV1Api(api).create_namespaced_config_map(
                    self.namespace, probe, dry_run="All", _request_timeout=CALL_WITHIN_S
                )

    def _kubernetes(self) -> Any:
        return kubernetes(self._environment, self._context)

    def _get(self, api: client.ApiClient, name: str) -> Any:
        try:
            return client.CoreV1Api(api).read_namespaced_config_map(
                name, self.namespace, _request_timeout=CALL_WITHIN_S
            )
        except ApiException as error:
            if error.status != _MISSING:
                raise
            return None

    def _parse(self, text: str) -> Facts:
        try:
            entry = json.loads(text)
            if entry["version"] in (PLAIN, CHUNKED) and all(
                isinstance(entry[key], kind) for key, kind in _SHAPE.items()
            ):
                return dict(entry)
        except (ValueError, KeyError, TypeError):
            pass
        raise OpsError(
            f"ConfigMap {self.namespace}/{self.name}: {KEY} must hold a journal (got something else). Correct or "
            "delete it."
        )

    def _fill(self, api: client.ApiClient, entry: Facts) -> None:
        """Put the facts that lie elsewhere back into their steps."""
        for steps in _steps_of(entry):
            for step, stub in steps.items():
                if names := stub.get(_CONFIG_MAPS):
                    found = [self._get(api, name) for name in names]
                    if None in found:
                        raise _MissingError
                    content = b"".join(base64.b64decode((one.binary_data or {}).get(CHUNK_KEY, "")) for one in found)
                    if names != self._chunk_names(content, len(names)):
                        raise _MissingError
                    steps[step] = facts = unpacked(content)
                    self._stored[id(facts)] = facts, stub

    def _with_chunks_apart(self, api: client.ApiClient, entry: Facts) -> Facts:
        """A copy of the journal in which steps with large facts name the ConfigMaps that hold them."""
        before = entry.get("before")
        document = {**entry, "steps": {step: self._apart(api, facts) for step, facts in entry["steps"].items()}}
        if before:
            kept = {step: self._apart(api, facts) for step, facts in before["steps"].items()}
            document["before"] = {**before, "steps": kept}
        return document

    def _apart(self, api: client.ApiClient, facts: Facts) -> Facts:
        known = self._stored.get(id(facts))
        if known is not None:
            return known[1]
        if len(json.dumps(facts)) <= PLAIN_MAX:
            return facts
        content = packed(facts)
        pieces = [content[at : at + CHUNK_BYTES] for at in range(0, len(content), CHUNK_BYTES)]
        names = self._chunk_names(content, len(pieces))
        for name, piece in zip(names, pieces, strict=True):
            try:
                client.CoreV1Api(api).create_namespaced_config_map(
                    self.namespace, self._chunk(name, piece), _request_timeout=CALL_WITHIN_S
                )
            except ApiException as error:
                if error.status != _CONFLICT:  # of this name there is one content only
                    raise
        stub = {key: facts[key] for key in _SHOWN if key in facts} | {_CONFIG_MAPS: names}
        self._stored[id(facts)] = facts, stub
        return stub

    def _chunk_names(self, content: bytes, number: int) -> list[str]:
        digest = hashlib.sha256(content).hexdigest()[:16]
        return [f"{self.name}-{digest}-{at}" for at in range(1, number + 1)]

    def _chunk(self, name: str, piece: bytes) -> client.V1ConfigMap:
        """A ConfigMap that nobody changes and that goes with the first one."""
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": self.name, "uid": self._uid, "controller": False}
        owners = [{**owner, "blockOwnerDeletion": False}] if self._uid is not None else []
        return client.V1ConfigMap(
            metadata=client.V1ObjectMeta.from_dict(
                {"name": name, "namespace": self.namespace, "labels": _LABELS, "ownerReferences": owners}
            ),
            binary_data={CHUNK_KEY: base64.b64encode(piece).decode()},
            immutable=True,
        )


class _MissingError(Exception):
    """A ConfigMap that the first one names is not there, or holds something else."""


def packed(facts: Facts) -> bytes:
    """Return facts as compressed JSON, in which offsets by partition are a list beside a table of partitions."""
    tables: dict[tuple[str, ...], int] = {}
    body = _without_keys(facts, tables)
    return gzip.compress(json.dumps([list(tables), body], separators=(",", ":")).encode(), 1, mtime=0)


def unpacked(content: bytes) -> Facts:
    """Return what `packed` was given."""
    tables, body = json.loads(gzip.decompress(content))
    found: Facts = _with_keys(body, tables)
    return found


def _without_keys(value: Any, tables: dict[tuple[str, ...], int]) -> Any:
    """Each mapping to numbers as a list: the number of the table of its keys, its values. Lists begin with -1."""
    if isinstance(value, list):
        return [_LIST, *value]
    if not isinstance(value, dict):
        return value
    if len(value) >= _TABLE_MIN and all(type(one) is int for one in value.values()):
        return [tables.setdefault(tuple(value), len(tables)), *value.values()]
    return {key: _without_keys(one, tables) for key, one in value.items()}


def _with_keys(value: Any, tables: Sequence[Sequence[str]]) -> Any:
    if isinstance(value, list):
        return value[1:] if value[0] == _LIST else dict(zip(tables[value[0]], value[1:], strict=True))
    if not isinstance(value, dict):
        return value
    return {key: _with_keys(one, tables) for key, one in value.items()}


def _steps_of(entry: Facts) -> list[dict[str, Facts]]:
    before = entry.get("before") or {}
    return [entry["steps"], before.get("steps") or {}]


def _names(entry: Facts) -> set[str]:
    """Return the ConfigMaps that a journal names."""
    return {name for steps in _steps_of(entry) for stub in steps.values() for name in stub.get(_CONFIG_MAPS) or ()}
