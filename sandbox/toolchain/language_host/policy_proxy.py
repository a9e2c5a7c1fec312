"""Stands between the engine and a policy pack until the pack can be started.

A pack reads the stack's name and configuration from its environment when it starts, but the engine tells them only by
a call, ConfigureStack, to a pack that runs already. So the engine is given this proxy's port: it answers Handshake and
ConfigureStack, and passes every other call on, as bytes, to the pack that is started in between.
"""

import json
import threading
from collections.abc import Callable
from concurrent import futures

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from pulumi.runtime.proto import analyzer_pb2

from .wire import MESSAGE_SIZES

WORKERS = 8
CONFIGURE_S = 120.0
START_S = 120.0


class PolicyProxy(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio ships no types
    """Serves on `port` of 127.0.0.1."""

    def __init__(self) -> None:
        self._request: analyzer_pb2.AnalyzerStackConfigureRequest | None = None
        self._configured = threading.Event()
        self._attached = threading.Event()
        self._channel: grpc.Channel | None = None
        self._server = grpc.server(futures.ThreadPoolExecutor(WORKERS), handlers=(self,), options=MESSAGE_SIZES)
        self.port: int = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def wait_for_stack(self) -> dict[str, str]:
        """The environment that tells the pack its stack; empty if the engine only asks what the pack is."""
        self._configured.wait(CONFIGURE_S)
        request = self._request
        if request is None:
            return {}
        environment = {
            "PULUMI_ORGANIZATION": request.organization,
            "PULUMI_PROJECT": request.project,
            "PULUMI_STACK": request.stack,
            "PULUMI_DRY_RUN": "true" if request.dry_run else "false",
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
        }
        return {name: value for name, value in environment.items() if value}

    def attach(self, first_line: bytes) -> None:
        """Connect to the started pack; its first line of output is its port, anything else means it did not start."""
        if first_line.strip().isdigit():
            self._channel = grpc.insecure_channel(f"127.0.0.1:{int(first_line)}", options=MESSAGE_SIZES)
            if self._request is not None:
                configure = self._channel.unary_unary("/pulumirpc.Analyzer/ConfigureStack")
                configure(self._request.SerializeToString(), wait_for_ready=True, timeout=START_S)
        self._attached.set()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """The handler of one call."""
        method: str = handler_call_details.method
        own: dict[str, Callable[[bytes], bytes]] = {
            "Handshake": lambda _data: b"",
            "ConfigureStack": self._configure,
        }
        answer = own.get(method.rsplit("/", 1)[1])

        def handle(data: bytes, context: grpc.ServicerContext) -> bytes:
            return answer(data) if answer else self._pass_on(method, data, context)

        return grpc.unary_unary_rpc_method_handler(handle)

    def _configure(self, data: bytes) -> bytes:
        self._request = analyzer_pb2.AnalyzerStackConfigureRequest.FromString(data)
        self._configured.set()
        return b""

    def _pass_on(self, method: str, data: bytes, context: grpc.ServicerContext) -> bytes:
        self._configured.set()
        self._attached.wait(START_S)
        channel = self._channel
        if channel is None:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the policy pack did not start; its output says why")
            return b""
        try:
            answer: bytes = channel.unary_unary(method)(data)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
            raise
        return answer
