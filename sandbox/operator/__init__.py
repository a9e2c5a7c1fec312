"""The operators' stand-in: reconciles Strimzi's and OLM's custom resources with real Kafka processes on this machine.

What stands in is only the controller. The resources it reads, the Secrets and status it writes and the processes it
runs have the shapes and names that Strimzi 1.2 and OLM use.

Here is what its parts share: the status of a custom resource (the Ready condition with its generation, reason and
message), and the errors that carry the reason and message of that condition.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

Status = dict[str, Any]
# Kinds with the condition NotReady; Strimzi writes Ready=False for all others.
_NOT_READY_KINDS = ("Kafka", "KafkaUser", "KafkaMirrorMaker2")


def now() -> str:
    """The present second as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(kind: str, is_true: bool, reason: str | None = None, message: str | None = None) -> Status:
    """One condition without its transition time, which `with_conditions` adds."""
    result: Status = {"type": kind, "status": "True" if is_true else "False"}
    if reason:
        result["reason"] = reason
    if message:
        result["message"] = message
    return result


def ready() -> Status:
    """The condition of a resource that is as in its spec."""
    return condition("Ready", True)


def not_ready(kind: str, reason: str, message: str) -> Status:
    """The condition of a resource of a kind that is not as in its spec, and what to do about it.

    As with Strimzi it is NotReady=True for clusters, users and mirrors, which then have no condition Ready, and
    Ready=False for topics.
    """
    if kind in _NOT_READY_KINDS:
        return condition("NotReady", True, reason, message)
    return condition("Ready", False, reason, message)


def with_conditions(
    resource: Mapping[str, Any], fields: Mapping[str, object], conditions: list[Status], at: str | None = None
) -> Status:
    """The whole new status; a condition's transition time moves only when its status does."""
    old = {entry.get("type"): entry for entry in (resource.get("status") or {}).get("conditions") or []}
    result: Status = {**fields, "observedGeneration": resource["metadata"].get("generation", 1)}
    result["conditions"] = [
        {
            **entry,
            "lastTransitionTime": (
                old[entry["type"]].get("lastTransitionTime")
                if old.get(entry["type"], {}).get("status") == entry["status"]
                else None
            )
            or at
            or now(),
        }
        for entry in conditions
    ]
    return result


def merge_patch(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> Status | None:
    """The JSON merge patch that turns the status `old` into `new`, None if they are equal already."""
    before = old or {}
    if dict(before) == dict(new):
        return None
    return {**{key: None for key in before if key not in new}, **_nulled(before, new)}


def _nulled(before: Mapping[str, Any], new: Mapping[str, Any]) -> Status:
    result: Status = {}
    for key, value in new.items():
        previous = before.get(key)
        if isinstance(value, Mapping) and isinstance(previous, Mapping):
            result[key] = {**{name: None for name in previous if name not in value}, **_nulled(previous, value)}
        else:
            result[key] = value
    return result


class OperatorError(Exception):
    """Base of the operator's errors."""


class NotReadyError(OperatorError):
    """The resource cannot be Ready now.

    `reason` is one CamelCase word, `message` has what to do, `retry_s` when it is tried again, `status` what else the
    resource's status gets.
    """

    def __init__(
        self, reason: str, message: str, *, retry_s: float = 5.0, status: dict[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.retry_s = retry_s
        self.status = status or {}
