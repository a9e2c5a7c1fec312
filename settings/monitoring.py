"""What watches a stack: how often Prometheus asks, when an alert fires and whom it tells, where dashboards go."""

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
    "MirrorLagSeconds", "MirrorStalled", "ReplicationLatencyP99", "HeartbeatMissing", "CheckpointTooOld",
    "GroupWithoutPosition", "GroupOffsetNotSynced", "OffsetCommitFailures", "TaskErrors", "RecordsSkipped",
    "TaskRetries", "BrokerDown", "UnderReplicatedPartitions", "PartitionsUnderMinIsr", "OfflinePartitions",
    "NoActiveController", "CertificateExpiresSoon", "VerificationFailed", "VerificationUnknown", "VerificationStale",
    "VerificationMissing", "RecordsLost", "GroupWouldSkip", "RecordsAltered", "RecordsDoubled", "RecordsForeign",
    "SideUnreachable", "StatusStale", "StatusFails", "OperatorDown",
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
    lag_critical_seconds: Number = 1800
    lag_rising_records: Number = 10_000
    replication_latency_p99_ms: Number = 60_000
    checkpoint_age_seconds: Number = 900
    group_unsynced_records: Number = 50_000
    offset_commit_failure_ratio: Annotated[float, Field(ge=0, lt=1)] = 0.1
    task_retries: Number = 10
    certificate_warning_days: Number = 21
    certificate_critical_days: Number = 7
    verification_age_hours: Number = 26
    # Rules look back 15 days for the last look: a limit beyond a day leaves too little of that.
    status_age_seconds: Annotated[int, Field(ge=1, le=86_400)] = 900


class Dashboards(Model):
    """ConfigMaps with the dashboards, as the sidecar of Grafana's Helm chart finds them by their labels."""

    labels: Labels = Field(default_factory=_sidecar)
    folder: str | None = None
    namespace: Label | None = None


class Channels(Model):
    """Channel of each severity, and one for all alerts of stages that page nobody. Without any the webhook's own."""

    critical: Channel | None = None
    warning: Channel | None = None
    info: Channel | None = None
    quiet: Channel | None = None


class Keys(Model):
    """Key of the webhook's address for each severity, and for all alerts of stages that page nobody.

    A webhook of a Slack app writes to the one channel that it was made for, whatever a message asks for. So each
    channel needs a webhook of its own, with a key of its own in the Secret.
    """

    critical: SecretKey | None = None
    warning: SecretKey | None = None
    info: SecretKey | None = None
    quiet: SecretKey | None = None


class Slack(Model):
    """Where alerts are told. `secret` exists already and holds the webhooks' addresses, which stand nowhere else."""

    secret: SecretName
    key: SecretKey = "url"
    keys: Keys = Field(default_factory=Keys)
    channels: Channels = Field(default_factory=Channels)
    paging_stages: Annotated[tuple[Label, ...], Field(min_length=1)] = ("production", "prod")


class Monitoring(Model):
    """Alerts, dashboards, and who is told.

    With `operator` there are PodMonitors, a PrometheusRule and an AlertmanagerConfig, which need the Prometheus
    Operator. Without it, `python -m ops render --as prometheus` writes the same as plain configuration.
    """

    stage: Label | None = None
    operator: bool = False
    labels: Labels = Field(default_factory=_none)
    scrape_seconds: Annotated[int, Field(ge=5, le=120)] = 30
    thresholds: Thresholds = Field(default_factory=Thresholds)
    alerts_off: tuple[AlertName, ...] = ()
    runbook_url: Annotated[str, Field(pattern=PAGE)] | None = None
    grafana_url: Annotated[str, Field(pattern=PAGE)] | None = None
    dashboards: Dashboards | None = None
    slack: Slack | None = None
