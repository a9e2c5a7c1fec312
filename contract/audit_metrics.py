"""The Prometheus metrics of an audit, made of its document. Owns the names.

What is not known has no series. Series have the labels `stack` (empty if the request names none) and `mirror`.
"""

from collections.abc import Iterator

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from contract.audit import AuditDocument

PREFIX = "rt_inventory_audit"
QUANTILES = {"0.5": "p50", "0.95": "p95", "0.99": "p99"}
TOPICS_MAX = 500
"""Topics with series of their own, those with most missing records first."""


def families(document: AuditDocument) -> Iterator[Metric]:
    """Yield the gauges of a document."""
    owner = (document.stack or "", document.mirror)

    def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=("stack", "mirror", *labels))

    buckets = gauge("buckets", "Buckets that are kept, by topic and state.", "topic", "state")
    missing = gauge("missing_records", "Records of the source that buckets miss at the target.", "topic")
    extra = gauge("extra_records", "Records that buckets hold at the target beyond those of the source.", "topic")
    lacking, beyond = dict[str, int](), dict[str, int]()
    for fault in document.faults:
        held = {"missing": lacking, "extra": beyond}.get(fault.state)
        if held is not None:
            held[fault.topic] = held.get(fault.topic, 0) + fault.records
    topics = sorted(document.topics, key=lambda topic: -lacking.get(topic.topic, 0) - beyond.get(topic.topic, 0))
    for topic in topics[:TOPICS_MAX]:
        for state, count in topic.buckets.items():
            buckets.add_metric((*owner, topic.topic, state), count)
        missing.add_metric((*owner, topic.topic), lacking.get(topic.topic, 0))
        extra.add_metric((*owner, topic.topic), beyond.get(topic.topic, 0))
    latency = gauge("latency_seconds", "Replication latency of complete and late buckets, by quantile.", "quantile")
    for quantile, name in QUANTILES.items():
        if (value := getattr(document.latency_ms, name)) is not None:
            latency.add_metric((*owner, quantile), value / 1000)
    missed = gauge("missed_ratio", "Share of records in buckets that were not complete in time, by window.", "window")
    for window, share in document.objective.missed.items():
        if share is not None:
            missed.add_metric((*owner, window), share)
    through = gauge("read_through_timestamp_seconds", "Up to when a side was read, since 1970.", "side")
    for side, at_ms in document.read_through.items():
        # A side that was never read is behind since the audit began.
        through.add_metric((*owner, side), (document.from_ms if at_ms is None else at_ms) / 1000)
    interval = gauge("interval_seconds", "From the start of one reading to the next.")
    interval.add_metric(owner, document.every_seconds)
    problems = gauge("problems", "Why a side was not read the last time: 0 if both were.")
    problems.add_metric(owner, len(document.problems))
    yield from (buckets, missing, extra, latency, missed, through, interval, problems)
