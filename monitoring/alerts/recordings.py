"""Recording rules: what dashboards and scaling ask again and again, under `level:metric:operations`."""

from dataclasses import dataclass

from monitoring.alerts.lag import LAG_RECORDS, LATENCY_P99_MS

_SOURCE = "kafka_connect_mirror_mirrorsourceconnector"
_TOPICS = "kafka_server_brokertopicmetrics"


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One recording rule; `of_mirrors` is false for those of brokers."""

    name: str
    value: str
    of_mirrors: bool = True


RECORDINGS = (
    Recording(name="mirror:lag_records:sum", value=LAG_RECORDS),
    Recording(name="mirror:replication_latency_ms:p99_15m", value=LATENCY_P99_MS),
    Recording(
        name="mirror:records_copied:rate5m",
        value=f"sum by (stack, mirror) (rate({_SOURCE}_record_count{{<mirror>}}[5m]))",
    ),
    Recording(
        name="mirror:bytes_copied:rate5m",
        value=f"sum by (stack, mirror) (rate({_SOURCE}_byte_count{{<mirror>}}[5m]))",
    ),
    Recording(
        name="cluster:messages_in:rate5m",
        value=f'sum by (stack, cluster) (rate({_TOPICS}_messagesinpersec_total{{<cluster>,topic=""}}[5m]))',
        of_mirrors=False,
    ),
)
