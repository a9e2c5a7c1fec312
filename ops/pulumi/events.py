"""Reads Pulumi's event log of a preview or a refresh: one JSON document a line.

Owns Pulumi's names of events, operations and diagnostics. Does not own any judgement of them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from settings.text import format_count

Event = Mapping[str, Any]
Inputs = Mapping[str, Any]
_COLOR = re.compile(r"<\{%[^%]*%\}>|\x1b\[[0-9;]*[A-Za-z]")
_DELETES = {"delete"}
_REPLACES = {"replace", "create-replacement", "delete-replaced"}
# What the engine reports after a violation, which gives the reason.
_NO_REASON = {"preview failed", "update failed"}
# What Pulumi from 3.231 on reports of a plugin that has not acknowledged Cancel; successful runs have it too.
_PREMATURE = re.compile(r"Detected that (.*?) exited prematurely\.")
_SUCCEEDED = "succeeded"
_NAMED_MAX = 3
_REFUSAL = re.compile(r"(cannot be deleted|unable to replace).*protect", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource of a stack. `name` is the Kubernetes object's name if it is known, else Pulumi's."""

    urn: str
    type: str
    name: str

    @property
    def kind(self) -> str:
        """The last part of the type, for example KafkaTopic."""
        return self.type.rsplit(":", 1)[-1]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A violation of a policy rule, as the engine reports it."""

    urn: str
    rule: str
    level: str
    severity: str
    description: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Remediation:
    """What a rule would change in a resource; `paths` name the properties, without their values."""

    urn: str
    rule: str
    paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a plan: the resource's old and new inputs, both without secrets.

    Args:
        urn: URN of the resource.
        operation: Pulumi's name of the operation, such as `create-replacement`.
        id: The old object's `namespace/name`.
        retained: Whether the object stays in the cluster even if it is deleted from the stack (retainOnDelete).
        paths: Names of the properties that differ.
        custom: False for a component, which only groups other resources.
    """

    urn: str
    operation: str
    id: str = ""
    old: Inputs = field(default_factory=dict)
    new: Inputs = field(default_factory=dict)
    retained: bool = False
    paths: tuple[str, ...] = ()
    custom: bool = True

    @property
    def inputs(self) -> Inputs:
        """The old inputs, or the new ones if there is no object yet."""
        return self.old or self.new

    @property
    def annotations(self) -> Inputs:
        """The object's annotations; the new inputs override the old ones."""
        sides = (value_at(inputs, "metadata", "annotations") for inputs in (self.old, self.new))
        return {key: value for side in sides if isinstance(side, Mapping) for key, value in side.items()}

    @property
    def removes(self) -> str | None:
        """`delete` or `replace` if the object is removed from the cluster, else None."""
        if self.retained:
            return None
        return "delete" if self.operation in _DELETES else "replace" if self.operation in _REPLACES else None


@dataclass(kw_only=True)
class EventLog:
    """The events of one run, as far as they are written.

    Args:
        steps: Steps that the engine plans, in order.
        results: Steps with what they found; a refresh reports its differences there.
        violations: Violations of policy rules.
        remediations: What policy rules would change.
        errors: Error diagnostics, without those that only repeat a violation.
        premature_exits: Plugins that Pulumi (3.231 and later) reports as "exited prematurely": by itself no failure.
        refused: Operation that Pulumi refuses because of `protect`, by URN.
        program_errors: What the program wrote to stderr.
        packs: Version by name of each policy pack that ran.
        waiting: URNs of the resources whose step has not ended, in order.
        started: Whether the program has started.
        ended: Whether the summary is there.
        result: The summary's result (`succeeded`, `failed`, `canceled`); None before the release that writes it.
        analyzed_stack: Whether the rules over the whole stack have run.
    """

    steps: list[Step] = field(default_factory=list)
    results: list[Step] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    remediations: list[Remediation] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    premature_exits: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    program_errors: list[str] = field(default_factory=list)
    packs: Mapping[str, str] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    started: bool = False
    ended: bool = False
    result: str | None = None
    analyzed_stack: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether the summary is there and its result, if it has one, is `succeeded`."""
        return self.ended and self.result in (None, "", _SUCCEEDED)

    @property
    def resources(self) -> dict[str, Resource]:
        """Resources of all steps, by URN."""
        return {step.urn: resource_of(step.urn, step.inputs, step.id) for step in self.steps}

    def progress(self) -> str:
        """Return what the run is doing, in a few words."""
        if self.ended:
            return "waiting for Pulumi to end"
        if not self.started:
            return "waiting for Pulumi and the policy pack to start"
        resources = self.resources
        names = [str(resources[urn]) for urn in self.waiting if urn in resources]
        more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
        what = f"{', '.join(names[:_NAMED_MAX])}{more}" if names else "the program"
        return f"{format_count(len(resources), 'resource')} seen, waiting for {what}"


def read_event_log(lines: Iterable[str]) -> EventLog:
    """Return the events of a log. A last line that is not complete yet is left out."""
    log = EventLog()
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        _add(log, event)
    return log


def plain(text: str) -> str:
    """Return a message without colors and surrounding space."""
    return _COLOR.sub("", text).strip()


def resource_of(urn: str, inputs: Inputs | None = None, id_: str = "") -> Resource:
    """Return the resource of a URN, with the Kubernetes object's name if the inputs or the id contain it."""
    parts = urn.split("::")
    type_ = parts[2].rsplit("$", 1)[-1] if len(parts) > 2 else ""
    named = value_at(inputs or {}, "metadata", "name")
    from_id = id_.rsplit("/", 1)[-1] if type_.startswith("kubernetes:") else ""
    own = named if isinstance(named, str) and named else from_id
    return Resource(urn=urn, type=type_, name=own or parts[-1])


