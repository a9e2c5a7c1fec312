"""Loopback ports for the sandbox's own servers."""

import socket

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
