"""KafkaUser: no user gets by ACLs what only a superuser has.

That is every operation on every topic, group or transactional ID, and on the cluster itself what lets a user take over:
change ACLs or brokers' configuration, or act as a broker. An empty prefix matches every name; the API takes it
although Kafka refuses it. What a mirror needs, to read and describe every group, is fine. To sync ACLs
(`sync.topic.acls.enabled`) it needs to change them, which is not.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.connections import superuser_rights
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import USER, Props, name


def violations(type_: str, props: Props, _config: Config) -> Iterator[str]:
    """A message for each right that makes a superuser."""
    for right in superuser_rights(type_, props):
        yield (
            f"user {name(props)}: authorization.acls must not make a superuser (got {right}). "
            "Whoever obtains its login has the whole cluster. Grant what it needs, by name or prefix."
        )


POLICY = resource_policy(
    name="wildcard-acls",
    description="No KafkaUser is granted every operation on every topic, group or transactional ID, nor `All`, "
    "`Alter`, `AlterConfigs` or `ClusterAction` on the cluster.",
    types=USER,
    violations=violations,
    severity=Severity.HIGH,
    remediation_steps="List the operations that the user needs, and the names or prefixes on which. Leave what only "
    "administrators do to `superUsers` of the cluster.",
)
