"""Alerts: their expressions and thresholds, and Prometheus' rule files made of them.

Owns the rules and their thresholds. Does not own the metrics (`monitoring.metrics.catalog`), the receivers
(`monitoring.alert_routes`), or the runbook (`docs/alerts.md`). Here is what an alert is, the thresholds that it may
name, the mirrors and the cluster that it is about; and the alerts on the stack's own brokers and controllers, and on
certificates of both clusters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How soon a person must act: now, today, or not at all."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The numbers that alerts compare with. Those of a `critical` alert lie beyond those of its warning."""

    lag_seconds: float = 300
    lag_critical_seconds: float = 1800
    lag_rising_records: float = 10_000
    replication_latency_p99_ms: float = 60_000
    checkpoint_age_seconds: float = 900
    group_unsynced_records: float = 50_000
    offset_commit_failure_ratio: float = 0.1
    task_retries: float = 10
    retention_left_seconds: float = 86_400
    certificate_warning_days: float = 21
    certificate_critical_days: float = 7
    verification_age_hours: int = 26
    audit_intervals: float = 30
    status_age_seconds: float = 900


@dataclass(frozen=True, kw_only=True)
class MonitoredMirror:
    """A mirror as far as alerts must know it: one KafkaMirrorMaker2.

    `running` is false while it is paused or stopped on purpose. `heartbeats`: whether it has that connector,
    `checkpoints` whether it translates groups' positions, `verified` whether something verifies it again and again.
    `replicas` is how many workers it has at least.
    """

    name: str
    namespace: str
    running: bool = True
    heartbeats: bool = False
    checkpoints: bool = True
    verified: bool = False
    replicas: int = 1


@dataclass(frozen=True, kw_only=True)
class MonitoredCluster:
    """The Kafka cluster of the stack: `pods` is how many are scraped, brokers and controllers together."""

    name: str
    namespace: str
    pods: int


# Labels of alerts about the stack's own operator, which no mirror and no cluster has for itself.
OF_OPERATOR = ("stack",)


def declared(mirror: MonitoredMirror) -> bool:
    """Whether there is a mirror: what passes while it rests on purpose."""
    return bool(mirror.name)


def while_running(mirror: MonitoredMirror) -> bool:
    """Whether a mirror is meant to copy."""
    return mirror.running


def with_heartbeats(mirror: MonitoredMirror) -> bool:
    """Whether a mirror is meant to write heartbeats."""
    return mirror.running and mirror.heartbeats


def with_checkpoints(mirror: MonitoredMirror) -> bool:
    """Whether a mirror is meant to translate groups' positions."""
    return mirror.running and mirror.checkpoints


def with_verification(mirror: MonitoredMirror) -> bool:
    """Whether a mirror is verified by a schedule."""
    return mirror.running and mirror.verified


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One alert. `value` has a result in a healthy system, so that a dashboard can draw it and a test can ask for it.

    Texts may hold `<token>`, which rendering fills: the selectors of `monitoring.alerts.rendering` and the fields of
    `Thresholds`. `threshold` is a number or the name of such a field. `guard` is what must be true beside the
    comparison, as `and on (…) …` or `unless on (…) …`. `yields_to` is the alert that the guard favours: where
    that one is switched off, nothing else reports it. `labels` are those of its series. `mirrors`: which mirrors
    it is for; None where it is not about mirrors. With `missed` the value is 0 for a mirror that has none: for all that
    the settings name, and where nobody names any, for those that had this series. `dashboard` is the one that shows its
    cause if not on that of its group. The same name may have a warning and a critical alert.
    """

    name: str
    severity: Severity
    value: str
    comparison: str
    threshold: float | str
    hold: str
    labels: tuple[str, ...]
    summary: str
    description: str
    guard: str = ""
    yields_to: str = ""
    missed: str = ""
    mirrors: Callable[[MonitoredMirror], bool] | None = while_running
    dashboard: str = ""

    @property
    def anchor(self) -> str:
        """Anchor of its section in the alerts' runbook."""
        return self.name.lower()


@dataclass(frozen=True, kw_only=True)
class AlertGroup:
    """Alerts that are evaluated together, and the dashboard that shows their cause."""

    name: str
    dashboard: str
    alerts: tuple[Alert, ...]

    def dashboard_of(self, alert: Alert) -> str:
        """Return the dashboard that shows the cause of one of its alerts."""
        return alert.dashboard or self.dashboard


