"""The caller's own access to Kubernetes, with errors that say what to do.

Owns reaching the API server and the words when it cannot be reached. Does not own what is read or written.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import urllib3
from kubernetes import client
from kubernetes.client.rest import ApiException
from kubernetes.config import ConfigException

from kafka.resource_status import access_name, api_client
from ops.errors import OpsError

CALL_WITHIN_S = 15  # the client ignores a number that is not whole


@contextmanager
def kubernetes(environment: Mapping[str, str], context: str | None = None) -> Iterator[client.ApiClient]:
    """Yield a client of the API server of a context; raises OpsError, which names it, if there is none or it refuses.

    `context` is the one that the stack names; None for the kubeconfig's current one.
    """
    where = access_name(environment, context)
    try:
        api = api_client(environment, context)
    except (ConfigException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        fix = f"give the kubeconfig a {where} or correct kubernetes:context of the stack, " if context else ""
        raise OpsError(
            f"kubernetes: access must be given by KUBECONFIG or the pod's account (got {where}: {reason}). "
            f'Set KUBECONFIG, {fix}or inside the sandbox: `eval "$(venv/bin/python -m sandbox env)"`.'
        ) from None
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


def refusal(error: ApiException, where: str) -> str:
    """Return one sentence for an answer of the API server of a context; its body holds no secret."""
    said = " ".join(str(error.body or error.reason).split())[:300]
    if error.status in (401, 403):
        return f"kubernetes: your account in {where} must be allowed to do this (got {error.status}: {said}). Grant it."
    return f"kubernetes: the API server of {where} must accept the request (got {error.status}: {said})."
