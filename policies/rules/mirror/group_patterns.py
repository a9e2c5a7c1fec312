"""KafkaMirrorMaker2: a mirror that syncs groups must select some, and not those of Connect or of consoles by accident.

A set `groupsExcludePattern` replaces MirrorMaker's `console-consumer-.*,connect-.*,__.*`. Without it, offsets of the
source's sink connectors are written over those of stopped connectors of the same name on the target. A mirror that
names such groups itself (`connect-orders.*`) wants them and is left alone.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.java_patterns import GROUPS_EXCLUDE, beginnings, parts
from policies.support.mirror_makers import CHECKPOINT, ReplicationFlow, is_followed, replication_flows
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import MIRROR, Props, each, flag, name

# What begins the names of such groups, and one that a pattern is tried on.
_OWN = {"console-consumer-": "console-consumer-1", "connect-": "connect-x"}


def violations(type_: str, props: Props, _config: Config) -> Iterator[str]:
    """Messages for each mirror that copies offsets of groups."""

    def check(flow: ReplicationFlow) -> Iterator[str]:
        if CHECKPOINT in flow.connectors:
            for problem in (
                *_nothing_selected(flow, followed=is_followed(props)),
                *_listed_but_excluded(flow),
                *_own_groups(flow),
            ):
                yield f"mirror {name(props)}: {flow.where}.{problem}"

    return each(replication_flows(type_, props), check)


def _nothing_selected(flow: ReplicationFlow, *, followed: bool) -> Iterator[str]:
    syncs = followed or flag(flow.config(CHECKPOINT).get("sync.group.offsets.enabled"), default=False)
    if syncs and not parts(flow.groups.include):
        yield (
            "groupsPattern must select the groups to sync (got an empty one). "
            "No group would have its offsets on the target; leave the field out for all groups."
        )


def _listed_but_excluded(flow: ReplicationFlow) -> Iterator[str]:
    exclude = flow.pattern("groupsExcludePattern")
    for group in (begun.text for begun in beginnings(flow.groups.include) if begun.whole and begun.text):
        if flow.groups.selects(group) is False:
            got = f"nothing, which means {GROUPS_EXCLUDE}" if exclude is None else exclude
            yield (
                f"groupsExcludePattern must leave {group} in, which groupsPattern lists (got {got}). "
                "Its offsets would not be copied."
            )


def _own_groups(flow: ReplicationFlow) -> Iterator[str]:
    texts = [begun.text for begun in beginnings(flow.groups.include)]
    for start, group in _OWN.items():
        if flow.groups.selects(group) and not any(text.startswith(start) for text in texts):
            yield (
                f"groupsExcludePattern must keep out groups such as {group} "
                f"(got {flow.groups.exclude or 'an empty one'}). "
                f"It replaces MirrorMaker's {GROUPS_EXCLUDE}: offsets of Connect and of consoles would be copied."
            )


POLICY = resource_policy(
    name="group-patterns",
    description="A mirror that syncs groups selects some, all that it lists, and none of Connect or consoles unnamed.",
    types=MIRROR,
    violations=violations,
    severity=Severity.MEDIUM,
    remediation_steps=f"Select groups in `groupsPattern`; let `groupsExcludePattern` begin with `{GROUPS_EXCLUDE}`.",
)
