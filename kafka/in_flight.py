"""Sends many requests to a cluster, each for one name, and keeps a bounded number of them in flight.

An admin client reads or sets the offsets of one group with a request, and looks up that group's coordinator before it.
One after the other, ten thousand groups cost both round trips ten thousand times. Owns how many are in flight. Does not
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

    The deadline of each request begins when it is sent: all of them may take long, as long as answers come. A caller
    that stops in between leaves up to `IN_FLIGHT` requests that were sent, and that the cluster carries out.

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
