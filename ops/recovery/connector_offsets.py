"""A source connector's offsets, listed and altered by the operator as annotations of the KafkaMirrorMaker2 ask for it.

Owns the ConfigMap's entry, the annotations and the wait until the operator is done. Does not own which offsets are
right, nor that the connector is stopped.
"""

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubernetes import client
from kubernetes.client.rest import ApiException
from urllib3.exceptions import HTTPError

from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery.kubernetes_access import CALL_WITHIN_S, kubernetes
from settings.platform import annotation_domain

OPERATION, CONNECTOR = "connector-offsets", "mirrormaker-connector"
"""Annotations, behind the domain of the resource's API group."""
_MANAGED_BY, _EARLIER_MANAGER = "app.kubernetes.io/managed-by", "rt-inventory"
WITHIN_S = 300.0
ATTEMPTS, POLL_S, SILENT_AFTER_S = 3, 0.5, 15.0
_NOT_FOUND, _CONFLICT = 404, 409
_WARNINGS = ("ManageOffsets", "ListOffsets", "AlterOffsets")

Place = tuple[str, str, str]
"""API version, namespace and name of a KafkaMirrorMaker2."""
Positions = Mapping[TopicPartition, int]
"""By topic and partition at the source, the offset of the last record that was copied; -1 for none yet."""
Say = Callable[[str], None]


def alter(
    place: Place,
    connector: str,
    positions: Positions,
    environment: Mapping[str, str],
    say: Say,
    within_s: float = WITHIN_S,
    context: str | None = None,
    require_permission: Callable[[], None] = lambda: None,
) -> None:
    """Set where a stopped source connector goes on: behind these offsets. Partitions that are not named stay.

    `context` is the kubeconfig's, None for the current one. The result is read back. Safe to run again. Raises OpsError
    if the connector is not stopped, the operator refuses, says nothing within the deadline, or ends with other offsets.
    `require_permission` is called before each change, for there are waits between them, and raises to forbid it.
    """
    if not positions:
        return
    with kubernetes(environment, context) as api:
        request = _OffsetsRequest(
            api=api,
            place=place,
            connector=connector,
            say=say,
            within_s=within_s,
            require_permission=require_permission,
        )
        request.require_stopped()
        request.write(_document(connector, positions))
        request.ask("alter")
        found = _positions(request.answer())
    wrong = [
        f"{topic}-{partition}: {_words(found.get(TopicPartition(topic, partition), -1))} instead of {_words(wanted)}"
        for (topic, partition), wanted in sorted(positions.items())
        if found.get(TopicPartition(topic, partition), -1) != max(wanted, -1)
    ]
    if wrong:
        raise OpsError(
            f"mirror {request.name}: offsets of connector {connector} must be as asked for after they were altered "
            f"(got {', '.join(wrong[:5])}{' and more' if wrong[5:] else ''}). Something else alters them: look at the "
            "operator's log, then run this again."
        )


def listed(
    place: Place,
    connector: str,
    environment: Mapping[str, str],
    say: Say,
    within_s: float = WITHIN_S,
    context: str | None = None,
) -> dict[TopicPartition, int]:
    """Return the offsets of a source connector as Connect has stored them; see `Positions`."""
    with kubernetes(environment, context) as api:
        request = _OffsetsRequest(api=api, place=place, connector=connector, say=say, within_s=within_s)
        return _positions(request.answer())


def require_support(place: Place, connector: str, environment: Mapping[str, str], context: str | None) -> None:
    """Raise OpsError unless the resource can be asked for a connector's offsets; nothing is changed."""
    with kubernetes(environment, context) as api:
        request = _OffsetsRequest(api=api, place=place, connector=connector, say=lambda _: None, within_s=0)
        request.require_support()


def entry_key(connector: str) -> str:
    """Return the key of a connector's entry in the ConfigMap, where `>` is not allowed."""
    return f"{connector.replace('->', '--')}.json"


