"""A preview's event log as Pulumi 3.218 writes it, and later ones: builders of its lines, and of a whole log."""

import json
from typing import Any

Event = dict[str, Any]
PROJECT = "urn:pulumi:stg::rt-inventory::"
STACK = f"{PROJECT}pulumi:pulumi:Stack::rt-inventory-stg"
KAFKA_TYPES = "kubernetes:kafka.strimzi.io/v1:"
PROTECTED = (
    "Preview failed: resource {urn!r} cannot be deleted\nbecause it is protected. To unprotect the resource, ..."
)
NOT_REPLACED = "unable to replace resource {urn!r}\nas it is currently marked for protection. To unprotect ..."


def urn(type_: str, name: str) -> str:
    """URN of a resource within a component of this project."""
    return f"{PROJECT}rt-inventory:kafka:Parts${type_}::{name}"


def topic(name: str = "items") -> str:
    return urn(f"{KAFKA_TYPES}KafkaTopic", f"topics-{name}")


def step(op: str, urn_: str, *, name: str | None = None, retained: bool = False, **inputs: Any) -> Event:
    """What the engine is about to do with an object `name` in the namespace `kafka`."""
    type_ = urn_.split("::")[2].rsplit("$", 1)[-1]
    metadata = {"metadata": {"name": name, "namespace": "kafka", **inputs.pop("metadata", {})}} if name else {}
    diffs = inputs.pop("diffs", [])
    state = {"type": type_, "urn": urn_, "parent": STACK, "inputs": {**metadata, **inputs}, "outputs": {}}
    if not type_.startswith("rt-inventory:"):
        state["custom"] = True
    old = {**state, "id": f"kafka/{name}" if name else "", **({"retainOnDelete": True} if retained else {})}
    sides = {"old": None if op == "create" else old, "new": None if op == "delete" else {**state, "id": ""}}
    return {
        "resourcePreEvent": {
            "metadata": {"op": op, "urn": urn_, "type": type_, "diffs": diffs, **sides},
            "planning": True,
        }
    }


def done(op: str, urn_: str) -> Event:
    return {"resOutputsEvent": {"metadata": {"op": op, "urn": urn_, "type": "", "old": None, "new": None}}}


def violation(
    rule: str, message: str, *, of: str = "", level: str = "mandatory", severity: str | None = "high"
) -> Event:
    words = {
        "resourceUrn": of or topic(),
        "message": f"<{{%fg 13%}}>What {rule} wants.\n{message}<{{%reset%}}>\n",
        "color": "raw",
        "policyName": rule,
        "policyPackName": "rt-inventory",
        "policyPackVersion": "0.1.0",
        "enforcementLevel": level,
    }
    return {"policyEvent": words | ({"severity": severity} if severity else {})}


def correction(rule: str, of: str, before: dict[str, Any], after: dict[str, Any]) -> Event:
    return {"policyRemediationEvent": {"resourceUrn": of, "policyName": rule, "before": before, "after": after}}


def diagnostic(message: str, *, severity: str = "error", of: str = "") -> Event:
    about = {"urn": of} if of else {}
    return {"diagnosticEvent": {**about, "prefix": f"{severity}: ", "message": f"{message}\n", "severity": severity}}


def protected(of: str, text: str = PROTECTED) -> Event:
    return diagnostic(text.format(urn=of), of=of)


DUMPED = "password=hush-4711"
LOADED: Event = {"policyLoadEvent": {}}
STARTED: Event = {"preludeEvent": {"config": {"rt-inventory:cluster": '{"name":"rt-inventory-stg"}'}}}
WHOLE: Event = {"policyAnalyzeStackSummaryEvent": {"policyPackName": "rt-inventory"}}
FAILED: Event = diagnostic("preview failed")
END: Event = {
    "summaryEvent": {
        "maybeCorrupt": False,
        "durationSeconds": 2,
        "resourceChanges": {"same": 1},
        "PolicyPacks": {"rt-inventory|local|/work/policies": "0.1.0"},
        "isPreview": True,
    }
}


def log(*events: Event, whole: bool = True, failed: bool = False) -> str:
    """A log that ran to its end with these events in it."""
    steps = [step("same", STACK), done("same", STACK), *events]
    return lines(LOADED, STARTED, *steps, *([WHOLE] if whole else []), *([FAILED] if failed else []), END)


def newer_log(*events: Event, result: str = "succeeded", plugin: str = "pulumi-resource-kubernetes") -> str:
    """A log as Pulumi 3.259 ends it: the summary has a result, and a plugin that stopped is reported as an error."""
    ended = {"summaryEvent": {**END["summaryEvent"], "result": result}}
    failed = [FAILED] if result == "failed" else []
    steps = [step("same", STACK), done("same", STACK), *events]
    return lines(LOADED, STARTED, *steps, WHOLE, *failed, ended, premature(plugin), {"cancelEvent": {}})


def premature(plugin: str) -> Event:
    """What Pulumi from 3.231 on says of a plugin that has not acknowledged its stop; its output may hold anything."""
    text = (
        f"<{{%reset%}}>Detected that {plugin} exited prematurely. \n       This is *always* a bug in the provider. "
        "Please report the issue to the provider author as appropriate.\n       To assist with debugging we have "
        f"dumped the STDOUT and STDERR streams of the plugin:\n{DUMPED}\n<{{%reset%}}>"
    )
    return diagnostic(text)


def lines(*events: Event) -> str:
    """These events and no others, one a line."""
    numbered = [{"sequence": number, "timestamp": 1, **event} for number, event in enumerate(events)]
    return "".join(json.dumps(event) + "\n" for event in numbered)
