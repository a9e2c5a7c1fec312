"""Guards of a stack: changes that would copy all records again or switch clusters by mistake, and its deletion.

Connect finds a mirror's source offsets by its group, its offset storage topic and the two aliases; names on the target
depend on the naming. A switch without a command, from an old checkout for example, would send applications to a cluster
that lacks records. Both are found by a comparison with the outputs of the last `up`. Does not own the switch itself.

Pulumi deletes what depends on others before these others, and refuses a protected resource only when it comes to it:
the mirror and the Secret of the clients, which are not protected, would be gone by then. The deletion guard depends on
everything, so it comes first, and while it is protected nothing is deleted. An `up` may still remove a mirror.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pulumi

from components.replication_flow import previous_outputs
from contract.stack_outputs import MirrorIdentity
from settings.mirrors import SWITCH_VARIABLE, Mirror
from settings.text import format_names

_ACTIVE_CLUSTER = {"source": "the source's cluster", "target": "this stack's cluster"}
DELETION_GUARD = "whole-stack"
# Output of a mirror → (setting, what the change means)
_IDENTITY = {
    "groupId": ("groupId", "Connect starts a new group"),
    "offsetStorageTopic": ("offsetStorageTopic", "Connect finds no positions there"),
    "sourceAlias": ("source.alias", "positions are kept under the old alias"),
    "sourceStack": ("source.stack", "positions under this alias belong to another cluster"),
    "sourceExternal": ("source.external.name", "positions under this alias belong to another cluster"),
    "targetAlias": ("target.alias", "positions are kept under the old alias"),
    "naming": ("naming", "remote topics get other names"),
    "separator": ("separator", "remote and internal topics get other names"),
}


def rereplicating_changes(mirrors: Iterable[Mirror], before: Mapping[str, Any]) -> list[str]:
    """Return an error for every change after which a mirror would copy all records again, unless the mirror accepts it.

    Args:
        mirrors: The declared mirrors.
        before: The output `mirrors` of the last `up`. The last line of the result is the remedy.
    """
    every = [each for mirror in mirrors for each in (mirror, *([mirror.reverse_mirror()] if mirror.reverse else []))]
    # A failback's own mirror comes and goes; each time its command sets where it begins.
    named = {mirror.name for mirror in every} | {mirror.failback_mirror_name for mirror in every}
    gone = {name: fact for name, fact in before.items() if name not in named}
    problems = [
        problem
        for mirror in every
        if not mirror.accept_rereplication
        for problem in (*identity_changes(mirror, before.get(mirror.name), gone), *_left_running(mirror, before))
    ]
    if not problems:
        return []
    return [
        *problems,
        "Everything would be copied once more, and doubled where the names stay. Take the change back, or set "
        "acceptRereplication: true on the mirror for one `pulumi up`.",
    ]


def identity_changes(
    mirror: Mirror, known: Mapping[str, Any] | None, gone: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return the changes after which a mirror would copy everything again.

    Args:
        mirror: The declared mirror.
        known: Its output of the last `up`; None for a mirror that is new.
        gone: Outputs of the mirrors that are no longer declared, by name.
    """
    now = mirror_identity(mirror).document()
    if known is None:
        pair = ("sourceAlias", "targetAlias", "sourceStack")
        old = [
            name
            for name, fact in gone.items()
            if all(fact.get(key) == now[key] for key in pair) and any(fact.get(key) != now[key] for key in _IDENTITY)
        ]
        return [
            f"mirror {mirror.name}: name must stay {name} (got {mirror.name} between the same clusters): group and "
            "positions are kept under the old one."
            for name in old
        ]
    return [
        f"mirror {mirror.name}: {setting} must stay {known[fact]!r} (got {now[fact]!r}): {meaning}."
        for fact, (setting, meaning) in _IDENTITY.items()
        if fact in known and known[fact] != now[fact]
    ]


def _left_running(mirror: Mirror, before: Mapping[str, Any]) -> list[str]:
    """Return an error for a failback that ends while it copies: Connect keeps its connectors and would resume them."""
    known = (before.get(mirror.failback_mirror_name) or {}).get("failback")
    if known != "copying" or mirror.has_failback_mirror:
        return []
    return [
        f"mirror {mirror.name}: failback must be prepared for one `pulumi up` before it ends (got "
        f"{mirror.failback or 'nothing'} after copying): its connectors must be stopped first, or they would run on "
        "from there when it comes again."
    ]


