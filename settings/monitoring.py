"""What watches a stack: how often Prometheus scrapes, when an alert fires and who gets it, where dashboards go."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from settings.model import Model, frozen
from settings.names import Label, SecretName, is_resource_name

Severity = Literal["critical", "warning", "info"]
_NAME_LENGTH_MAX, _CHANNEL_LENGTH_MAX = 63, 80
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
CHANNEL = rf"^([#@][^\s#@,:/]{{1,{_CHANNEL_LENGTH_MAX}}}|[A-Z0-9]{{9,}})$"
DATA_KEY = r"^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,251}$"
# Annotations of alerts are templates, for which braces are no text.
PAGE = r"^https?://[^\s/?#@{}]+(/[^\s?#{}]*)?$"
SIDECAR_LABEL, SIDECAR_VALUE = "grafana_dashboard", "1"
AlertName = Literal[
    "MirrorDown", "WorkerDown", "MirrorNotReady", "ConnectorNotRunning", "TaskNotRunning", "MirrorLagRising",
    "MirrorLagSeconds", "MirrorStalled", "RetentionOvertakesMirror", "ReplicationLatencyP99", "HeartbeatMissing",
    "CheckpointTooOld", "GroupWithoutPosition", "GroupOffsetNotSynced", "OffsetCommitFailures", "TaskErrors",
    "RecordsSkipped", "TaskRetries", "BrokerDown", "UnderReplicatedPartitions", "PartitionsUnderMinIsr",
    "OfflinePartitions", "NoActiveController", "CertificateExpiresSoon", "VerificationFailed",
    "VerificationUnknown", "VerificationStale", "VerificationMissing", "VerificationOfEmptyPair", "RecordsLost",
    "GroupWouldSkip", "RecordsAltered", "RecordsDoubled", "RecordsForeign", "AuditBudgetBurnsFast",
    "AuditBudgetBurns", "AuditFoundFault", "AuditFoundExtra", "AuditStale", "SideUnreachable", "StatusStale",
    "StatusFails", "OperatorDown",
]  # fmt: skip
Number = Annotated[int, Field(ge=1)]


def _labels(value: Mapping[str, str]) -> Mapping[str, str]:
    for key, text in value.items():
        prefix, slash, name = key.rpartition("/")
        if len(name) > _NAME_LENGTH_MAX or not _NAME.fullmatch(name) or (slash and not is_resource_name(prefix)):
            raise ValueError(
                f"must have keys as labels of Kubernetes have them: at most {_NAME_LENGTH_MAX} letters, digits, '-', "
                f"'_' and '.', after a domain and a '/' or without (got {key!r}). Rename it."
            )
        if len(text) > _NAME_LENGTH_MAX or (text and not _NAME.fullmatch(text)):
            raise ValueError(
                f"must have values as labels of Kubernetes have them: at most {_NAME_LENGTH_MAX} letters, digits, '-', "
                f"'_' and '.' (got {text!r} for {key}). Change it."
            )
    return frozen(value)


def _none() -> Mapping[str, str]:
    return MappingProxyType({})


def _sidecar() -> Mapping[str, str]:
    return MappingProxyType({SIDECAR_LABEL: SIDECAR_VALUE})


Labels = Annotated[Mapping[str, str], AfterValidator(_labels)]
Channel = Annotated[str, Field(pattern=CHANNEL)]
SecretKey = Annotated[str, Field(pattern=DATA_KEY)]


class Thresholds(Model):
    """When alerts fire. Those of a critical alert lie beyond those of its warning."""

    lag_seconds: Number = 300
    """Age of the oldest record that is not copied, for a warning."""
    lag_critical_seconds: Number = 1800
    """The same, for a critical alert."""
    lag_rising_records: Number = 10_000
    """Records behind, below which a rising lag is no news."""
    replication_latency_p99_ms: Number = 60_000
    """Time that the slowest records need to reach the target."""
    checkpoint_age_seconds: Number = 900
    """Age of the last checkpoint of a group that reads on."""
    group_unsynced_records: Number = 50_000
    """Records that a group would read again after a failover."""
    offset_commit_failure_ratio: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Part of a task's offset commits that fail."""
    task_retries: Number = 10
    """Attempts of a task that are repeated within 15 minutes."""
    retention_left_seconds: Number = 86_400
    """Time until retention deletes the first record that is not copied, while the mirror copies nothing."""
    certificate_warning_days: Number = 21
    """Days until a certificate expires, for a warning."""
    certificate_critical_days: Number = 7
    """The same, for a critical alert."""
    verification_age_hours: Number = 26
    """Hours since the last verification, if the verification has a schedule."""
    audit_intervals: Number = 30
    """Intervals between readings for which the audit, if one runs, has not read a side."""
    # Rules search 15 days for the last status: a limit of more than a day leaves too little of that.
    status_age_seconds: Annotated[int, Field(ge=1, le=86_400)] = 900
    """Age of the mirror's last status that `ops` reported."""


