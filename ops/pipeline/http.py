"""One HTTP request of a pipeline: tried again while the server is busy, and one message when it does not work.

Headers carry tokens, so no error shows them.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import httpx
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential,
)

from ops.errors import OpsError

TIMEOUT_S = 20.0
WITHIN_S = 90.0
_TRIES = 5
_BUSY = {408, 425, 429, 500, 502, 503, 504}
_LENGTH_MAX = 200
Answer = TypeVar("Answer")


class RetryPauses:
    """How long to wait before the next try: growing, or what the server asks for, within bounds."""

    def __init__(self, first_s: float = 1.0, longest_s: float = 30.0) -> None:
        self._longest_s = longest_s
        self._growing = wait_exponential(multiplier=first_s, max=longest_s)

    def __call__(self, state: RetryCallState) -> float:
        """Return the seconds before the next try."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.response.headers.get("retry-after", "") if isinstance(error, httpx.HTTPStatusError) else ""
        return min(float(asked), self._longest_s) if asked.isdigit() else float(self._growing(state))


def with_retries(action: Callable[[], Answer], what: str, pauses: RetryPauses | None = None) -> Answer:
    """Return what the action returns, tried again while the network or the server fails; raises OpsError.

    The action is repeated as a whole, so it must be safe to repeat.
    """
    retrying = Retrying(
        stop=stop_after_attempt(_TRIES) | stop_after_delay(WITHIN_S),
        wait=pauses or RetryPauses(),
        retry=retry_if_exception(_passes),
        reraise=True,
    )
    try:
        return retrying(action)
    except httpx.HTTPStatusError as error:
        reason = " ".join(error.response.text.split())[:_LENGTH_MAX]
        raise OpsError(f"{what}: must be answered with success (got {error.response.status_code} {reason}).") from None
    except httpx.HTTPError as error:
        raise OpsError(
            f"{what}: must be reachable ({type(error).__name__}). Check the address and the network."
        ) from None


def request_json(client: httpx.Client, method: str, url: str, **options: Any) -> Any:
    """Return the JSON of one answer; raises httpx.HTTPError, also for an answer that is none."""
    response = client.request(method, url, **options)
    response.raise_for_status()
    try:
        return response.json()
    except ValueError as error:
        raise httpx.DecodingError("the answer is no JSON", request=response.request) from error


def _passes(error: BaseException) -> bool:
    """Whether an error may pass by itself."""
    if isinstance(error, httpx.HTTPStatusError):
        limited = error.response.status_code == 403 and "retry-after" in error.response.headers
        return limited or error.response.status_code in _BUSY
    return isinstance(error, httpx.TransportError)
