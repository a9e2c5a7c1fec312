"""The short ways of the stand-in for the engine end where Pulumi's own do."""

from typing import Any

import pulumi
import pytest
from pulumi.output import UNKNOWN, Output
from pulumi.runtime import rpc

from tests.support import prompt_engine
from tests.support.prompt_engine import PromptLoop


def values() -> dict[str, Any]:
    secret = Output.secret({"password": ["p"]})
    return {
        "a leaf": 7,
        "nothing": None,
        "plain": {"a": [1, "b", {"c": None}], "d": {}, "e": [], "f": 1.5, "g": True},
        "an output": secret,
        "an output inside": {"a": [secret, 1], "b": {"c": Output.from_input("x")}},
        "a tuple": {"a": (1, secret)},
        "a key that is an output": {Output.from_input("key"): 1},
        "unknown": UNKNOWN,
        "unknown inside": {"a": ["b", UNKNOWN]},
        "an asset": {"a": pulumi.StringAsset("text")},
    }


NAMES = [
    "a leaf", "nothing", "plain", "an output", "an output inside", "a tuple", "a key that is an output", "unknown",
    "unknown inside", "an asset",
]  # fmt: skip


async def made(name: str) -> tuple[Any, ...]:
    """What the SDK makes of a value: the parts of its Output, whether it has unknowns, and what is sent."""
    value = values()[name]
    data = await Output.from_input(value)._data
    unknown = rpc.contains_unknowns(data.value)
    # Assets are equal to none but themselves; keys are sent as they are.
    known = None if name == "an asset" else data.value
    sent = None if name == "a key that is an output" else await rpc.serialize_property(value, [], "key")
    return known, data.is_known, data.is_secret, unknown, sent


def result(name: str) -> tuple[Any, ...]:
    loop = PromptLoop()
    try:
        return loop.run_until_complete(made(name))
    finally:
        loop.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_value_becomes_what_pulumi_makes_of_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rpc.serialize_property is prompt_engine._serialized
    short = result(name)
    monkeypatch.setattr(Output, "from_input", staticmethod(prompt_engine._from_input))
    monkeypatch.setattr(rpc, "contains_unknowns", prompt_engine._contains_unknowns)
    monkeypatch.setattr(rpc, "serialize_property", prompt_engine._serialize_property)
    assert short == result(name)


def test_a_plain_value_is_copied() -> None:
    async def copied() -> Any:
        return await Output.from_input(value).future()

    value = {"a": [{"b": 1}]}
    loop = PromptLoop()
    try:
        loop.run_until_complete(copied())["a"][0]["b"] = 2
    finally:
        loop.close()
    assert value == {"a": [{"b": 1}]}