class Dashboards(Model):
    """ConfigMaps with the dashboards, as the sidecar of Grafana's Helm chart finds them by their labels."""

    labels: Labels = Field(default_factory=_sidecar)
    """Labels of the ConfigMaps. Without them `grafana_dashboard` is `1`."""
    folder: str | None = None
    """Folder in Grafana, as the sidecar's annotation `grafana_folder`. Without it the sidecar's default."""
    namespace: Label | None = None
    """Namespace of the ConfigMaps, which must exist. Without it the cluster's."""


class Channels(Model):
    """Channel of each severity, and one for all alerts of stages that page nobody. Without any the webhook's own."""

    critical: Channel | None = None
    """Channel of critical alerts."""
    warning: Channel | None = None
    """Channel of warnings."""
    info: Channel | None = None
    """Channel of hints."""
    quiet: Channel | None = None
    """Channel of every alert of a stage that is none of `pagingStages`. Without it and a quiet key every stage is
    routed by severity.
    """


class Keys(Model):
    """Key of the webhook's address for each severity, and for all alerts of stages that page nobody.

    A webhook of a Slack app writes to the one channel that it was made for, whatever a message asks for. So each
    channel needs a webhook of its own, with a key of its own in the Secret.
    """

    critical: SecretKey | None = None
    """Key of the address for critical alerts."""
    warning: SecretKey | None = None
    """Key of the address for warnings."""
    info: SecretKey | None = None
    """Key of the address for hints."""
    quiet: SecretKey | None = None
    """Key of the address for every alert of a stage that is none of `pagingStages`. Without it and a quiet channel
    every stage is routed by severity.
    """


class Slack(Model):
    """Where alerts are sent. `secret` exists already and holds the webhooks' addresses, which stand nowhere else."""

    secret: SecretName
    """Secret in the cluster's namespace that holds the addresses of webhooks."""
    key: SecretKey = "url"
    """Key of the address for everything that has none in `keys`."""
    keys: Keys = Field(default_factory=Keys)
    """Key of another address for a severity, where each channel has a webhook of its own, as those of Slack apps have.
    """
    channels: Channels = Field(default_factory=Channels)
    """Channel of each severity, for a webhook that may choose one. Those of Slack apps ignore it, use `keys`."""
    paging_stages: Annotated[tuple[Label, ...], Field(min_length=1)] = ("production", "prod")
    """Stages whose alerts are routed by severity even if there is a quiet key or channel."""


class Monitoring(Model):
    """Alerts, dashboards, and where alerts are sent.

    With `operator` there are PodMonitors, a PrometheusRule and an AlertmanagerConfig, which need the Prometheus
    Operator. Without it, `python -m ops render --as prometheus` writes the same as plain configuration.
    """

    stage: Label | None = None
    """Label `stage` of every alert, by which Alertmanager routes. Without it the stack's name."""
    operator: bool = False
    """Whether the Prometheus Operator is there, so that its resources are made. Its definitions must exist."""
    labels: Labels = Field(default_factory=_none)
    """Labels of those resources, by which the Prometheus and the Alertmanager select them."""
    scrape_seconds: Annotated[int, Field(ge=5, le=120)] = 30
    """How often metrics are read and rules are judged."""
    thresholds: Thresholds = Field(default_factory=Thresholds)
    """When alerts fire."""
    alerts_off: tuple[AlertName, ...] = ()
    """Alerts that are left out."""
    runbook_url: Annotated[str, Field(pattern=PAGE)] | None = None
    """Page that holds docs/alerts.md, to which alerts link. Without it they name that file."""
    grafana_url: Annotated[str, Field(pattern=PAGE)] | None = None
    """Address of Grafana, for links from alerts to dashboards. Without it there are none."""
    dashboards: Dashboards | None = None
    """ConfigMaps with the dashboards. Without it none; `{}` takes the defaults. One stack is enough for a Grafana that
    sees several.
    """
    slack: Slack | None = None
    """Where alerts are sent. Without it nowhere."""
