"""The caller's own access to Kubernetes, with errors that say what to do, and changes of objects that Pulumi declares.

Owns reaching the API server, trying again while it is busy or away, the words when it cannot be reached, and the wait
until an operator has carried out a change. Does not own what is read or changed.

Changes are made in Pulumi's place: as its own field manager, by server-side apply. Pulumi's provider applies each
resource as a manager `pulumi-kubernetes-...`. A field that somebody else sets becomes a conflict at its next update.
What is applied here as that manager is what `pulumi up` would have applied: the fields that it has, with the changed
ones.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import urllib3
import yaml
from kubernetes import client
from kubernetes.client.rest import ApiException
from kubernetes.config import ConfigException
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_before_delay,
    wait_exponential_jitter,
)
from tenacity.wait import wait_base

from contract.verification_request import Resource
from kafka.connector_status import access_name, api_client, is_login_refused, resource_status
from ops.console import log
from ops.errors import OpsError

CALL_WITHIN_S = 15  # the client ignores a number that is not whole
TRIED_WITHIN_S = 20.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0
_PASSING = {429, 500, 502, 503, 504}
_FORBIDDEN = 403
NOTICED_S = 2.0  # of waiting, after which somebody wants to know why
READY_WITHIN_S, POLL_S, REPORTED_EVERY_S = 600.0, 0.25, 10.0
PULUMI = "pulumi-kubernetes"
NEW_MANAGER = f"{PULUMI}-break-glass"
"""Of an object that Pulumi has not made yet, or made without server-side apply."""
_APPLY = "application/apply-patch+yaml"
_MISSING, _CONFLICT = 404, 409
Object = dict[str, Any]


@contextmanager
def kubernetes(
    environment: Mapping[str, str], context: str | None = None, tried_within_s: float | None = None
) -> Iterator[client.ApiClient]:
    """Yield a client of the API server of a context; raises OpsError, which names it, if there is none or it refuses.

    `context` is the one that the stack names; None for the kubeconfig's current one. A call whose answer is 429 or a
    5xx, or that gets none, is made again as long as `tried_within_s` seconds have not passed, at the earliest when the
    answer's Retry-After allows it, and for a last time before they end. So each must be safe to repeat. An earlier
    attempt may have succeeded although its answer was lost, so that a create or a replace may end in a conflict with
    itself.
    """
    where = access_name(environment, context)
    try:
        api = api_client(environment, context)
    except (ConfigException, OSError, ValueError, yaml.YAMLError) as error:
        is_parsed = isinstance(error, ConfigException | OSError)  # the parser's message may quote the file
        reason = " ".join(str(error).split())[:200] if is_parsed else f"it cannot be parsed: {type(error).__name__}"
        fix = f"give the kubeconfig a {where} or correct kubernetes:context of the stack, " if context else ""
        raise OpsError(
            f"kubernetes: access must be given by KUBECONFIG or the pod's account (got {where}: {reason}). "
            f'Set KUBECONFIG, {fix}or inside the sandbox: `eval "$(venv/bin/python -m sandbox env)"`.'
        ) from None
    limit_s = TRIED_WITHIN_S if tried_within_s is None else tried_within_s
    patient(api, where, limit_s)
    try:
        yield api
    except ApiException as error:
        raise OpsError(refusal(error, where, limit_s)) from None
    except urllib3.exceptions.HTTPError as error:
        raise OpsError(
            f"kubernetes: the API server of {where} must answer (got {type(error).__name__}). Check KUBECONFIG and the "
            "network."
        ) from None
    finally:
        api.close()


def patient(api: client.ApiClient, where: str, limit_s: float) -> None:
    """Let a client make a call again whose answer is 429 or a 5xx, or that gets none, for `limit_s` seconds in all."""
    api.rest_client.request = Retrying(
        stop=stop_before_delay(limit_s),
        wait=_Pauses(limit_s),
        before_sleep=_Waiting(where),
        retry=retry_if_exception_type(urllib3.exceptions.HTTPError) | retry_if_result(_is_passing),
        retry_error_callback=_last_answer,
    ).wraps(api.rest_client.request)


class _Pauses(wait_base):
    """Pauses that get longer, or as long as an answer asks for, but leave time for a last attempt."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._own = wait_exponential_jitter(multiplier=FIRST_PAUSE_S, max=LONGEST_PAUSE_S, jitter=FIRST_PAUSE_S)

    def __call__(self, state: RetryCallState) -> float:
        own, left = self._own(state), self._limit_s - (state.seconds_since_start or 0.0)
        wanted = _retry_after_s(state)
        return own if wanted <= own else max(own, min(wanted, left - own))


