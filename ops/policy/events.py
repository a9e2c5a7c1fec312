"""Pulumi's event log of a preview: one JSON document a line. Reads it into what a judgement needs.

Knows Pulumi's words for events, operations and diagnostics; judges nothing itself.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ops.policy.findings import Resource

Event = Mapping[str, Any]
Inputs = Mapping[str, Any]
_COLOR = re.compile(r"<\{%[^%]*%\}>|\x1b\[[0-9;]*[A-Za-z]")
_DELETES = {"delete"}
_REPLACES = {"replace", "create-replacement", "delete-replaced"}
# What the engine says after a violation has said what is wrong.
_NO_REASON = {"preview failed", "update failed"}
# What Pulumi from 3.231 on reports of a plugin that has not acknowledged its stop; successful runs have it too.
_PREMATURE = re.compile(r"Detected that (.*?) exited prematurely\.")
_SUCCEEDED = "succeeded"
_REFUSAL = re.compile(r"(cannot be deleted|unable to replace).*protect", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Violation:
    """What the engine says about a rule that does not hold."""

    urn: str
    rule: str
    level: str
    severity: str
    description: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Correction:
    """What a rule would correct; `paths` name the properties, without their values."""

    urn: str
    rule: str
    paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is planned for one resource: its inputs at present and to be, both without secrets.

    `id` is the present object's `namespace/name`. `kept` says that it stays in the cluster, whatever the plan. `paths`
    name the properties that differ. `custom` is false for a component, which only groups others.
    """

    urn: str
    operation: str
    id: str = ""
    present: Inputs = field(default_factory=dict)
    future: Inputs = field(default_factory=dict)
    kept: bool = False
    paths: tuple[str, ...] = ()
    custom: bool = True

    @property
    def inputs(self) -> Inputs:
        """The present inputs, or the future ones if there is nothing yet."""
        return self.present or self.future

    @property
    def annotations(self) -> Inputs:
        """The object's annotations, those to be over those that it has."""
        sides = (within(inputs, "metadata", "annotations") for inputs in (self.present, self.future))
        return {key: value for side in sides if isinstance(side, Mapping) for key, value in side.items()}

    @property
    def removes(self) -> str | None:
        """`delete` or `replace` if the present object goes away, else None."""
        if self.kept:
            return None
        return "delete" if self.operation in _DELETES else "replace" if self.operation in _REPLACES else None


@dataclass(kw_only=True)
class Log:
    """Everything of interest in one event log, as far as it is written.

    `premature` are plugins that Pulumi reports as ended too early, which by itself fails no run. `result` is what the
    summary says of the run (`succeeded`, `failed`, `canceled`), None in logs of releases that do not write it.
    """

    steps: list[Step] = field(default_factory=list)
    results: list[Step] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    corrections: list[Correction] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    premature: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    packs: Mapping[str, str] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    started: bool = False
    ended: bool = False
    result: str | None = None
    judged_whole: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether the summary is there and, where Pulumi writes a result into it, says `succeeded`."""
        return self.ended and self.result in (None, "", _SUCCEEDED)

    @property
    def resources(self) -> dict[str, Resource]:
        """The resources that the preview saw, by URN."""
        return {step.urn: resource(step.urn, step.inputs, step.id) for step in self.steps}


def read(lines: Iterable[str]) -> Log:
    """Return what the log tells. A last line that is not written to its end yet is left out."""
    log = Log()
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        _take(log, event)
    return log


def plain(text: str) -> str:
    """Return a message without colours and empty ends."""
    return _COLOR.sub("", text).strip()


def resource(urn: str, inputs: Inputs | None = None, id_: str = "") -> Resource:
    """Return the resource of a URN, with the object's own name if the inputs or the id tell it."""
    parts = urn.split("::")
    type_ = parts[2].rsplit("$", 1)[-1] if len(parts) > 2 else ""
    named = within(inputs or {}, "metadata", "name")
    from_id = id_.rsplit("/", 1)[-1] if type_.startswith("kubernetes:") else ""
    own = named if isinstance(named, str) and named else from_id
    return Resource(urn=urn, type=type_, name=own or parts[-1])


def within(value: Any, *keys: str) -> Any:
    """Return what stands below the keys, None if one is missing or is no mapping."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _take(log: Log, event: Event) -> None:
    if before := event.get("resourcePreEvent"):
        log.steps.append(_step(before["metadata"]))
        log.waiting[before["metadata"]["urn"]] = None
    elif after := event.get("resOutputsEvent") or event.get("resOpFailedEvent"):
        log.waiting.pop(after["metadata"]["urn"], None)
        log.results.append(_step(after["metadata"]))
    elif violation := event.get("policyEvent"):
        log.violations.append(_violation(violation))
    elif correction := event.get("policyRemediationEvent"):
        log.corrections.append(_correction(correction))
    elif diagnostic := event.get("diagnosticEvent"):
        _take_diagnostic(log, diagnostic)
    elif summary := event.get("summaryEvent"):
        log.ended, log.packs, log.result = True, summary.get("PolicyPacks") or {}, summary.get("result")
    elif "policyAnalyzeStackSummaryEvent" in event:
        log.judged_whole = True
    elif "preludeEvent" in event:
        log.started = True


def _take_diagnostic(log: Log, diagnostic: Event) -> None:
    text, urn = plain(diagnostic["message"]), diagnostic.get("urn") or ""
    if diagnostic["severity"] == "error":
        if urn and (match := _REFUSAL.search(text)):
            log.refused[urn] = "delete" if match[1] == "cannot be deleted" else "replace"
        elif match := _PREMATURE.search(text):
            log.premature.append(match[0])
        elif text not in _NO_REASON:
            log.errors.append(f"{resource(urn)}: {text}" if urn else text)
    elif diagnostic["severity"] == "info#err" and text:
        log.said.append(text)


def _step(metadata: Event) -> Step:
    old, new = metadata.get("old") or {}, metadata.get("new") or {}
    return Step(
        urn=metadata["urn"],
        operation=metadata["op"],
        id=old.get("id") or "",
        present=old.get("inputs") or {},
        future=new.get("inputs") or {},
        kept=bool(old.get("retainOnDelete")),
        paths=tuple(sorted(metadata.get("detailedDiff") or metadata.get("diffs") or _differing(old, new))),
        custom=bool((new or old).get("custom")),
    )


def _differing(old: Event, new: Event) -> Iterable[str]:
    """What differs where Pulumi does not say it: of the inputs, else of what was read of the object."""
    sides = ((old.get(side) or {}, new.get(side) or {}) for side in ("inputs", "outputs"))
    found = (tuple(_changed(before, after)) for before, after in sides if old and new)
    return next(filter(None, found), ())


def _violation(event: Event) -> Violation:
    """The SDK writes the rule's description above each message; some of the engine's own have none."""
    description, _, message = plain(event["message"]).partition("\n")
    return Violation(
        urn=event.get("resourceUrn") or "",
        rule=event["policyName"],
        level=event["enforcementLevel"],
        severity=event.get("severity") or "",
        description=description if message else "",
        message=message.strip() or description,
    )


def _correction(event: Event) -> Correction:
    paths = tuple(_changed(event.get("before") or {}, event.get("after") or {}))
    return Correction(urn=event.get("resourceUrn") or "", rule=event["policyName"], paths=paths)


def _changed(before: Any, after: Any, path: str = "") -> Iterable[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            yield from _changed(before.get(key), after.get(key), f"{path}.{key}" if path else key)
    elif before != after:
        yield path
