"""KafkaUser: a user's name follows a convention, because it stands in the brokers' logs and in every login."""

from collections.abc import Iterator

from pulumi_policy import Severity

from ..support.declaring import Config, resource_policy
from ..support.kinds import USER
from ..support.naming import WORDS, misnamed, pattern_option, stage_option
from ..support.values import Props, name


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
