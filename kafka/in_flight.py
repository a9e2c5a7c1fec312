"""Sends many requests to a cluster, each for one name, and keeps a bounded number of them in flight.

An admin client reads or sets the offsets of one group with a request, and looks up that group's coordinator before it.
One after the other, ten thousand groups cost both round trips ten thousand times. Owns how many are in flight. Does not
own what is asked, nor what an error means.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from kafka.errors import code_of

IN_FLIGHT = 32
"""Requests without an answer. A broker takes one after the other from a connection: more are hardly faster."""
LOADS = KafkaError.COORDINATOR_LOAD_IN_PROGRESS
"""What a broker answers that has just become a group's coordinator. Kafka's own client asks again, librdkafka does not.

The one that is it no longer answers NOT_COORDINATOR: librdkafka's admin client goes on asking it, so that a repeat is
of no use.
"""
AGAIN_S = 0.2
Name = TypeVar("Name")
Answered = tuple[Name, Any, KafkaException | None]


def answers(
    names: Iterable[Name], send: Callable[[Name], "Future[Any]"], loaded_within_s: float = 0.0
) -> Iterator[Answered[Name]]:
    """Yield each name with the answer to its request, or with the error that is its answer, in the order of names.

    Those that are asked for again come behind all others. The deadline of each request begins when it is sent: all of
    them may take long, as long as answers come. A caller that stops in between leaves up to `IN_FLIGHT` requests that
    were sent, and that the cluster carries out.

    Args:
        names: what is asked for, one request each; each is taken when its request is sent.
        send: sends a request and returns its future, which ends by the deadline of the request.
        loaded_within_s: how long those are asked for again whose coordinator still loads, from the first of them on.
    """
    end: float | None = None
    while True:
        again: list[Name] = []
        for name, answer, error in _once(names, send):
            loads = error is not None and code_of(error) == LOADS
            if loads and end is None:
                end = time.monotonic() + loaded_within_s
            if loads and time.monotonic() < (end or 0.0):
                again.append(name)
            else:
                yield name, answer, error
        if not again:
            return
        time.sleep(AGAIN_S)
        names = again


def _once(names: Iterable[Name], send: Callable[[Name], "Future[Any]"]) -> Iterator[Answered[Name]]:
    in_flight: deque[tuple[Name, Future[Any]]] = deque()
    for name in names:
        in_flight.append((name, send(name)))
        if len(in_flight) == IN_FLIGHT:
            yield _answer(*in_flight.popleft())
    while in_flight:
        yield _answer(*in_flight.popleft())


def _answer(name: Name, future: "Future[Any]") -> Answered[Name]:
    try:
        return name, future.result(), None
    except KafkaException as error:
        return name, None, error