_CLUSTER_LABELS = ("stack", "cluster")
_REPLICAS = "kafka_server_replicamanager"
_CONTROLLER = "kafka_controller_kafkacontroller"
_RESTARTED = 'time() - process_start_time_seconds{job="kafka",<cluster>} < 1200'
_CLUSTER = "cluster {{ $labels.cluster }} of {{ $labels.stack }}"

KAFKA = AlertGroup(
    name="kafka",
    dashboard="rt-inventory-cluster",
    alerts=(
        Alert(
            name="BrokerDown",
            severity=Severity.CRITICAL,
            value="<missing pods>",
            comparison=">",
            threshold=0,
            # After the minutes for which a silent pod still counts as there.
            hold="5m",
            labels=_CLUSTER_LABELS,
            mirrors=None,
            summary="{{ $value }} pods of " + _CLUSTER + " are down",
            description="They have not answered for 10 minutes, longer than a restart takes, or are not scraped.",
        ),
        Alert(
            name="UnderReplicatedPartitions",
            severity=Severity.WARNING,
            value=f"sum by (stack, cluster) ({_REPLICAS}_underreplicatedpartitions{{<cluster>}})",
            comparison=">",
            threshold=0,
            # While brokers restart one after the other, some replica is always behind.
            guard="unless on (stack, cluster) count by (stack, cluster) (" + _RESTARTED + ") > 1",
            hold="20m",
            labels=_CLUSTER_LABELS,
            mirrors=None,
            summary="{{ $value }} partitions of " + _CLUSTER + " have too few replicas",
            description="For 20 minutes, in which no more than one broker was restarted. One more failure may stop "
            "producers or lose records.",
        ),
        Alert(
            name="PartitionsUnderMinIsr",
            severity=Severity.CRITICAL,
            value=f"sum by (stack, cluster) ({_REPLICAS}_underminisrpartitioncount{{<cluster>}})",
            comparison=">",
            threshold=0,
            hold="5m",
            labels=_CLUSTER_LABELS,
            mirrors=None,
            summary="{{ $value }} partitions of " + _CLUSTER + " refuse writes",
            description="Fewer replicas are in sync than `min.insync.replicas` asks for: producers with acks=all, a "
            "mirror too, get errors.",
        ),
        Alert(
            name="OfflinePartitions",
            severity=Severity.CRITICAL,
            value=f"max by (stack, cluster) ({_CONTROLLER}_offlinepartitionscount{{<cluster>}})",
            comparison=">",
            threshold=0,
            hold="5m",
            labels=_CLUSTER_LABELS,
            mirrors=None,
            summary="{{ $value }} partitions of " + _CLUSTER + " have no leader",
            description="Nobody can read or write them.",
        ),
        Alert(
            name="NoActiveController",
            severity=Severity.CRITICAL,
            value=f"sum by (stack, cluster) ({_CONTROLLER}_activecontrollercount{{<cluster>}})",
            comparison="!=",
            threshold=1,
            hold="5m",
            labels=_CLUSTER_LABELS,
            mirrors=None,
            summary="{{ $value }} controllers of " + _CLUSTER + " are active, not one",
            description="Without one no leader is elected and no topic made. With two the network is parted, or pods "
            "of two clusters are scraped as one.",
        ),
    ),
)


_CERTIFICATE_LABELS = ("stack", "mirror", "cluster", "certificate")
_DAYS_LEFT = (
    "(min by (stack, mirror, cluster, certificate)"
    " (rt_inventory_certificate_expiry_timestamp_seconds{<stack>} or <authorities>) - time()) / 86400"
)
_OWNER = "{{ with $labels.mirror }} of mirror {{ . }}{{ end }}{{ with $labels.cluster }} of cluster {{ . }}{{ end }}"
_SUMMARY = "Certificate {{ $labels.certificate }}" + _OWNER + ' expires in {{ $value | printf "%.1f" }} days'


def _expires(severity: Severity, threshold: str) -> Alert:
    return Alert(
        name="CertificateExpiresSoon",
        severity=severity,
        value=_DAYS_LEFT,
        comparison="<",
        threshold=threshold,
        hold="1h",
        labels=_CERTIFICATE_LABELS,
        mirrors=None,
        summary=_SUMMARY,
        description=f"Fewer than <{threshold}> days are left, in stack {{{{ $labels.stack }}}}. An operator renews "
        "its own 30 days before. Once it has expired no client connects, a mirror neither.",
    )


CERTIFICATES = AlertGroup(
    name="certificates",
    dashboard="rt-inventory-cluster",
    alerts=(
        _expires(Severity.WARNING, "certificate_warning_days"),
        _expires(Severity.CRITICAL, "certificate_critical_days"),
    ),
)
