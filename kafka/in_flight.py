"""Requests of which a client takes one at a time, sent to a cluster so that a bounded number waits for an answer.

An admin client reads or sets the offsets of one group with a request, and looks up that group's coordinator before it:
one after the other, ten thousand groups cost ten thousand times both round trips. Owns how many are in flight. Does not
own what is asked, nor what an error means.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaException

IN_FLIGHT = 32
"""Requests without an answer. A broker takes one after the other from a connection: more are hardly faster."""
Name = TypeVar("Name")


def answers(
    names: Iterable[Name], send: Callable[[Name], "Future[Any]"]
) -> Iterator[tuple[Name, Any, KafkaException | None]]:
    """Yield each name with the answer to its request, or with the error that is its answer, in the order of names.

    A request has its own deadline from when it is sent, so that of all of them is one about progress. To a caller that
    stops in between, the requests in flight are sent already.

    Args:
        names: what is asked for, one request each; each is taken when its request is sent.
        send: sends a request and returns its future, which ends by the deadline of the request.
    """
    in_flight: deque[tuple[Name, Future[Any]]] = deque()
    for name in names:
        in_flight.append((name, send(name)))
        if len(in_flight) == IN_FLIGHT:
            yield _answer(*in_flight.popleft())
    while in_flight:
        yield _answer(*in_flight.popleft())


def _answer(name: Name, future: "Future[Any]") -> tuple[Name, Any, KafkaException | None]:
    try:
        return name, future.result(), None
    except KafkaException as error:
        return name, None, error
