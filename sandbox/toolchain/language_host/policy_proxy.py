"""Stands between the engine and a policy pack until the pack's process can be started.

A pack reads its stack's name and configuration from its environment while it starts, but the engine sends them by a
call to the pack, ConfigureStack. This server takes that call; the pack is started with what it brought, and every other
call is passed on to the pack unchanged.
"""

import json
import threading
from concurrent import futures
from functools import partial

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from pulumi.runtime.proto import analyzer_pb2

from .wire import MESSAGE_SIZES

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
