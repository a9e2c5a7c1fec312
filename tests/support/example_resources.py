"""The resources of an example as the program registers them, and what the pack finds in them, without an engine.

The renderer's stand-in for the engine is listened to: the type, the inputs and the protection of every resource are
those that the engine would send to the pack. Each stack is rendered once, however many tests look at what it is; a
folder whose stack files have changed is rendered anew.
"""

import asyncio
import copy
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from pulumi.runtime import mocks
from pulumi_policy import EnforcementLevel, Policy, ResourceValidationPolicy
from pulumi_policy.deserialize import deserialize_properties

from components import __main__ as rendering
from policies.rules import POLICIES
from policies.support.configuration import LEVEL, of_file

from . import compliant_resources as kit
from .prompt_engine import PromptLoop


@dataclass(frozen=True)
class Violation:
    """What a mandatory rule reports."""

    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


def manifests(folder: Path, stack: str) -> list[rendering.Manifest]:
    """What a stack renders to."""
    return copy.deepcopy(_rendered(folder, stack, _written(folder))[0])


def resources(folder: Path, stack: str) -> list[kit.Sample]:
    """The Kubernetes resources that a stack registers; its sources are recorded before it and left out."""
    return _rendered(folder, stack, _written(folder))[1]


Files = tuple[tuple[str, bytes], ...]


def _written(folder: Path) -> Files:
    return tuple((file.name, file.read_bytes()) for file in sorted(folder.glob("Pulumi.*")))


@functools.cache
def _rendered(folder: Path, stack: str, files: Files) -> tuple[list[rendering.Manifest], list[kit.Sample]]:
    found: list[kit.Sample] = []
    register = mocks.MockMonitor.RegisterResource

    def listening(self: Any, request: Any) -> Any:
        if request.type == "pulumi:pulumi:Stack":
            found.clear()
        elif request.type.startswith("kubernetes:"):
            props = deserialize_properties(json_format.MessageToDict(request.object))
            found.append(kit.UnchangedSample(request.type, props, protect=request.protect))
        return register(self, request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mocks.MockMonitor, "RegisterResource", listening)
        patch.setattr(asyncio, "new_event_loop", PromptLoop)
        for name in ("_recorded", "_described"):
            patch.setattr(rendering, name, _once(getattr(rendering, name), files))
        return rendering.manifests(folder, stack), found


_SOURCES: dict[tuple[object, ...], Any] = {}


def _once(run: Callable[..., Any], files: Files) -> Callable[..., Any]:
    """Run the program of a source once; the stack itself, for which nobody asks, is run whenever it is rendered.

    A stack without sources is the same source whoever asks for it, and has been run if it was rendered itself.
    """

    def remembered(
        folder: Path, stack: str, asking: tuple[str, ...] | None = None, *, placeholders: bool = False
    ) -> Any:
        assert not placeholders, "what is remembered has no placeholders"
        words = (folder, stack) if asking is None else (folder, stack, asking)
        key, alone = (run.__name__, *words, files), (run.__name__, folder, stack, files)
        if asking == () or not (key in _SOURCES or (asking and alone in _SOURCES)):
            _SOURCES[key] = run(*words)
            if asking is not None and not _SOURCES[key][0].others:
                _SOURCES[alone] = _SOURCES[key]
        return _SOURCES[key if key in _SOURCES else alone]

    return remembered


def violations(folder: Path, stack: str) -> list[Violation]:
    """What mandatory rules find in a stack, with its configuration and nothing else."""
    samples = resources(folder, stack)
    assert samples, f"stack {stack}: must register a resource"
    configured = of_file(folder / f"policy.{stack}.json", stack, POLICIES)
    return [
        Violation(policy.name, message)
        for policy in POLICIES
        if configured[policy.name][LEVEL] is EnforcementLevel.MANDATORY
        for message in _judged(policy, samples, configured[policy.name])
    ]


def _judged(policy: Policy, samples: list[kit.Sample], settings: Mapping[str, Any]) -> list[str]:
    options = {key: value for key, value in settings.items() if key != LEVEL}
    if isinstance(policy, ResourceValidationPolicy):
        return [message for sample in samples for message in kit.judge(policy, sample, **options)]
    assert isinstance(policy, kit.StackValidationPolicy)
    return kit.judge_stack(policy, samples, **options)