@dataclass(frozen=True, kw_only=True)
class _OffsetsRequest:
    """One conversation with the operator about one connector, at most `within_s` long."""

    api: client.ApiClient
    place: Place
    connector: str
    say: Say
    within_s: float
    require_permission: Callable[[], None] = lambda: None
    begun: float = field(default_factory=time.monotonic)

    @property
    def end(self) -> float:
        return self.begun + self.within_s

    @property
    def name(self) -> str:
        return self.place[2]

    def require_support(self) -> None:
        """Raise OpsError unless annotations of the resource are known, and it has a place for offsets."""
        self._annotation(OPERATION)
        self._config_map(self._resource())

    def require_stopped(self) -> None:
        """Wait until the connector and its tasks are stopped; raises OpsError at once if that is not asked for."""
        asked = self._connector(self._resource()).get("state", "running")
        if asked != "stopped":
            raise self._not_stopped(f"its state is {asked}")
        state = "no state"
        self.say(f"wait for connector {self.connector} to be stopped, at most {self.end - time.monotonic():.0f} s")
        while time.monotonic() < self.end:
            status = self._resource().get("status") or {}
            states = {str(each.get("name")): each for each in status.get("connectors") or []}
            mine = states.get(self.connector) or {}
            state = str((mine.get("connector") or {}).get("state", "no state"))
            if state == "STOPPED" and not mine.get("tasks"):
                return
            time.sleep(POLL_S)
        raise self._not_stopped(f"{state} after {self.within_s:.0f} s")

    def answer(self) -> str:
        """Return the connector's offsets, listed anew."""
        self._forget()
        self.ask("list")
        return self._entry()

    def write(self, content: str) -> None:
        """Put the connector's entry into its ConfigMap, which goes away with the resource.

        It gets no label: the operator sets its own, and logs a conflict where another manager has set another value.
        """
        resource = self._resource()
        namespace, name, data = self.place[1], self._config_map(resource), {entry_key(self.connector): content}
        owner = {
            "apiVersion": self.place[0],
            "kind": "KafkaMirrorMaker2",
            "name": self.name,
            "uid": resource["metadata"]["uid"],
            "controller": False,
            "blockOwnerDeletion": False,
        }
        metadata = {"name": name, "ownerReferences": [owner]}
        core = client.CoreV1Api(self.api)
        self.require_permission()
        try:
            core.create_namespaced_config_map(
                namespace, {"metadata": metadata, "data": data}, _request_timeout=CALL_WITHIN_S
            )
        except ApiException as error:
            if error.status != _CONFLICT:
                raise
            self._patch(name, data)

    def _forget(self) -> None:
        """Take the connector's entry out of the ConfigMap: what is there after the next listing is the operator's."""
        self.require_permission()
        try:
            self._patch(self._config_map(self._resource()), {entry_key(self.connector): None})
        except ApiException as error:
            if error.status != _NOT_FOUND:  # the operator makes one
                raise

    def _patch(self, name: str, data: Mapping[str, str | None]) -> None:
        """Change entries of the ConfigMap, and take away the label that earlier versions of this command gave it."""
        core, namespace = client.CoreV1Api(self.api), self.place[1]
        found = core.read_namespaced_config_map(name, namespace, _request_timeout=CALL_WITHIN_S)
        patch: dict[str, Any] = {"data": data}
        if (found.metadata.labels or {}).get(_MANAGED_BY) == _EARLIER_MANAGER:
            patch["metadata"] = {"labels": {_MANAGED_BY: None}}
        core.patch_namespaced_config_map(name, namespace, patch, _request_timeout=CALL_WITHIN_S)

    def ask(self, operation: str) -> None:
        """Annotate the resource and wait until the operator has taken the annotations off again."""
        self.say(f"ask the operator to {operation} the offsets of connector {self.connector}")
        said = ""
        try:
            for _ in range(ATTEMPTS):
                self.require_permission()
                known = self._silence()
                self.require_permission()
                self._annotate(operation)
                said = self._wait(operation, known)
                if not said:
                    return
        except BaseException:
            with contextlib.suppress(ApiException, HTTPError, OpsError):  # the first error is the one to report
                self.require_permission()  # without it the annotations may be another command's
                self._annotate(None)
            raise
        self.require_permission()
        self._annotate(None)
        raise OpsError(
            f"mirror {self.name}: the operator must {operation} the offsets of connector {self.connector} (got "
            f"{said}). Remove the cause, then run this again."
        )

    def _silence(self) -> list[str]:
        """Take earlier annotations off; return what the operator still says of them after a while."""
        self._annotate(None)
        end = min(self.end, time.monotonic() + SILENT_AFTER_S)
        while (errors := _errors(self._resource())) and time.monotonic() < end:
            time.sleep(POLL_S)
        return errors

    def _wait(self, operation: str, known: list[str]) -> str:
        """Return what the operator says against it; nothing when it is done."""
        errors: list[str] = []
        while time.monotonic() < self.end:
            resource = self._resource()
            if self._annotation(OPERATION) not in (resource["metadata"].get("annotations") or {}):
                return ""
            errors = _errors(resource)
            if news := [each for each in errors if each not in known]:
                return "; ".join(news)
            time.sleep(POLL_S)
        raise OpsError(
            f"mirror {self.name}: the operator must {operation} the offsets of connector {self.connector} within "
            f"{self.within_s:.0f} s (got {'; '.join(errors) or 'no answer'}). See that it runs and watches namespace "
            f"{self.place[1]}, then run this again."
        )

    def _annotate(self, operation: str | None) -> None:
        """Set both annotations, or with None take them off."""
        connector = self.connector if operation else None
        names = {self._annotation(OPERATION): operation, self._annotation(CONNECTOR): connector}
        client.CustomObjectsApi(self.api).patch_namespaced_custom_object(
            *self._path, {"metadata": {"annotations": names}}, _request_timeout=CALL_WITHIN_S
        )

    def _annotation(self, name: str) -> str:
        """An annotation as the operator of the resource's API group reads it; raises OpsError for no such group."""
        try:
            return f"{annotation_domain(self.place[0])}/{name}"
        except KeyError:
            raise OpsError(
                f"mirror {self.name}: offsets must be altered by an operator whose annotations are known (got a "
                f"resource of {self.place[0]}). Nothing was changed."
            ) from None

    def _resource(self) -> dict[str, Any]:
        found: dict[str, Any] = client.CustomObjectsApi(self.api).get_namespaced_custom_object(
            *self._path, _request_timeout=CALL_WITHIN_S
        )
        return found

    @property
    def _path(self) -> tuple[str, str, str, str, str]:
        group, _, version = self.place[0].partition("/")
        return group, version, self.place[1], "kafkamirrormaker2s", self.name

    def _connector(self, resource: Mapping[str, Any]) -> Mapping[str, Any]:
        """The source connector's part of the resource."""
        alias = self.connector.partition("->")[0]
        for mirror in resource["spec"].get("mirrors") or []:
            if alias in ((mirror.get("source") or {}).get("alias"), mirror.get("sourceCluster")):
                found: Mapping[str, Any] = mirror.get("sourceConnector") or {}
                return found
        raise OpsError(f"mirror {self.name}: must have a connector {self.connector} (got none from {alias}).")

    def _config_map(self, resource: Mapping[str, Any]) -> str:
        connector = self._connector(resource)
        names = [
            ((connector.get(field) or {}).get(inner) or {}).get("name")
            for field, inner in (("alterOffsets", "fromConfigMap"), ("listOffsets", "toConfigMap"))
        ]
        if names[0] is None or names[0] != names[1]:
            raise OpsError(
                f"mirror {self.name}: listOffsets and alterOffsets of its source connector must name the same "
                f"ConfigMap (got {names[1] or 'none'} and {names[0] or 'none'}). Run `pulumi up` once; where "
                "configDefaults is false, mirrors of this project have none, and where the operator's CRD lacks these "
                "fields, it is older than platform.version says."
            )
        return str(names[0])

    def _entry(self) -> str:
        namespace, name, key = self.place[1], self._config_map(self._resource()), entry_key(self.connector)
        found = client.CoreV1Api(self.api).read_namespaced_config_map(name, namespace, _request_timeout=CALL_WITHIN_S)
        content = (found.data or {}).get(key)
        if content is None:
            raise OpsError(
                f"ConfigMap {namespace}/{name}: must hold the offsets of connector {self.connector} once the operator "
                f"has listed them (got nothing under {key}). Look at the operator's log, then run this again."
            )
        return str(content)

    def _not_stopped(self, got: str) -> OpsError:
        return OpsError(
            f"mirror {self.name}: connector {self.connector} must be stopped before its offsets are altered (got "
            f"{got}). Set state: stopped on the mirror and run `pulumi up`; nothing was altered."
        )