class _Waiting:
    """Logs what a command waits for, when it has done so for a moment and then every few seconds."""

    def __init__(self, where: str) -> None:
        self._where, self._reported_at = where, time.monotonic() - REPORTED_EVERY_S

    def __call__(self, state: RetryCallState) -> None:
        now, wait_s = time.monotonic(), state.upcoming_sleep
        if (state.seconds_since_start or 0.0) + wait_s < NOTICED_S or now - self._reported_at < REPORTED_EVERY_S:
            return
        self._reported_at = now
        failed = state.outcome is None or state.outcome.failed
        got = "no answer" if failed or state.outcome is None else str(state.outcome.result().status)
        log(f"waiting for the API server of {self._where} (got {got})")


def _retry_after_s(state: RetryCallState) -> float:
    """The seconds for which the last answer asks to wait; 0 if it asks for none, or by a date."""
    if state.outcome is None or state.outcome.failed:
        return 0.0
    given = str((state.outcome.result().headers or {}).get("Retry-After") or "")
    return float(given) if given.isascii() and given.isdecimal() else 0.0


def _is_passing(answer: Any) -> bool:
    """Whether the same call may succeed later: the API server, or what it needs, was busy or away."""
    return answer.status in _PASSING


def _last_answer(state: RetryCallState) -> Any:
    """The last answer, whatever its status; raises what the last attempt raised."""
    return state.outcome.result() if state.outcome else None


def refusal(error: ApiException, where: str, limit_s: float = TRIED_WITHIN_S) -> str:
    """Return what to do about an answer of the API server of a context; its body holds no secret."""
    said = " ".join(str(error.body or error.reason).split())[:300]
    if error.status in _PASSING:
        return (
            f"kubernetes: the API server of {where} must accept the request within {limit_s:g} s (got {error.status}: "
            f"{said}). It is busy, or away: run this again once it answers."
        )
    if is_login_refused(error):
        return (
            f"kubernetes: your account in {where} must be known (got {error.status}: {said}). Its token or certificate "
            "may have expired: log in again, then run this again."
        )
    if error.status == _FORBIDDEN:
        return f"kubernetes: your account in {where} must be allowed to do this (got {error.status}: {said}). Grant it."
    return f"kubernetes: the API server of {where} must accept the request (got {error.status}: {said})."


def wait_until_ready(
    resource: Resource, environment: Mapping[str, str], log: Callable[[str], None], within_s: float | None = None
) -> None:
    """Return once the operator has seen the newest generation of a resource and it is Ready; raises OpsError."""
    limit_s = READY_WITHIN_S if within_s is None else within_s
    deadline, reported_at = time.monotonic() + limit_s, time.monotonic()
    while True:
        status = resource_status(resource, (), environment)
        if status.silent is None and status.current and status.ready:
            return
        why = status.silent or status.reason or "its operator has not seen the change"
        if time.monotonic() > deadline:
            raise OpsError(
                f"{resource.kind} {resource.namespace}/{resource.name}: must be Ready within {limit_s:.0f} s (got "
                f"{why}). Remove the cause, then run this again."
            )
        if time.monotonic() - reported_at >= REPORTED_EVERY_S:
            reported_at = time.monotonic()
            log(f"  waiting for {resource.kind} {resource.name}: {why}")
        time.sleep(POLL_S)


def secret(api: client.ApiClient, namespace: str, name: str) -> Object | None:
    """Return a Secret as the API server has it, None if there is none; raises ApiException."""
    try:
        found = client.CoreV1Api(api).read_namespaced_secret(name, namespace, _request_timeout=CALL_WITHIN_S)
    except ApiException as error:
        if error.status != _MISSING:
            raise
        return None
    document: Object = api.sanitize_for_serialization(found)
    return document


