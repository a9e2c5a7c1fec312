"""Secrets as the watch has told them, so that a look at a resource asks the API server for none.

Without it they were two of three requests in an idle sandbox. What is known is the newest that the watch, an own write
or a read has shown, by `resourceVersion`; it is read again after `OLD_S`, because a watch that breaks may miss a
deletion. Reads nothing itself.
"""

import base64
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

BINARY = "surrogateescape"
OLD_S = 60.0


@dataclass(frozen=True)
class StoredSecret:
    """A Secret's decoded values and its annotations; the values never appear in repr."""

    values: dict[str, str] = field(repr=False)
    annotations: dict[str, str]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "StoredSecret":
        """What an object of the API server says, as JSON; bytes that are no text survive."""
        data = body.get("data") or {}
        values = {key: base64.b64decode(value).decode(errors=BINARY) for key, value in data.items()}
        return cls(values, dict(body["metadata"].get("annotations") or {}))


@dataclass(frozen=True)
class _Seen:
    secret: StoredSecret = field(repr=False)
    version: int
    at: float


@dataclass
class SeenSecrets:
    """What is known of Secrets by namespace and name. Safe to use from several threads."""

    _seen: dict[tuple[str, str], _Seen] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, namespace: str, name: str) -> StoredSecret | None:
        """The Secret if it is known well enough."""
        with self._lock:
            seen = self._seen.get((namespace, name))
        return seen.secret if seen and time.monotonic() < seen.at + OLD_S else None

    def put(self, body: Mapping[str, Any]) -> None:
        """Note an object as the API server shows it, unless a newer one is known."""
        metadata, secret = body["metadata"], StoredSecret.of(body)
        key, version = (metadata["namespace"], metadata["name"]), int(metadata["resourceVersion"])
        with self._lock:
            seen = self._seen.get(key)
            if seen is None or seen.version <= version:
                self._seen[key] = _Seen(secret, version, time.monotonic())

    def forget(self, namespace: str, name: str) -> None:
        """The Secret is gone."""
        with self._lock:
            self._seen.pop((namespace, name), None)
