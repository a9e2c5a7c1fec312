"""Alerts on the stack's own brokers and controllers, and on certificates of both clusters."""

from monitoring.alerts import Alert, AlertGroup, Severity

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
