"""Runs one plugin written in Python: a policy pack, or a provider that the engine starts from its source folder."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from functools import partial
from pathlib import Path

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from pulumi.runtime.proto import analyzer_pb2, language_pb2

_CHUNK = 1 << 16
_STOP_WITHIN_S = 5.0
POLICY_PACK = "analyzer"
"""The engine's kind of a policy pack."""
STDOUT, STDERR = "stdout", "stderr"
_RESPONSES: Mapping[str, Callable[[bytes], language_pb2.RunPluginResponse]] = {
    STDOUT: lambda text: language_pb2.RunPluginResponse(stdout=text),
    STDERR: lambda text: language_pb2.RunPluginResponse(stderr=text),
}
MESSAGE_SIZES = [("grpc.max_receive_message_length", 400 << 20), ("grpc.max_send_message_length", 400 << 20)]
"""The engine's own limit, 400 MiB: a stack's state can be one message."""
_WORKERS = 8
_ATTACH_WITHIN_S = 60.0
_CONFIGURE = "/pulumirpc.Analyzer/ConfigureStack"
_EMPTY = b""  # a message without content


class PolicyProxy(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio ships no types
    """Serves the Analyzer's calls on `port`, a free local one, from the moment it is made until it is closed."""

    def __init__(self) -> None:
        self._stack: bytes | None = None
        self._may_start = threading.Event()
        self._channel: grpc.Channel | None = None
        self._started = threading.Event()
        self._server = grpc.server(futures.ThreadPoolExecutor(_WORKERS), handlers=(self,), options=MESSAGE_SIZES)
        self.port: int = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def wait_for_stack(self) -> None:
        """Return when the engine has configured the stack, when it calls the pack without that, or after `close`."""
        self._may_start.wait()

    def environment(self) -> dict[str, str]:
        """The variables by which a pack learns its stack; none if the engine did not configure one."""
        if self._stack is None:
            return {}
        stack = analyzer_pb2.AnalyzerStackConfigureRequest.FromString(self._stack)
        found = {
            "PULUMI_ORGANIZATION": stack.organization,
            "PULUMI_PROJECT": stack.project,
            "PULUMI_STACK": stack.stack,
            "PULUMI_DRY_RUN": "true" if stack.dry_run else "false",
            "PULUMI_CONFIG": json.dumps(dict(stack.config)),
        }
        return {name: value for name, value in found.items() if value}

    @property
    def is_attached(self) -> bool:
        """Whether calls are passed on to the pack."""
        return self._channel is not None

    def attach(self, port: int) -> None:
        """Pass calls on to the pack, which serves on this port; it gets the stack's configuration first."""
        channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=MESSAGE_SIZES)
        if self._stack is not None:
            channel.unary_unary(_CONFIGURE)(self._stack, wait_for_ready=True, timeout=_ATTACH_WITHIN_S)
        self._channel = channel
        self._started.set()

    def close(self) -> None:
        """Stop serving; calls that wait for a pack which never started fail."""
        self._may_start.set()
        self._started.set()
        self._server.stop(grace=1)
        if self._channel is not None:
            self._channel.close()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Return what answers a call: messages pass as the bytes they are."""
        answers = {"Handshake": self._handshake, "ConfigureStack": self._configure_stack}
        answer = answers.get(details.method.rsplit("/", 1)[-1])
        return grpc.unary_unary_rpc_method_handler(answer or partial(self._pass_on, details.method))

    def _handshake(self, _message: bytes, _context: grpc.ServicerContext) -> bytes:
        return _EMPTY

    def _configure_stack(self, message: bytes, _context: grpc.ServicerContext) -> bytes:
        self._stack = message
        self._may_start.set()
        return _EMPTY

    def _pass_on(self, method: str, message: bytes, context: grpc.ServicerContext) -> bytes:
        self._may_start.set()
        self._started.wait()
        channel = self._channel
        if channel is None:
            context.abort(grpc.StatusCode.UNAVAILABLE, "policy pack: must start and serve (its process ended).")
            raise ConnectionError(method)
        try:
            answer: bytes = channel.unary_unary(method)(message)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
            raise
        return answer


class PluginProcess:
    """A plugin's process with all that it starts, in a process group of its own: Ctrl-C is the engine's to handle."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        """Start the plugin; raises OSError."""
        self._child = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._killer = threading.Timer(_STOP_WITHIN_S, self._signal, (signal.SIGKILL,))
        self._killer.daemon = True

    def output(self) -> Iterator[tuple[str, bytes]]:
        """What the plugin writes as it comes: `stdout` or `stderr` with the bytes, until both are closed."""
        with selectors.DefaultSelector() as selector:
            for name, pipe in ((STDOUT, self._child.stdout), (STDERR, self._child.stderr)):
                if pipe is not None:
                    selector.register(pipe, selectors.EVENT_READ, name)
            while selector.get_map():
                for key, _events in selector.select():
                    if chunk := os.read(key.fd, _CHUNK):
                        yield str(key.data), chunk
                    else:
                        selector.unregister(key.fileobj)

    def wait(self) -> int:
        """Return the exit code, -N after signal N."""
        return self._child.wait()

    def interrupt(self) -> None:
        """Ask the plugin and all that it has started to end, and end them by force after 5 s; does not wait."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(RuntimeError):  # asked for the second time: the clock runs already
            self._killer.start()

    def close(self) -> None:
        """End what is left of the plugin, and wait for it."""
        if self._child.poll() is None and not self._killer.is_alive():
            self.interrupt()
        self._child.wait()
        self._killer.cancel()
        for pipe in (self._child.stdout, self._child.stderr):
            if pipe is not None:
                pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, number)


def command_of(request: language_pb2.RunPluginRequest, python: str) -> tuple[list[str], Path]:
    """The command line and the working folder of a plugin: the SDK runs policy packs, Python all others."""
    program = request.info.program_directory
    if request.kind == POLICY_PACK:
        return [python, "-u", "-m", "pulumi.policy", *request.args, program], Path(program)
    return [python, "-u", program, *request.args], Path(request.pwd)


def responses(process: PluginProcess, proxy: PolicyProxy | None) -> Iterator[language_pb2.RunPluginResponse]:
    """The plugin's output as it comes, and at last its exit code.

    The first line of a policy pack is the port on which it serves: its proxy gets it. Raises ValueError if that line
    is something else.
    """
    first = b""
    for name, chunk in process.output():
        rest = chunk
        if proxy is not None and not proxy.is_attached and name == STDOUT:
            first += chunk
            if b"\n" not in first:
                continue
            line, _, rest = first.partition(b"\n")
            proxy.attach(_port(line))
        if rest:
            yield _RESPONSES[name](rest)
    yield language_pb2.RunPluginResponse(exitcode=process.wait())


def _port(line: bytes) -> int:
    text = line.decode(errors="replace").strip()
    if not text.isdecimal():
        raise ValueError(
            f"policy pack: its first line of output must be the port it serves on (got {text[:80]!r}). Write to "
            "standard error instead."
        )
    return int(text)
