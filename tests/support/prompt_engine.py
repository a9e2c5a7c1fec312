"""What Pulumi's SDK does for an engine and its plugins, left out where a stand-in answers a program in its own process.

The SDK takes a stack trace for every resource, hands each request to a thread, starts a loop in that thread to encode
the answer, and serves callbacks on ports. The stand-in reads no trace, answers at once from values that are all there,
and calls nobody back. Of a nested value the SDK also makes an Output for every key, item and leaf, with a task each;
a value in which there is nothing to wait for becomes one Output here.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from pulumi.output import Output, _OutputData
from pulumi.runtime import _callbacks, mocks, rpc
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


_LEAVES = frozenset({str, int, float, bool, type(None)})
_from_input = Output.from_input
_contains_unknowns = rpc.contains_unknowns
_serialize_property = rpc.serialize_property


def _copied(value: Any) -> Any:
    """Return a copy of a value of plain dicts, lists and leaves; raises TypeError if anything else is in it."""
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind is dict:
        if not all(type(key) is str for key in value):
            raise TypeError(value)
        return {key: _copied(item) for key, item in value.items()}
    if kind is list:
        return [_copied(item) for item in value]
    raise TypeError(kind)


def _output(value: Any) -> Output[Any]:
    """What `Output.from_input` returns."""
    try:
        data: _OutputData[Any] = _OutputData(resources=set(), value=None, is_known=True, is_secret=False)
        data.value = _copied(value)
    except TypeError:
        named = type(value) is dict and all(type(key) is str for key in value)
        return Output.all(**value) if named else _from_input(value)
    output: Output[Any] = object.__new__(Output)
    output._data = asyncio.Future()  # done: unlike a task, it is nothing that the program's end waits for
    output._data.set_result(data)
    return output


def _has_unknowns(value: Any) -> bool:
    """What `contains_unknowns` returns, asking nothing of a leaf; no value here is inside itself."""
    kind = type(value)
    if kind in _LEAVES:
        return False
    if kind is not dict and kind is not list:
        return _contains_unknowns(value)
    items = value.values() if kind is dict else value
    return any(type(item) not in _LEAVES and _has_unknowns(item) for item in items)


async def _serialized(value: Any, *arguments: Any, **options: Any) -> Any:
    """What `serialize_property` returns, which asks of a leaf too whether it is any of ten other things."""
    if type(value) in _LEAVES and not options.get("return_protobuf_value"):
        return value
    return await _serialize_property(value, *arguments, **options)


@contextmanager
def answering_at_once() -> Iterator[None]:
    """Let programs of this process leave out what only an engine needs; their loop must be a PromptLoop."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resources, "_get_stack_trace", source_pb2.StackTrace)
        patch.setattr(mocks, "_sync_await", _result)
        patch.setattr(_callbacks, "aio", SimpleNamespace(server=lambda options: _NoServer()))
        patch.setattr(Output, "from_input", staticmethod(_output))
        patch.setattr(rpc, "contains_unknowns", _has_unknowns)
        patch.setattr(rpc, "serialize_property", _serialized)
        patch.setattr(_callbacks._CallbackServicer, "serve", _serve)
        yield
