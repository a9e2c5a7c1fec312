"""Deletions and replacements that a preview plans, of what holds records or lets clients in.

A policy pack never sees them: it judges what is to be there. They are findings of the rule `deletion-protection`, whose
level and permitted removals stand in the pack's configuration like those of any other rule.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ops.errors import OpsError
from ops.policy.events import Log, Step, resource, within
from ops.policy.findings import ADVISORY, MANDATORY, REMEDIATE, Finding

RULE = "deletion-protection"
DESCRIPTION = "Nothing that holds records or lets clients in is deleted or replaced."
OPTIONS = {"allowed": 'resources that may go, by kind and name, for example ["KafkaTopic items"]'}
_KAFKA_GROUPS = ("kafka.strimzi.io", "eventstreams.ibm.com")
_SECRET = "Secret"  # noqa: S105 - a kind of resource
_LEVELS = {"mandatory": MANDATORY, REMEDIATE: MANDATORY, "advisory": ADVISORY, "disabled": None}
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


@dataclass(frozen=True, kw_only=True)
class Protection:
    """How the rule is configured: the level of what it finds, None to leave it out, and what may go."""

    level: str | None = MANDATORY
    allowed: frozenset[str] = frozenset()


def protection(config: Path | None) -> Protection:
    """Return the rule's part of a pack's configuration file."""
    if config is None:
        return Protection()
    try:
        document = json.loads(config.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise OpsError(f"file {config}: must exist. It configures the rules.") from error
    except ValueError as error:
        raise OpsError(f"file {config}: must be JSON ({error}).") from error
    if not isinstance(document, dict):
        raise OpsError(f"file {config}: must hold an object with a key a rule (got {type(document).__name__}).")
    own = document.get(RULE, {})
    options = own if isinstance(own, dict) else {"enforcementLevel": own}
    every = document.get("all", "mandatory")
    level = options.get("enforcementLevel", every.get("enforcementLevel") if isinstance(every, dict) else every)
    allowed = options.get("allowed", [])
    if (
        not isinstance(level, str)
        or level not in _LEVELS
        or not isinstance(allowed, list)
        or not all(isinstance(each, str) for each in allowed)
    ):
        raise OpsError(
            f"file {config}: {RULE} must be {', '.join(sorted(_LEVELS))}, or an object with enforcementLevel and "
            "allowed, a list of kinds and names."
        )
    return Protection(level=_LEVELS[level], allowed=frozenset(allowed))


def findings(log: Log, configured: Protection) -> Iterator[Finding]:
    """Yield a finding for each planned removal that matters. A replacement shows as several steps and counts once.

    What Pulumi itself refuses to remove is found at every level: the update would stop there.
    """
    removed = {step.urn: (step, step.removes) for step in log.steps if step.removes}
    logins, has_users = _logins(log)
    for urn, (step, operation) in removed.items():
        lost = _lost(step, logins if has_users else None)
        if urn in log.refused or (lost and configured.level is not None):
            yield _finding(step, str(operation), lost, configured, refused=urn in log.refused)
    for urn, operation in log.refused.items():
        if urn not in removed:
            step = Step(urn=urn, operation=operation, id="", inputs={}, kept=False)
            yield _finding(step, operation, _lost(step, None), configured, refused=True)


def _finding(step: Step, operation: str, lost: str, configured: Protection, *, refused: bool) -> Finding:
    of = resource(step.urn, step.inputs, step.id)
    consequence = " ".join(words for words in (lost, _PROTECTED if refused else "") if words)
    allowed = str(of) in configured.allowed or configured.level != MANDATORY
    return Finding(
        rule=RULE,
        severity="critical",
        level=ADVISORY if allowed and not refused else MANDATORY,
        resource=of,
        message=f"{of}: must stay (got {operation}). {consequence}",
        description=DESCRIPTION,
    )


def _lost(step: Step, logins: set[str] | None) -> str:
    """What goes with the object, "" if nothing that matters. `logins` are the Secrets that matter, None for all."""
    group, kind = _kind(step.urn)
    if kind == _SECRET and logins is not None and step.id not in logins:
        return ""
    if within(step.inputs, "metadata", "annotations", "strimzi.io/managed") == "false":
        return ""  # the operator then leaves the topic alone
    return _LOST.get((group, kind), "")


def _logins(log: Log) -> tuple[set[str], bool]:
    """Ids of the Secrets that hold users' passwords, and whether the preview saw any user."""
    users = [step for step in log.steps if _kind(step.urn)[1] == "KafkaUser"]
    found = set()
    for user in users:
        reference = within(user.inputs, "spec", "authentication", "password", "valueFrom", "secretKeyRef")
        namespace, name = within(user.inputs, "metadata", "namespace"), within(reference, "name")
        if isinstance(name, str):
            found.add(f"{namespace}/{name}" if namespace else name)
    return found, bool(users)


def _kind(urn: str) -> tuple[str, str]:
    """API group and kind of a Kubernetes object, two empty words for anything else."""
    package, _, rest = resource(urn).type.partition(":")
    version, _, kind = rest.rpartition(":")
    group = version.partition("/")[0]
    return ("" if group == "core" else group, kind) if package == "kubernetes" else ("", "")