def mirror_identity(mirror: Mirror) -> MirrorIdentity:
    """Return the outputs of a mirror that its source offsets and remote topics depend on."""
    return MirrorIdentity(
        source_stack=mirror.source.stack,
        source_external=mirror.source.external.name if mirror.source.external else None,
        source_alias=mirror.source.alias,
        target_alias=mirror.target.alias,
        naming=mirror.naming,
        separator=mirror.separator,
        group_id=mirror.connect_group,
        offset_storage_topic=mirror.storage_topics["offset"],
    )


def unrequested_switches(
    mirrors: Iterable[Mirror], before: Mapping[str, Any], environment: Mapping[str, str]
) -> list[str]:
    """Return an error for every change of `active` or `failedOver` that neither a command nor the mirror requests.

    Args:
        mirrors: The declared mirrors.
        before: The output `mirrors` of the last `up`. The last line of the result is the remedy.
        environment: Variables of the process; `failover` and `failback` name their mirror in one of them.
    """
    problems = _split(mirrors, before, environment)
    problems += [
        f"mirror {mirror.name}: active must stay {known!r} (got {mirror.active!r}): applications use "
        f"{_ACTIVE_CLUSTER.get(known, known)}."
        for mirror in mirrors
        if (known := (before.get(mirror.name) or {}).get("active")) not in (None, mirror.active)
        and not mirror.accept_switch
        and environment.get(SWITCH_VARIABLE) != mirror.name
    ]
    if not problems:
        return []
    return [
        *problems,
        "Applications would change sides, and the other one may lack their records and positions. If the stack file "
        "is an old one, bring it up to date. Else switch with `python -m ops failover` or `python -m ops failback`, "
        "or set acceptSwitch: true on the mirror for one `pulumi up`.",
    ]


def _split(mirrors: Iterable[Mirror], before: Mapping[str, Any], environment: Mapping[str, str]) -> list[str]:
    """Return an error for every mirror of which other topics than before would be failed over by themselves."""
    problems = []
    for mirror in mirrors:
        known = before.get(mirror.name)
        if known is None or not mirror.active == known.get("active") == "source":
            continue
        was = set((known.get("failedOver") or {}).get("topics") or ())
        now = set(mirror.failed_over.topics if mirror.failed_over else ())
        if was != now and not mirror.accept_switch and environment.get(SWITCH_VARIABLE) != mirror.name:
            problems.append(
                f"mirror {mirror.name}: failedOver must stay {format_names(was)} (got "
                f"{format_names(now)}): applications use these topics at this stack's cluster."
            )
    return problems


def refuse_unsafe_changes(
    mirrors: Sequence[Mirror], sides_now: Callable[[Iterable[Mirror]], Mapping[str, str]]
) -> None:
    """Raise RunError with every unsafe change of the mirrors; a preview only warns of an unrequested switch.

    `sides_now` returns the active sides of mirrors by what is there, where that can be read: after a break-glass
    failover Pulumi's outputs have the former ones.
    """
    before = previous_outputs().get("mirrors") or {}
    again = rereplicating_changes(mirrors, before)
    # In a preview it is seldom worth what loading the client of Kubernetes takes.
    asked = [each for each in mirrors if each.name in before and (not _is_preview() or _switches(each, before))]
    now = {name: {**before[name], "active": side} for name, side in sides_now(asked).items()} if asked else {}
    sides = unrequested_switches(mirrors, {**before, **now}, os.environ)
    if sides and _is_preview():
        pulumi.log.warn("\n".join(sides))
        sides = []
    if again or sides:
        raise pulumi.RunError("\n".join([*again, *sides]))


def _is_preview() -> bool:
    return bool(pulumi.runtime.is_dry_run())


def _switches(mirror: Mirror, before: Mapping[str, Any]) -> bool:
    known = before[mirror.name]
    return bool(known.get("active") != mirror.active or known.get("failedOver") or mirror.failed_over)


class DeletionGuard(pulumi.ComponentResource):
    """A resource of Pulumi's state alone, protected like the cluster."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        """Register it; the options have what it depends on and whether it is protected."""
        super().__init__("rt-inventory:pulumi:DeletionGuard", name, None, opts)
        self.register_outputs({})


def guard_against_deletion(resources: Iterable[pulumi.Resource | None], *, protect: bool) -> DeletionGuard:
    """Return the guard of all resources of a stack.

    It is there without protection too: Pulumi lifts the protection of a resource only while the program has it.
    """
    everything = [resource for resource in resources if resource is not None]
    return DeletionGuard(DELETION_GUARD, pulumi.ResourceOptions(depends_on=everything, protect=protect))
