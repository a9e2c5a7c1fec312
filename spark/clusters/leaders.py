"""Whether the brokers that lead partitions can be reached from here at the addresses that they advertise.

A bootstrap server that answers proves nothing about the others, and librdkafka only waits for them.
"""

import contextlib
import socket
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

PROBE_S = 3.0
Partition = tuple[str, int]


@dataclass(frozen=True, order=True)
class Broker:
    """A broker and the address that it advertises."""

    number: int
    host: str
    port: int


def leaders(metadata: Any, names: Iterable[str]) -> dict[Partition, Broker | None]:
    """Return who leads each partition of these topics by librdkafka's cluster metadata, None for nobody."""
    found: dict[Partition, Broker | None] = {}
    for name in names:
        for number, part in metadata.topics[name].partitions.items():
            broker = metadata.brokers.get(part.leader)
            found[name, number] = Broker(broker.id, broker.host, broker.port) if broker is not None else None
    return found


def silent(led: Mapping[Partition, Broker | None], reached: set[Broker]) -> dict[Partition, Broker | None]:
    """Return the partitions without a leader that takes connections; adds the others' leaders to `reached`."""
    wanted = {broker for broker in led.values() if broker is not None} - reached
    with ThreadPoolExecutor(16) as pool:
        answers = zip(wanted, pool.map(silence, wanted), strict=True)
    reached |= {broker for broker, said in answers if said is None}
    return {place: broker for place, broker in led.items() if broker is None or broker not in reached}


def silence(broker: Broker) -> str | None:
    """Return why a broker takes no connection, None if it takes one."""
    return unreachable(broker.host, broker.port)


def unreachable(host: str, port: int) -> str | None:
    """Return why a port takes no connection, None if it takes one."""
    try:
        with contextlib.closing(socket.create_connection((host, port), PROBE_S)):
            return None
    except TimeoutError:
        return f"cannot be reached within {PROBE_S:.0f} s"
    except OSError as error:
        return f"cannot be reached ({error.strerror or error})"