def _document(connector: str, positions: Positions) -> str:
    """The ConfigMap's entry. Connect takes no negative offset: null makes it forget the partition."""
    alias = connector.partition("->")[0]
    entries = [
        {
            "partition": {"cluster": alias, "partition": partition, "topic": topic},
            "offset": {"offset": offset} if offset >= 0 else None,
        }
        for (topic, partition), offset in sorted(positions.items())
    ]
    return json.dumps({"offsets": entries}, separators=(",", ":"))  # a ConfigMap holds 1 MiB


def _positions(content: str) -> dict[TopicPartition, int]:
    try:
        entries = json.loads(content)["offsets"]
        return {
            TopicPartition(str(each["partition"]["topic"]), int(each["partition"]["partition"])): int(
                each["offset"]["offset"]
            )
            for each in entries
            if each.get("offset") is not None
        }
    except (ValueError, KeyError, TypeError) as error:
        raise OpsError(
            f"offsets: must be those of a MirrorSourceConnector (got {content[:200]!r}). Look at the ConfigMap."
        ) from error


def _errors(resource: Mapping[str, Any]) -> list[str]:
    """What the operator says of offsets in the resource's conditions."""
    conditions = (resource.get("status") or {}).get("conditions") or []
    return [
        str(each.get("message") or each["reason"])
        for each in conditions
        if each.get("type") == "Warning" and each.get("reason") in _WARNINGS
    ]


def _words(offset: int) -> str:
    return "none" if offset < 0 else str(offset)
