"""KafkaMirrorMaker2: what the mirror creates on the target must have enough replicas to outlive a broker."""

from collections.abc import Iterator, Mapping
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    PolicyConfigSchema,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
)

from .custom_resource import is_kind, mapping, name, sequence, whole

MINIMUM = 3
# Per part of the resource: the settings that decide a factor, with the value Kafka takes if one is not set
# (MirrorSourceConfig, MirrorCheckpointConfig, DistributedConfig).
FACTORS = {
    "sourceConnector": {"replication.factor": 2, "offset-syncs.topic.replication.factor": 3},
    "checkpointConnector": {"checkpoints.topic.replication.factor": 3},
    "heartbeatConnector": {"heartbeats.topic.replication.factor": 3},
}
STORAGE_FACTORS = {
    "config.storage.replication.factor": 3,
    "offset.storage.replication.factor": 3,
    "status.storage.replication.factor": 3,
}


def violations(type_: str, props: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """What is wrong with one resource: a message for each factor that is too low, none for another kind."""
    if not is_kind(type_, "KafkaMirrorMaker2"):
        return []
    minimum = whole(config.get("minimum")) or MINIMUM
    return [
        f"mirror {name(props)}: {where} {key} must be >= {minimum} (got {got}). "
        "With fewer, the loss of one target broker can lose what was mirrored."
        for where, key, value, got in _factors(mapping(props.get("spec")))
        if value is None or value < minimum
    ]


def _factors(spec: Mapping[str, Any]) -> Iterator[tuple[str, str, int | None, str]]:
    """Place, key, number and wording of every factor that the resource decides."""
    yield from _of("target", _target_config(spec), STORAGE_FACTORS)
    for mirror in sequence(spec.get("mirrors")):
        for connector, defaults in FACTORS.items():
            if connector in mapping(mirror):
                yield from _of(connector, mapping(mapping(mirror[connector]).get("config")), defaults)


def _of(
    where: str, config: Mapping[str, Any], defaults: Mapping[str, int]
) -> Iterator[tuple[str, str, int | None, str]]:
    for key, default in defaults.items():
        if key in config:
            yield where, key, whole(config[key]), str(config[key])
        else:
            yield where, key, default, f"nothing, which means {default}"


def _target_config(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Connect's configuration: in `target` (v1), or in the cluster that `connectCluster` names (v1beta2)."""
    if "target" in spec:
        return mapping(mapping(spec["target"]).get("config"))
    for cluster in sequence(spec.get("clusters")):
        if mapping(cluster).get("alias") == spec.get("connectCluster"):
            return mapping(mapping(cluster).get("config"))
    return {}


def validate(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
    """Report the violations of one resource."""
    for message in violations(args.resource_type, args.props, args.get_config()):
        report_violation(message, None)


POLICY = ResourceValidationPolicy(
    name="mirror-replication",
    description="Mirrored topics, offset syncs, checkpoints and Connect's storage have at least `minimum` replicas.",
    validate=validate,
    enforcement_level=EnforcementLevel.MANDATORY,
    config_schema=PolicyConfigSchema(
        properties={"minimum": {"type": "integer", "minimum": 1, "default": MINIMUM}},
    ),
    severity=Severity.CRITICAL,
    remediation_steps="Set the named factor in the mirror, or lower `minimum` for a target that may lose records.",
)
