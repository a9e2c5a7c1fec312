"""Namespace: its name follows a convention, for example one that ends with the stage."""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.policy_builder import WORDS, Config, misnamed, pattern_option, resource_policy, stage_option
from policies.support.resources import NAMESPACE, Props, name


def violations(_type: str, props: Props, config: Config) -> Iterator[str]:
    """At most one message."""
    return misnamed(f"namespace {name(props)}", "name", name(props), config)


POLICY = resource_policy(
    name="namespace-names",
    description="The name of every Namespace matches `pattern`.",
    types=NAMESPACE,
    violations=violations,
    options={"pattern": pattern_option(WORDS, "names of namespaces"), "stage": stage_option()},
    severity=Severity.MEDIUM,
    remediation_steps="Rename the namespace, or set `pattern` to the convention of this stack.",
)
