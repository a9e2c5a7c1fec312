"""Deletions and replacements that a preview plans, of what holds records or lets clients in.

A policy pack never sees them: it judges what is to be there, and its rule `deletion-protection` asks that this be
protected. What goes all the same is found here, by the same name. The level that the pack's configuration gives that
rule counts here too, and so does an exception on the resource.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path

from ops.policy import configuration
from ops.policy.events import Log, Step, resource, within
from ops.policy.findings import ADVISORY, EXCEPTIONS_RULE, MANDATORY, REMEDIATE, Finding
from settings.annotations import EXCEPTION
from settings.platform import annotation_domain

RULE = "deletion-protection"
DESCRIPTION = "Nothing that holds records or lets clients in is deleted or replaced."
_KAFKA_GROUPS = ("kafka.strimzi.io", "eventstreams.ibm.com")
_SECRET = "Secret"  # noqa: S105 - a kind of resource
_ALL, _LEVEL = "all", "enforcementLevel"
_LEVELS = {MANDATORY: MANDATORY, REMEDIATE: MANDATORY, ADVISORY: ADVISORY, "disabled": None}
_UNTIL = re.compile(r"until (\d{4}-\d{2}-\d{2}): *(\S.*)", re.DOTALL)
Level = str | None
# What goes with an object of a kind, by API group ("" for the core one).
_LOST = {
    **{
        (group, kind): words
        for group in _KAFKA_GROUPS
        for kind, words in {
            "Kafka": "All of its records go with it.",
            "EventStreams": "All of its records go with it.",
            "KafkaNodePool": "Its brokers go with it, and with them the replicas that they hold.",
            "KafkaTopic": "Its records go with it.",
        }.items()
    },
    ("", "PersistentVolumeClaim"): "The records on its volume may go with it.",
    ("", _SECRET): "Clients and mirrors can log in no longer.",
    ("", "Namespace"): "Everything in it goes with it.",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "Every resource of its kind goes with it.",
}
_PROTECTED = "Pulumi protects it, so an update stops."


def level(files: Iterable[Path]) -> Level:
    """Return the rule's level by the files that configure the pack, the last one counts most; None if it is disabled.

    What else is wrong with a configuration the pack itself tells.
    """
    found: Level = MANDATORY
    for document in map(configuration.read, files):
        for key in (_ALL, RULE):
            settings = document.get(key)
            given = settings.get(_LEVEL) if isinstance(settings, dict) else settings
            found = _LEVELS[given] if isinstance(given, str) and given in _LEVELS else found
    return found


def findings(log: Log, found_at: Level) -> Iterator[Finding]:
    """Yield a finding for each planned removal that matters. A replacement shows as several steps and counts once.

    What Pulumi itself refuses to remove is found at every level and in spite of exceptions: the update would stop.
    """
    logins = _logins(log)
    removed = {step.urn: step for step in log.steps if step.removes}
    unseen = {urn: Step(urn=urn, operation=operation) for urn, operation in log.refused.items()}
    for urn, step in {**unseen, **removed}.items():
        lost = _lost(step, logins)
        if urn in log.refused:
            yield _finding(step, MANDATORY, f"{lost} {_PROTECTED}".strip())
        elif lost and found_at is not None:
            exempt = next(filter(None, map(_exempt, (step, *(logins or {}).get(step.id, [])))), None)
            yield _lifted(step, exempt) if exempt else _finding(step, found_at, lost)


def _finding(step: Step, found_at: str, consequence: str) -> Finding:
    of = resource(step.urn, step.inputs, step.id)
    return Finding(
        rule=RULE,
        severity="critical",
        level=found_at,
        resource=of,
        message=f"{of}: must stay (got {step.removes}). {consequence}",
        description=DESCRIPTION,
    )


def _lifted(step: Step, exception: str) -> Finding:
    of = resource(step.urn, step.inputs, step.id)
    return Finding(
        rule=EXCEPTIONS_RULE,
        severity="low",
        level=ADVISORY,
        resource=of,
        message=f"{of}: {RULE} is lifted from its {step.removes} {exception}",
    )


def _exempt(step: Step) -> str | None:
    """The exception that lifts the rule from the resource today; one that cannot be read lifts nothing."""
    value = str(step.annotations.get(f"{EXCEPTION}{RULE}", "")).strip()
    match = _UNTIL.fullmatch(value)
    try:
        return value if match and datetime.now(UTC).date() <= date.fromisoformat(match[1]) else None
    except ValueError:
        return None


def _lost(step: Step, logins: Mapping[str, list[Step]] | None) -> str:
    """What goes with the object, "" if nothing that matters. `logins` are the Secrets that matter, None for all."""
    group, kind = _kind(step.urn)
    if kind == _SECRET and logins is not None and step.id not in logins:
        return ""
    if group in _KAFKA_GROUPS and step.annotations.get(f"{annotation_domain(group)}/managed") == "false":
        return ""  # the operator then leaves the topic alone
    return _LOST.get((group, kind), "")


def _logins(log: Log) -> Mapping[str, list[Step]] | None:
    """The users of each Secret that holds a password, by its id; None if the preview saw no user."""
    users = [step for step in log.steps if _kind(step.urn)[1] == "KafkaUser"]
    found: dict[str, list[Step]] = {}
    for user in users:
        reference = within(user.inputs, "spec", "authentication", "password", "valueFrom", "secretKeyRef")
        namespace, name = within(user.inputs, "metadata", "namespace"), within(reference, "name")
        found.setdefault(f"{namespace}/{name}" if namespace else str(name), []).append(user)
    return found if users else None


def _kind(urn: str) -> tuple[str, str]:
    """API group and kind of a Kubernetes object, two empty words for anything else."""
    package, _, rest = resource(urn).type.partition(":")
    version, _, kind = rest.rpartition(":")
    group = version.partition("/")[0]
    return ("" if group == "core" else group, kind) if package == "kubernetes" else ("", "")
