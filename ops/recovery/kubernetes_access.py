"""The caller's own access to Kubernetes, with errors that say what to do.

Owns reaching the API server and the words when it cannot be reached. Does not own what is read or written.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import urllib3
from kubernetes import client  # type: ignore[import-untyped]  # ships no types
from kubernetes.client.rest import ApiException  # type: ignore[import-untyped]  # ships no types
from kubernetes.config import ConfigException  # type: ignore[import-untyped]  # ships no types

from ops.errors import OpsError
from spark.clusters.resource_status import api_client

CALL_WITHIN_S = 15  # the client ignores a number that is not whole


@contextmanager
def kubernetes(environment: Mapping[str, str]) -> Iterator[client.ApiClient]:
    """Yield a client of the API server; raises OpsError if there is none or it refuses."""
    try:
        api = api_client(environment)
    except (ConfigException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise OpsError(
            f"kubernetes: access must be given by KUBECONFIG or the pod's account ({reason}). Set KUBECONFIG, or "
            'inside the sandbox: eval "$(python -m sandbox env)".'
        ) from None
    try:
        yield api
    except ApiException as error:
        raise OpsError(refusal(error)) from None
    except urllib3.exceptions.HTTPError as error:
        raise OpsError(
            f"kubernetes: the API server must answer (got {type(error).__name__}). Check KUBECONFIG and the network."
        ) from None
    finally:
        api.close()


def refusal(error: ApiException) -> str:
    """Return one sentence for an answer of the API server; its body holds no secret."""
    said = " ".join(str(error.body or error.reason).split())[:300]
    if error.status in (401, 403):
        return f"kubernetes: your account must be allowed to do this (got {error.status}: {said}). Grant it."
    return f"kubernetes: the API server must accept the request (got {error.status}: {said})."
