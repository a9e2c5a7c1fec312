r"""KafkaMirrorMaker2: the mirror of a line of business must select only topics and groups that it owns.

Lines of business that share clusters own prefixes of names. Every alternative of a mirror's pattern must spell out one
of its prefixes before anything else: `retail\..*` does, while `retail..*` takes `retailers` and `.*` takes everything.
Topics and groups are judged apart from each other, because their prefixes seldom are the same.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pulumi_policy import Severity

from policies.support.java_patterns import alternatives, beginnings
from policies.support.mirror_makers import CHECKPOINT, SOURCE, ReplicationFlow, replication_flows
from policies.support.policy_builder import Config, Option, resource_policy
from policies.support.resources import MIRROR, Props, each, items, name, sequence


@dataclass(frozen=True)
class _Owned:
    """What is owned: the option with the owners, the field that selects it, and the connector that copies it."""

    what: str
    option: str
    field: str
    connector: str


_KINDS = (
    _Owned("topics", "owners", "topicsPattern", SOURCE),
    _Owned("groups", "groupOwners", "groupsPattern", CHECKPOINT),
)


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for a mirror that nobody owns, and for each alternative that goes beyond its owner's prefixes."""
    for owned in _KINDS:
        owners = {
            pattern: [str(prefix) for prefix in sequence(value)] for pattern, value in items(config[owned.option])
        }
        if owners:
            yield from (f"mirror {name(props)}: {problem}" for problem in _judged(type_, props, owned, owners))


def _judged(type_: str, props: Props, owned: _Owned, owners: dict[str, list[str]]) -> Iterator[str]:
    try:
        mine = [pattern for pattern in owners if re.fullmatch(pattern, name(props))]
    except re.error as reason:
        yield f"option {owned.option} must have regular expressions as keys (got {', '.join(owners)}: {reason})."
        return
    if not mine:
        yield (
            f"name must be one that owns {owned.what} (got {name(props)}, allowed {', '.join(owners)}). "
            "Nobody answers for what it copies."
        )
        return
    prefixes = [prefix for pattern in mine for prefix in owners[pattern]]

    def check(flow: ReplicationFlow) -> Iterator[str]:
        if owned.connector not in flow.connectors:
            return
        pattern = (flow.topics if owned.connector == SOURCE else flow.groups).include
        got = "nothing, which means " if flow.pattern(owned.field) is None else ""
        for alternative in _beyond(pattern, prefixes):
            yield (
                f"{flow.where}.{owned.field} must spell out an owned prefix first "
                f"(got {got}{alternative}, allowed {', '.join(prefixes) or 'none'}). "
                f"It may take {owned.what} of another line of business."
            )

    yield from each(replication_flows(type_, props), check)


def _beyond(pattern: str, prefixes: Sequence[str]) -> list[str]:
    """Alternatives that can match a name without one of the prefixes. What Java refuses has none."""
    return [
        alternative
        for alternative in alternatives(pattern)
        if not all(begun.text.startswith(tuple(prefixes)) for begun in beginnings(alternative))
    ]


def _owners(what: str, example: str) -> Option:
    return {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": "string"}},
        "default": {},
        "description": f"prefixes of {what} that a mirror owns, by a regular expression of its name: {example}; "
        "while empty, nothing is judged",
    }


POLICY = resource_policy(
    name="owned-prefixes",
    description="Every mirror has an owner and selects only topics and groups that begin with a prefix of that owner.",
    types=MIRROR,
    violations=violations,
    options={
        "owners": _owners("topics", '{"retail": ["retail."]}'),
        "groupOwners": _owners("groups", '{"retail": ["retail-"]}'),
    },
    severity=Severity.HIGH,
    remediation_steps=r"Begin each alternative with the prefix, its dots escaped (`retail\..*`), or add the owner.",
)
