"""The operator's own metrics."""

from datetime import UTC, datetime

import httpx

from sandbox.operator.dispatch import Key
from sandbox.operator.reconcile import CLUSTER_CA, OperatorMetrics, path_of, serve_metrics

KAFKA, MIRROR = Key("Kafka", "one", "c"), Key("KafkaMirrorMaker2", "two", "mm2")
STATE = "strimzi_resource_state"
CERTIFICATE = "strimzi_certificate_expiration_timestamp_ms"


COUNTS = "strimzi_reconciliations_"


def lines(metrics: OperatorMetrics, namespace: str | None = None) -> list[str]:
    """The samples about resources."""
    return [line for line in samples(metrics, namespace) if not line.startswith(COUNTS)]


def samples(metrics: OperatorMetrics, namespace: str | None = None) -> list[str]:
    return [line for line in metrics.text(namespace).decode().splitlines() if not line.startswith("#")]


def test_a_resource_is_ready_or_not_for_a_reason_until_it_is_gone() -> None:
    metrics = OperatorMetrics()
    metrics.seen(KAFKA, ready=False, reason="no pool")
    assert lines(metrics) == [f'{STATE}{{kind="Kafka",name="c",reason="no pool",resource_namespace="one"}} 0.0']
    metrics.seen(KAFKA, ready=True)
    assert lines(metrics) == [f'{STATE}{{kind="Kafka",name="c",reason="none",resource_namespace="one"}} 1.0']
    metrics.gone(KAFKA)
    assert lines(metrics) == []


def test_reconciliations_are_counted_by_how_they_ended() -> None:
    metrics = OperatorMetrics()
    for ready in (True, False, True):
        metrics.seen(KAFKA, ready=ready)
    metrics.seen(MIRROR, ready=True)
    kafka = 'kind="Kafka",namespace="one",selector=""'
    assert [line for line in samples(metrics, "one") if line.startswith(COUNTS)] == [
        f"{COUNTS}successful_total{{{kafka}}} 2.0",
        f"{COUNTS}failed_total{{{kafka}}} 1.0",
    ]


def test_topics_and_users_are_another_process_matter() -> None:
    metrics = OperatorMetrics()
    metrics.seen(Key("KafkaTopic", "one", "items"), ready=True)
    assert lines(metrics) == []


def test_the_end_of_an_authority_is_in_milliseconds_and_goes_with_its_cluster() -> None:
    metrics = OperatorMetrics()
    metrics.certificate_ends("one", "c", CLUSTER_CA, datetime(2027, 1, 1, tzinfo=UTC))
    (line,) = lines(metrics)
    labels = 'cluster="c",kind="Kafka",namespace="one",resource_namespace="one",type="cluster-ca"'
    assert line == f"{CERTIFICATE}{{{labels}}} 1.7987616e+12"
    metrics.gone(KAFKA)
    assert lines(metrics) == []


def test_each_namespace_is_served_at_a_path_of_its_own() -> None:
    metrics = OperatorMetrics()
    metrics.seen(KAFKA, ready=True)
    metrics.seen(MIRROR, ready=True)
    assert len(lines(metrics)) == 2
    assert len(lines(metrics, "one")) == 1
    with httpx.Client(base_url=f"http://127.0.0.1:{serve_metrics(metrics)}", trust_env=False) as client:
        assert "mm2" in client.get("/metrics").text
        only = client.get(path_of("one"))
        assert only.headers["Content-Type"].startswith("text/plain")
        assert "mm2" not in only.text
        for path in ("/", "/metrics/", "/else/metrics/one"):
            assert client.get(path).status_code == 404
