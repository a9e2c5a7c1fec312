"""KafkaUser: a user's name follows a convention, because it is in the brokers' logs and in every login."""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.option_patterns import WORDS, misnamed, pattern_option, stage_option
from policies.support.policy_builder import Config, resource_policy
from policies.support.resource_types import USER
from policies.support.traversal import Props, name


def violations(_type: str, props: Props, config: Config) -> Iterator[str]:
    """At most one message."""
    return misnamed(f"user {name(props)}", "name", name(props), config)


POLICY = resource_policy(
    name="user-names",
    description="The name of every KafkaUser matches `pattern`.",
    types=USER,
    violations=violations,
    options={
        "pattern": pattern_option(WORDS, "names of users"),
        "stage": stage_option(),
    },
    severity=Severity.MEDIUM,
    remediation_steps="Rename the user with its login, or set `pattern` to the convention of this stack.",
)
