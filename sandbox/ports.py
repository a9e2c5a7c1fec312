"""Loopback ports: any free ones, or ones that their user remembers, so that addresses survive a restart.

A broker's port is chosen seconds before the broker listens on it, and several sandboxes may choose at the same time.
Therefore each process has blocks of ports to itself: a block belongs to the process that has its first port bound, and
the kernel frees that when the process ends.
"""

import random
import socket
import threading

HOST = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Different ports of 127.0.0.1 that nothing listens on now.

    Somebody else may take one before it is used: who starts a server on it must be ready to choose again.
    """
    sockets = []
    try:
        for _ in range(count):
            probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sockets.append(probe)
            probe.bind((HOST, 0))
        return [probe.getsockname()[1] for probe in sockets]
    finally:
        for probe in sockets:
            probe.close()


# Below the range that the kernel hands to outgoing connections: a stopped broker's port stays free for it.
FIRST, LAST = 20000, 31999
BLOCK = 100

_lock = threading.Lock()
_given: set[int] = set()
_left: list[int] = []
_held: list[socket.socket] = []


def reserve(ports: list[int]) -> None:
    """Ports that are spoken for, although nothing may listen on them at the moment."""
    with _lock:
        _given.update(ports)


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on and that neither this process nor another one has given out.

    Raises OSError if every block belongs to somebody.
    """
    with _lock:
        while True:
            if not _left:
                _left.extend(_claimed())
            port = _left.pop()
            if port not in _given and is_free(port):
                _given.add(port)
                return port


def _claimed() -> list[int]:
    """The ports of a block that belongs to this process from now on, without the one that it is held by."""
    for first in random.sample(range(FIRST, LAST, BLOCK), (LAST - FIRST) // BLOCK):
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)  # without SO_REUSEADDR: nobody else can bind it
        try:
            holder.bind(("127.0.0.1", first))
        except OSError:
            holder.close()
            continue
        _held.append(holder)
        return random.sample(range(first + 1, first + BLOCK), BLOCK - 1)
    raise OSError(f"no block of {BLOCK} ports between {FIRST} and {LAST} on 127.0.0.1 is free. Stop other sandboxes.")


def is_free(port: int) -> bool:
    """True if a listener could bind to this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
