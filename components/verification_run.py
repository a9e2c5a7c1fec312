"""The run of the verification job as a resource: Pulumi remembers what was proven and what it depended on.

A run that finds a fault is recorded too, with its verdict: the next `up` sees it and runs again. The component
decides whether a bad verdict fails the `up`, see `verification.py`.
"""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pulumi
from pulumi import dynamic

from components.verification import job

_PLAIN = ("trigger", "when", "reportDir")
_FOUND = ("passed", "verdict", "message", "checks", "report", "finished_at", "records_compared")


class VerificationProvider(dynamic.ResourceProvider):
    """Runs the job on create and update. What it returns holds no secret."""

    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Run the job for the first time."""
        return dynamic.CreateResult(f"verification-{props['request']['mirror']['name']}", _run(props))

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        """Run the job again."""
        return dynamic.UpdateResult(_run(news))

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        """Return whether the job must run: always if so set, until it passes, and when what it depends on changed."""
        return dynamic.DiffResult(changes=must_run(olds, news))


def must_run(olds: Mapping[str, Any], news: Mapping[str, Any]) -> bool:
    """Whether what is remembered (`olds`) still proves what is declared (`news`)."""
    return (
        news["when"] == "always"
        or olds.get("passed") is not True
        or any(olds.get(key) != news[key] for key in ("trigger", "reportDir"))
    )


def _run(props: Mapping[str, Any]) -> dict[str, Any]:
    outcome = job.run(
        whole_numbers(props["request"]),
        props["environment"],
        report_dir=Path(props["reportDir"]),
        deadline_s=float(props["deadlineSeconds"]) + job.GRACE_S,
        state=props.get("state"),
        destinations=props.get("told") or (),
        say=_say,
    )
    return {**{key: props[key] for key in _PLAIN}, **asdict(outcome)}


def whole_numbers(value: Any) -> Any:
    """Return the value with whole numbers as such: they reach a provider as floating point."""
    if isinstance(value, Mapping):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _say(line: str) -> None:
    """Show progress: the engine puts what a provider writes into the log of the `up`."""
    sys.stderr.write(f"verification: {line}\n")
    sys.stderr.flush()


class VerificationRun(dynamic.Resource, module="verification", name="Run"):
    """The latest run. Its inputs are what the proof depends on; the outputs are what the job found."""

    passed: pulumi.Output[bool]
    verdict: pulumi.Output[str]
    message: pulumi.Output[str]
    checks: pulumi.Output[list[Mapping[str, Any]]]
    report: pulumi.Output[str]
    finished_at: pulumi.Output[str | None]
    records_compared: pulumi.Output[int | None]

    def __init__(
        self, resource_name: str, props: Mapping[str, pulumi.Input[Any]], opts: pulumi.ResourceOptions
    ) -> None:
        """Register the run.

        `props` are request, environment, trigger, when, reportDir, deadlineSeconds, state, and told.
        """
        super().__init__(VerificationProvider(), resource_name, {**props, **dict.fromkeys(_FOUND)}, opts)
