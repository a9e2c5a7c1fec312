"""MirrorMaker's own state: connectors over Connect's REST, positions in its offsets topic.

Formats: OffsetStorageWriter and MirrorUtils.wrapPartition (offsets topic).
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpx

from contract.verification_request import Mirror
from kafka.topic_partition import TopicPartition

REST_DEADLINE_S = 5.0
Record = tuple[bytes | None, bytes | None]
# What is no answer of Connect, JSON of another shape among it: something else may listen at the address.
_NO_ANSWER = (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True)
class ConnectorState:
    """State of one connector and its tasks as Connect tells it; `missing` for one that does not exist."""

    name: str
    state: str
    tasks: tuple[str, ...]

    @property
    def running(self) -> bool:
        """Whether the connector and all its tasks run; a connector that copies records has at least one task."""
        enough = bool(self.tasks) or not self.name.endswith("MirrorSourceConnector")
        return self.state == "RUNNING" and enough and all(task == "RUNNING" for task in self.tasks)

    @property
    def faults(self) -> list[str]:
        """What does not run: the connector, or each task by its number."""
        if self.running:
            return []
        found = [] if self.state == "RUNNING" else [f"{self.name} is {self.state}"]
        found += [f"task {at} of {self.name} is {task}" for at, task in enumerate(self.tasks) if task != "RUNNING"]
        return found or [f"{self.name} is RUNNING without a task"]


def connector_states(url: str, names: Iterable[str]) -> list[ConnectorState] | None:
    """Return the state of each named connector, or None when Connect does not answer."""
    try:
        answer = httpx.get(f"{url.rstrip('/')}/connectors", params={"expand": "status"}, timeout=REST_DEADLINE_S)
        answer.raise_for_status()
        found = answer.json()
        return [_state(name, found.get(name, {}).get("status", {})) for name in names]
    except _NO_ANSWER:
        return None


def _state(name: str, status: dict[str, Any]) -> ConnectorState:
    tasks = tuple(str(task.get("state")) for task in status.get("tasks", []))
    return ConnectorState(name, str(status.get("connector", {}).get("state", "missing")), tasks)


def positions_from_rest(url: str, mirror: Mirror) -> dict[TopicPartition, int] | None:
    """Return the last source offset copied per partition from `/connectors/NAME/offsets`, None without an answer."""
    try:
        answer = httpx.get(f"{url.rstrip('/')}/connectors/{mirror.source_connector}/offsets", timeout=REST_DEADLINE_S)
        answer.raise_for_status()
        return {
            TopicPartition(entry["partition"]["topic"], int(entry["partition"]["partition"])): int(
                entry["offset"]["offset"]
            )
            for entry in answer.json()["offsets"]
            if entry["partition"].get("cluster") == mirror.source_alias and entry.get("offset")
        }
    except _NO_ANSWER:
        return None


def apply_positions(known: dict[TopicPartition, int], records: Iterable[Record], mirror: Mirror) -> None:
    """Bring the last source offset copied per partition up to date with records of Connect's offsets topic."""
    for key, value in records:
        tp = _position_key(key, mirror)
        if tp is None:
            continue
        offset = json.loads(value).get("offset") if value else None
        if offset is None:
            known.pop(tp, None)
        else:
            known[tp] = int(offset)


def _position_key(key: bytes | None, mirror: Mirror) -> TopicPartition | None:
    try:
        connector, part = json.loads(key or b"null")
        if connector != mirror.source_connector or part["cluster"] != mirror.source_alias:
            return None
        return TopicPartition(str(part["topic"]), int(part["partition"]))
    except (ValueError, TypeError, KeyError):
        return None