def apply_secret(
    api: client.ApiClient, namespace: str, name: str, type_: str, labels: Mapping[str, str], data: Mapping[str, str]
) -> None:
    """Set all values, in base64, and some labels of a Secret; it is made if there is none. Raises ApiException."""
    body, manager = _applied_as(secret(api, namespace, name), "v1", "Secret", namespace, name)
    metadata = body["metadata"]
    all_labels = {**(metadata.get("labels") or {}), **labels}
    body = {**body, "metadata": {**metadata, "labels": all_labels}, "type": type_, "data": dict(data)}
    client.CoreV1Api(api).patch_namespaced_secret(
        name,
        namespace,
        body,
        field_manager=manager,
        force=True,
        _content_type=_APPLY,
        _request_timeout=CALL_WITHIN_S,
    )


def custom_object(api: client.ApiClient, api_version: str, kind: str, namespace: str, name: str) -> Object:
    """Return a custom resource that exists as the API server has it; raises ApiException."""
    group, _, version = api_version.rpartition("/")
    found: Object = client.CustomObjectsApi(api).get_namespaced_custom_object(
        group, version, namespace, f"{kind.lower()}s", name, _request_timeout=CALL_WITHIN_S
    )
    return found


def change_spec(
    api: client.ApiClient,
    api_version: str,
    kind: str,
    namespace: str,
    name: str,
    change: Callable[[Object], Mapping[str, Any] | None],
) -> None:
    """Replace fields of the `spec` of a custom resource that exists by what `change` makes of it as it is now.

    `change` returns the fields, None as a value removes one; it returns None if nothing is to be changed, and may raise
    to forbid it. It is called again if somebody else has changed the resource since: nobody's change is lost. Raises
    ApiException, also if that goes on for `TRIED_WITHIN_S`.
    """
    group, _, version = api_version.rpartition("/")
    custom, place = client.CustomObjectsApi(api), (group, version, namespace, f"{kind.lower()}s", name)
    end = time.monotonic() + TRIED_WITHIN_S
    while True:
        live = custom_object(api, api_version, kind, namespace, name)
        fields = change(live)
        if fields is None:
            return
        body, manager = _applied_as(live, api_version, kind, namespace, name)
        spec = {**(body.get("spec") or {}), **fields}
        metadata = {**body["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
        body = {**body, "metadata": metadata, "spec": {key: one for key, one in spec.items() if one is not None}}
        try:
            custom.patch_namespaced_custom_object(
                *place, body, field_manager=manager, force=True, _content_type=_APPLY, _request_timeout=CALL_WITHIN_S
            )
        except ApiException as error:
            if error.status != _CONFLICT or time.monotonic() >= end:
                raise
            time.sleep(POLL_S)
        else:
            return


def _applied_as(
    live: Mapping[str, Any] | None, api_version: str, kind: str, namespace: str, name: str
) -> tuple[Object, str]:
    """Return the document that applies what Pulumi has applied of an object already, and its field manager."""
    wanted, manager = applied(live)
    metadata = {**(wanted.get("metadata") or {}), "name": name, "namespace": namespace}
    return {**wanted, "apiVersion": api_version, "kind": kind, "metadata": metadata}, manager


def applied(live: Mapping[str, Any] | None) -> tuple[Object, str]:
    """Return the fields of an object that Pulumi has applied, with their values, and the name of its field manager."""
    for entry in (live or {}).get("metadata", {}).get("managedFields") or []:
        if str(entry.get("manager")).startswith(PULUMI) and entry.get("operation") == "Apply":
            return _owned(live or {}, entry.get("fieldsV1") or {}), str(entry["manager"])
    return {}, NEW_MANAGER


def _owned(value: Any, fields: Mapping[str, Any]) -> Any:
    """The part of a value that a FieldsV1 names; a list is one value, also one whose items are owned one by one."""
    own = {key.removeprefix("f:"): below for key, below in fields.items() if key.startswith("f:")}
    if not own or not isinstance(value, Mapping):
        return value
    return {key: _owned(value[key], below) for key, below in own.items() if key in value}
