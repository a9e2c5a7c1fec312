"""The stack: resources with records, or with the password that reads them, must be protected by Pulumi.

Pulumi neither deletes nor replaces a resource with the option `protect`. Of Secrets, only those are judged that a
KafkaUser of the stack takes its password from: a new one would lock out everyone who has the old. Resources that the
program only reads are not Pulumi's to delete, and the engine does not pass them to a policy.
"""

from collections.abc import Iterator, Sequence

from pulumi_policy import Severity

from policies.support.clusters import describe, topic_name
from policies.support.policy_builder import Config, Finding, Resource, stack_policy
from policies.support.resources import (
    CLUSTER,
    SECRET,
    TOPIC,
    USER,
    VOLUME_CLAIM,
    each,
    kind_of,
    name,
    namespace,
    sequence,
    within,
)

# What the option `kinds` may name. A cluster is meant whichever resource describes it.
_KINDS = {"Kafka": CLUSTER, "KafkaTopic": TOPIC, "Secret": SECRET, "PersistentVolumeClaim": VOLUME_CLAIM}


def violations(resources: Sequence[Resource], config: Config) -> Iterator[Finding]:
    """A finding for each resource that is not protected."""
    asked = frozenset[str]().union(*(_KINDS[kind] for kind in sequence(config["kinds"])))
    logins = {*each(resources, _login)}

    def check(resource: Resource) -> Iterator[Finding]:
        if resource.protect or (resource.type_ in SECRET and _place(resource) not in logins):
            return
        yield Finding(
            f"{_called(resource)}: protect must be true (got false). "
            "Without it, a destroy, a rename or another change that replaces the resource deletes it.",
            resource,
        )

    return each((resource for resource in resources if resource.type_ in asked), check)


def _login(resource: Resource) -> Iterator[tuple[str, str]]:
    """Namespace and name of the Secret with a KafkaUser's password, if there is one."""
    path = ("spec", "authentication", "password", "valueFrom", "secretKeyRef", "name")
    secret = within(resource.props, *path) if resource.type_ in USER else None
    if secret is not None:
        yield namespace(resource.props), str(secret)


def _place(resource: Resource) -> tuple[str, str]:
    return namespace(resource.props), name(resource.props)


def _called(resource: Resource) -> str:
    if resource.type_ in CLUSTER:
        return describe(resource.type_, resource.props)
    if resource.type_ in TOPIC:
        return f"topic {topic_name(resource.props)}"
    return f"{kind_of(resource.type_)} {name(resource.props)}"


POLICY = stack_policy(
    name="deletion-protection",
    description="Clusters, topics, the Secrets of users' passwords and volume claims are protected by Pulumi.",
    types=CLUSTER | TOPIC | USER | SECRET | VOLUME_CLAIM,
    violations=violations,
    options={
        "kinds": {
            "type": "array",
            "items": {"type": "string", "enum": [*_KINDS]},
            "default": [*_KINDS],
            "description": "kinds that must be protected; Kafka stands for EventStreams too",
        }
    },
    severity=Severity.HIGH,
    remediation_steps="Declare the resource with the resource option `protect`.",
)
