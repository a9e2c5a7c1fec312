"""Kafka and EventStreams: a cluster's name follows a convention, since addresses and Secrets are named after it."""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import describe
from policies.support.policy_builder import WORDS, Config, misnamed, pattern_option, resource_policy, stage_option
from policies.support.resources import CLUSTER, Props, name


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """At most one message."""
    return misnamed(describe(type_, props), "name", name(props), config)


POLICY = resource_policy(
    name="cluster-names",
    description="The name of every Kafka cluster matches `pattern`.",
    types=CLUSTER,
    violations=violations,
    options={"pattern": pattern_option(WORDS, "names of clusters"), "stage": stage_option()},
    severity=Severity.MEDIUM,
    remediation_steps="Name a new cluster so, or set `pattern` to the convention of this stack: a renamed cluster is a "
    "new and empty one.",
)