def value_at(value: Any, *keys: str) -> Any:
    """Return the value below nested keys, None if a key is missing or its parent is no mapping."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _add(log: EventLog, event: Event) -> None:
    if before := event.get("resourcePreEvent"):
        log.steps.append(_step(before["metadata"]))
        log.waiting[before["metadata"]["urn"]] = None
    elif after := event.get("resOutputsEvent") or event.get("resOpFailedEvent"):
        log.waiting.pop(after["metadata"]["urn"], None)
        log.results.append(_step(after["metadata"]))
    elif violation := event.get("policyEvent"):
        log.violations.append(_violation(violation))
    elif correction := event.get("policyRemediationEvent"):
        log.remediations.append(_remediation(correction))
    elif diagnostic := event.get("diagnosticEvent"):
        _add_diagnostic(log, diagnostic)
    elif summary := event.get("summaryEvent"):
        log.ended, log.packs, log.result = True, summary.get("PolicyPacks") or {}, summary.get("result")
    elif "policyAnalyzeStackSummaryEvent" in event:
        log.analyzed_stack = True
    elif "preludeEvent" in event:
        log.started = True


def _add_diagnostic(log: EventLog, diagnostic: Event) -> None:
    text, urn = plain(diagnostic["message"]), diagnostic.get("urn") or ""
    if diagnostic["severity"] == "error":
        if urn and (match := _REFUSAL.search(text)):
            log.refused[urn] = "delete" if match[1] == "cannot be deleted" else "replace"
        elif match := _PREMATURE.search(text):
            log.premature_exits.append(match[0])
        elif text not in _NO_REASON:
            log.errors.append(f"{resource_of(urn)}: {text}" if urn else text)
    elif diagnostic["severity"] == "info#err" and text:
        log.program_errors.append(text)


def _step(metadata: Event) -> Step:
    old, new = metadata.get("old") or {}, metadata.get("new") or {}
    return Step(
        urn=metadata["urn"],
        operation=metadata["op"],
        id=old.get("id") or "",
        old=old.get("inputs") or {},
        new=new.get("inputs") or {},
        retained=bool(old.get("retainOnDelete")),
        paths=tuple(sorted(metadata.get("detailedDiff") or metadata.get("diffs") or _differing(old, new))),
        custom=bool((new or old).get("custom")),
    )


def _differing(old: Event, new: Event) -> Iterable[str]:
    """Paths that differ, where Pulumi does not list them: of the inputs, else of the outputs."""
    sides = ((old.get(side) or {}, new.get(side) or {}) for side in ("inputs", "outputs"))
    found = (tuple(_changed(before, after)) for before, after in sides if old and new)
    return next(filter(None, found), ())


def _violation(event: Event) -> Violation:
    """The SDK writes the rule's description above each message; some of the engine's own messages have none."""
    description, _, message = plain(event["message"]).partition("\n")
    return Violation(
        urn=event.get("resourceUrn") or "",
        rule=event["policyName"],
        level=event["enforcementLevel"],
        severity=event.get("severity") or "",
        description=description if message else "",
        message=message.strip() or description,
    )


def _remediation(event: Event) -> Remediation:
    paths = tuple(_changed(event.get("before") or {}, event.get("after") or {}))
    return Remediation(urn=event.get("resourceUrn") or "", rule=event["policyName"], paths=paths)


def _changed(before: Any, after: Any, path: str = "") -> Iterable[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            yield from _changed(before.get(key), after.get(key), f"{path}.{key}" if path else key)
    elif before != after:
        yield path
