"""Namespace: its name follows a convention, for example one that ends with the stage."""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.option_patterns import WORDS, misnamed, pattern_option, stage_option
from policies.support.policy_builder import Config, resource_policy
from policies.support.resource_types import NAMESPACE
from policies.support.traversal import Props, name


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
