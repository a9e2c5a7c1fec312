"""Runs a plugin that is written in Python: a policy pack, or a provider."""

import queue
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import IO

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from pulumi.runtime.proto import language_pb2

from .interpreter import Interpreter
from .policy_proxy import PolicyProxy

READ_BYTES = 65536
Chunk = tuple[str, bytes | None]


def plugin_output(
    request: language_pb2.RunPluginRequest,
    interpreter: Interpreter,
    context: grpc.ServicerContext,
    start: Callable[..., subprocess.Popen[bytes]],
    end: Callable[[subprocess.Popen[bytes]], int],
) -> Iterator[language_pb2.RunPluginResponse]:
    """What the plugin writes, as it comes, and at last its exit code."""
    env = {**interpreter.env, **dict(item.split("=", 1) for item in request.env)}
    folder = request.info.program_directory
    proxy = None
    if request.kind == "analyzer":
        proxy = PolicyProxy()
        yield language_pb2.RunPluginResponse(stdout=f"{proxy.port}\n".encode())
        env.update(proxy.wait_for_stack())
        command, pwd = [interpreter.python, "-u", "-m", "pulumi.policy", *request.args, folder], folder
    else:
        command, pwd = [interpreter.python, "-u", folder, *request.args], request.pwd
    child = start(command, cwd=pwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    context.add_callback(lambda: child.terminate() if child.poll() is None else None)
    if proxy and child.stdout:
        proxy.attach(child.stdout.readline())
    yield from _streams(child)
    yield language_pb2.RunPluginResponse(exitcode=end(child))


def _streams(child: subprocess.Popen[bytes]) -> Iterator[language_pb2.RunPluginResponse]:
    """Both streams of a process, in the order in which their parts arrive."""
    chunks: queue.Queue[Chunk] = queue.Queue()

    def read(name: str, stream: IO[bytes]) -> None:
        while chunk := stream.read1(READ_BYTES):  # type: ignore[attr-defined]  # a pipe is a BufferedReader
            chunks.put((name, chunk))
        chunks.put((name, None))

    streams = {"stdout": child.stdout, "stderr": child.stderr}
    for name, stream in streams.items():
        threading.Thread(target=read, args=(name, stream), daemon=True).start()
    still_open = len(streams)
    while still_open:
        name, chunk = chunks.get()
        if chunk is None:
            still_open -= 1
        elif name == "stdout":
            yield language_pb2.RunPluginResponse(stdout=chunk)
        else:
            yield language_pb2.RunPluginResponse(stderr=chunk)
