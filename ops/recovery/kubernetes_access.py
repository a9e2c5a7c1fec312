"""The caller's own access to Kubernetes, with errors that say what to do.

Owns reaching the API server, trying again while it is busy or away, the words when it cannot be reached, and the wait
until an operator has carried out a change. Does not own what is read or written.
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

from contract.verification_request import Resource
from kafka.connector_status import access_name, api_client, resource_status
from ops.errors import OpsError

CALL_WITHIN_S = 15  # the client ignores a number that is not whole
TRIED_WITHIN_S = 20.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0
_PASSING = {429, 500, 502, 503, 504}
READY_WITHIN_S, POLL_S, REPORTED_EVERY_S = 600.0, 0.25, 10.0


@contextmanager
def kubernetes(
    environment: Mapping[str, str], context: str | None = None, tried_within_s: float | None = None
) -> Iterator[client.ApiClient]:
    """Yield a client of the API server of a context; raises OpsError, which names it, if there is none or it refuses.

    `context` is the one that the stack names; None for the kubeconfig's current one. A call whose answer is 429 or a
    5xx, or that gets none, is made again as long as `tried_within_s` seconds have not passed: each must be safe to
    repeat. An earlier attempt may have succeeded although its answer was lost, so that a create or a replace may end in
    a conflict with itself.
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
    api.rest_client.request = Retrying(
        stop=stop_before_delay(TRIED_WITHIN_S if tried_within_s is None else tried_within_s),
        wait=wait_exponential_jitter(multiplier=FIRST_PAUSE_S, max=LONGEST_PAUSE_S, jitter=FIRST_PAUSE_S),
        retry=retry_if_exception_type(urllib3.exceptions.HTTPError) | retry_if_result(_is_passing),
        retry_error_callback=_last_answer,
    ).wraps(api.rest_client.request)
    try:
        yield api
    except ApiException as error:
        raise OpsError(refusal(error, where)) from None
    except urllib3.exceptions.HTTPError as error:
        raise OpsError(
            f"kubernetes: the API server of {where} must answer (got {type(error).__name__}). Check KUBECONFIG and the "
            "network."
        ) from None
    finally:
        api.close()


def _is_passing(answer: Any) -> bool:
    """Whether the same call may succeed later: the API server, or what it needs, was busy or away."""
    return answer.status in _PASSING


def _last_answer(state: RetryCallState) -> Any:
    """The last answer, whatever its status; raises what the last attempt raised."""
    return state.outcome.result() if state.outcome else None


def refusal(error: ApiException, where: str) -> str:
    """Return one sentence for an answer of the API server of a context; its body holds no secret."""
    said = " ".join(str(error.body or error.reason).split())[:300]
    if error.status in (401, 403):
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
