"""KafkaTopic: a partition must have enough replicas to outlive a broker."""

from collections.abc import Mapping
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    PolicyConfigSchema,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
)

from .custom_resource import is_kind, mapping, name, whole

MINIMUM = 3


def violations(type_: str, props: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """What is wrong with one resource: at most one message, none for another kind."""
    if not is_kind(type_, "KafkaTopic"):
        return []
    minimum = whole(config.get("minimum")) or MINIMUM
    replicas = mapping(props.get("spec")).get("replicas")
    count = whole(replicas)
    if count is not None and count >= minimum:
        return []
    got = "nothing: the brokers' default decides" if replicas is None else count
    return [
        f"topic {name(props)}: replicas must be >= {minimum} (got {got}). "
        "With fewer, the loss of one broker can stop producers or lose records."
    ]


def validate(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
    """Report the violations of one resource."""
    for message in violations(args.resource_type, args.props, args.get_config()):
        report_violation(message, None)


POLICY = ResourceValidationPolicy(
    name="topic-replication",
    description="Every KafkaTopic has at least `minimum` replicas.",
    validate=validate,
    enforcement_level=EnforcementLevel.MANDATORY,
    config_schema=PolicyConfigSchema(
        properties={"minimum": {"type": "integer", "minimum": 1, "default": MINIMUM}},
    ),
    severity=Severity.HIGH,
    remediation_steps="Set replicas of the topic, or lower `minimum` for a stack that may lose records.",
)
