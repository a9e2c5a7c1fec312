"""Nothing of one stage carries the name of another: neither the object itself nor the namespace in which it is made.

A stack whose name is none of `stages` (a site, a role) does not show its stage: nothing is judged. Topics
that a mirror of the stack made carry the alias of their source, which may well be another stage: the alias is not read.
"""

import re
from collections.abc import Iterator, Sequence

from pulumi_policy import Severity

from policies.support.clusters import topic_name
from policies.support.mirror_makers import cluster_endpoints, is_mirror_makers
from policies.support.policy_builder import Config, Finding, Resource, stack_policy, stage_of, stage_option
from policies.support.resources import (
    CLUSTER,
    MIRROR,
    NAMESPACE,
    TOPIC,
    USER,
    each,
    if_known,
    name,
    namespace,
    sequence,
)

_NAMED = {"namespace": NAMESPACE, "cluster": CLUSTER, "user": USER, "topic": TOPIC}


def violations(resources: Sequence[Resource], config: Config) -> Iterator[Finding]:
    """A finding for each name with another stage, and one for each such namespace that the stack does not declare."""
    stage = stage_of(config).lower()
    stages = {str(known).lower() for known in sequence(config["stages"])}
    if stage not in stages:
        return
    others = stages - {stage}
    by_mirror = [[*each([one], _aliases)] for one in resources if one.type_ in MIRROR]
    aliases = [alias for found in by_mirror for alias in found]
    # A preview before the source is up does not know what a mirror connects: any topic may be a copy then.
    nouns = {noun: types for noun, types in _NAMED.items() if noun != "topic" or all(by_mirror)}
    declared = {*each((one for one in resources if one.type_ in NAMESPACE), lambda one: [name(one.props)])}

    def check_name(resource: Resource) -> Iterator[Finding]:
        for noun, types in nouns.items():
            if resource.type_ in types:
                own = topic_name(resource.props) if noun == "topic" else name(resource.props)
                judged = _without_aliases(own, aliases) if noun == "topic" else own
                yield from _findings(resource, f"{noun} {own}: name", judged, stage, others)

    def check_namespace(resource: Resource) -> Iterator[Finding]:
        within = namespace(resource.props)
        if within not in declared:
            yield from _findings(resource, f"namespace {within}: name", within, stage, others, shared=True)

    yield from each(resources, check_name)
    yield from each(resources, check_namespace)


def _findings(
    resource: Resource, field: str, judged: str, stage: str, others: set[str], *, shared: bool = False
) -> Iterator[Finding]:
    foreign = [token for token in re.split(r"[-._]", judged.lower()) if token in others]
    if foreign:
        message = f"{field} must not carry another stage (got {foreign[0]}, allowed {stage}). It is taken for that one."
        yield Finding(message, resource, shared)


def _aliases(mirror: Resource) -> Iterator[str]:
    for _where, cluster in cluster_endpoints(mirror.type_, mirror.props):
        alias = if_known(cluster, "alias")
        if alias:
            yield str(alias)


def _without_aliases(topic: str, aliases: Sequence[str]) -> str:
    """What a remote topic is called at its source; nothing of a topic that MirrorMaker keeps for itself."""
    if is_mirror_makers(topic):
        return ""
    for alias in aliases:
        if topic.startswith(alias) and topic[len(alias) : len(alias) + 1] in (".", "-", "_"):
            return _without_aliases(topic[len(alias) + 1 :], aliases)
    return topic


POLICY = stack_policy(
    name="stage-in-names",
    description="No Namespace, cluster, user or topic carries another stage in its name than the stack's.",
    types=NAMESPACE | CLUSTER | USER | TOPIC | MIRROR,
    violations=violations,
    options={
        "stage": stage_option(),
        "stages": {
            "type": "array",
            "items": {"type": "string"},
            "default": ["dev", "test", "tst", "stg", "uat", "prod", "prd"],
            "description": "every stage that there is; nothing is judged in a stack whose stage is none of them",
        },
    },
    severity=Severity.HIGH,
    remediation_steps="Rename the object, or move it to the stack of its stage.",
)
