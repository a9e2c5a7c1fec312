"""KafkaUser: a user's name follows a convention, because it is in the brokers' logs and in every login."""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.policy_builder import WORDS, Config, misnamed, pattern_option, resource_policy, stage_option
from policies.support.resources import USER, Props, name


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
