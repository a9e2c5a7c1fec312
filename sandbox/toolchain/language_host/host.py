"""The host's process: serves the engine's calls until a signal stops it, or the engine is gone."""

import os
import signal
import sys
import threading
from concurrent import futures

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from pulumi.runtime.proto import language_pb2_grpc

from .plugin_process import MESSAGE_SIZES
from .service import LanguageService

WORKERS = 16
ENGINE_LOOK_S = 1.0


def main() -> None:
    """Serve on a free local port, whose number is the first line of standard output, as the engine expects.

    An engine that is killed sends no signal: its host would run for ever.
    """
    engine = os.getppid()
    addresses = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    server = grpc.server(futures.ThreadPoolExecutor(WORKERS), options=MESSAGE_SIZES)
    service = LanguageService(addresses[0] if addresses else "")
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stop.set())
    while os.getppid() == engine and not stop.wait(ENGINE_LOOK_S):
        pass
    service.stop()
    server.stop(grace=1)
