"""What Pulumi's SDK does for an engine and its plugins, left out where a stand-in answers a program in its own process.

The SDK takes a stack trace for every resource, hands each request to a thread, starts a loop in that thread to encode
the answer, and serves callbacks on ports. The stand-in reads no trace, answers at once from values that are all there,
and calls nobody back.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from pulumi.runtime import _callbacks, mocks
from pulumi.runtime import resource as resources
from pulumi.runtime.proto import source_pb2

Result = TypeVar("Result")


class PromptLoop(asyncio.SelectorEventLoop):
    """A loop that runs what is meant for a thread itself, before it goes on."""

    def run_in_executor(  # type: ignore[override]  # an answer is there already
        self, executor: Any, func: Callable[..., Result], *args: Any
    ) -> asyncio.Future[Result]:
        """Return a future that is done."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


class _NoServer:
    """Stands for a server of callbacks, which nobody calls."""

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        pass

    def add_insecure_port(self, address: str) -> int:
        return 0

    async def stop(self, grace: float) -> None:
        pass


async def _serve(self: Any) -> None:
    """Serve nothing."""


def _result(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Return what a coroutine returns that has nothing to wait for."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    raise AssertionError("a stand-in for the engine must answer with values that are all there")


@contextmanager
def answering_at_once() -> Iterator[None]:
    """Let programs of this process leave out what only an engine needs; their loop must be a PromptLoop."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resources, "_get_stack_trace", source_pb2.StackTrace)
        patch.setattr(mocks, "_sync_await", _result)
        patch.setattr(_callbacks, "aio", SimpleNamespace(server=lambda options: _NoServer()))
        patch.setattr(_callbacks._CallbackServicer, "serve", _serve)
        yield
