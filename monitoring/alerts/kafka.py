"""The stack's own brokers: what makes records unsafe or the cluster unusable."""

from monitoring.alerts.model import Alert, AlertGroup, Severity

_LABELS = ("stack", "cluster")
_REPLICAS = "kafka_server_replicamanager"
_CONTROLLER = "kafka_controller_kafkacontroller"
_RESTARTED = 'time() - process_start_time_seconds{job="kafka",<cluster>} < 1200'
_WHOSE = "cluster {{ $labels.cluster }} of {{ $labels.stack }}"

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
            labels=_LABELS,
            mirrors=None,
            summary="{{ $value }} pods of " + _WHOSE + " are down",
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
            labels=_LABELS,
            mirrors=None,
            summary="{{ $value }} partitions of " + _WHOSE + " have too few replicas",
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
            labels=_LABELS,
            mirrors=None,
            summary="{{ $value }} partitions of " + _WHOSE + " refuse writes",
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
            labels=_LABELS,
            mirrors=None,
            summary="{{ $value }} partitions of " + _WHOSE + " have no leader",
            description="Nobody can read or write them.",
        ),
        Alert(
            name="NoActiveController",
            severity=Severity.CRITICAL,
            value=f"sum by (stack, cluster) ({_CONTROLLER}_activecontrollercount{{<cluster>}})",
            comparison="!=",
            threshold=1,
            hold="5m",
            labels=_LABELS,
            mirrors=None,
            summary="{{ $value }} controllers of " + _WHOSE + " are active, not one",
            description="Without one no leader is elected and no topic made. With two the network is parted, or pods "
            "of two clusters are scraped as one.",
        ),
    ),
)
