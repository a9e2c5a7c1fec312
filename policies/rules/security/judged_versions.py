"""Strimzi and Event Streams: a resource must be of an API version that the rules read, and no patch of a resource.

An API server takes an object in each version that it serves, such as `v1beta1` of an older release, and Pulumi changes
objects of others by `KafkaTopicPatch` and its like. All other rules know a resource by its type and would pass these.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import API_VERSIONS, PATCH, UNJUDGED, Props, name


def violations(type_: str, props: Props, _config: Config) -> Iterator[str]:
    """The message for the resource, whatever it has."""
    _, version, kind = type_.split(":")
    subject = f"{kind} {name(props)}"
    if kind.endswith(PATCH):
        yield (
            f"{subject}: the object must be declared as a whole, as a {kind.removesuffix(PATCH)} (got a patch). "
            "No other rule judges what a patch changes."
        )
        return
    group = version.partition("/")[0]
    known = ", ".join(each for each in API_VERSIONS if each.startswith(f"{group}/"))
    yield (
        f"{subject}: apiVersion must be one that the rules read (got {version}, allowed {known}). "
        "No other rule judges the resource."
    )


POLICY = resource_policy(
    name="judged-versions",
    description="No resource passes the rules by another API version of its kind, or as a patch.",
    types=UNJUDGED,
    violations=violations,
    severity=Severity.CRITICAL,
    remediation_steps="Declare the object itself, in an API version that is allowed.",
)
