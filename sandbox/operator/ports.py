"""Loopback ports: chosen once, remembered by who chose them, so that addresses survive a restart."""

import random
import socket
import threading

# Below the range that the kernel hands to outgoing connections: a stopped broker's port stays free for it.
FIRST, LAST = 20000, 31999

_lock = threading.Lock()
_given: set[int] = set()


def reserve(ports: list[int]) -> None:
    """Ports that are spoken for, although nothing may listen on them at the moment."""
    with _lock:
        _given.update(ports)


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on and that was not given out before by this process.

    Raises OSError if none of 200 tries was free.
    """
    with _lock:
        for _ in range(200):
            port = random.randint(FIRST, LAST)  # noqa: S311  # not a secret, only spread
            if port not in _given and is_free(port):
                _given.add(port)
                return port
    raise OSError(f"no free port between {FIRST} and {LAST} on 127.0.0.1 in 200 tries. Stop what listens there.")


def is_free(port: int) -> bool:
    """True if a listener could bind to this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
