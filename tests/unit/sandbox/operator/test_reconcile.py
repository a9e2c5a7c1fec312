"""When resources are reconciled, and the metrics of that."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest

from sandbox.operator.java_processes import last_error_line
from sandbox.operator.reconcile import CLUSTER_CA, Dispatcher, Key, OperatorMetrics, path_of, serve_metrics

A, B = Key("Kafka", "ns", "a"), Key("Kafka", "ns", "b")


class Work:
    """Records what ran; `block` holds A up, `fail` makes B fail once."""

    def __init__(self) -> None:
        self.done: list[Key] = []
        self.block, self.failures = threading.Event(), 0
        self.active = self.most = 0

    def __call__(self, key: Key) -> float | None:
        self.active += 1
        self.most = max(self.most, self.active)
        if key == A:
            self.block.wait(5)
        self.active -= 1
        if key == B and self.failures:
            self.failures -= 1
            raise RuntimeError("broken")
        self.done.append(key)
        return None


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def dispatcher(work: Work) -> Iterator[Dispatcher]:
    dispatcher = Dispatcher(work, threads=3)
    dispatcher.start()
    yield dispatcher
    work.block.set()
    dispatcher.stop()


def wait_for(work: Work, expected: list[Key]) -> None:
    end = time.monotonic() + 5
    while work.done != expected and time.monotonic() < end:
        time.sleep(0.01)
    assert work.done == expected


def test_a_resource_that_hangs_does_not_hold_up_another(work: Work, dispatcher: Dispatcher) -> None:
    dispatcher.add(A)
    dispatcher.add(B)
    wait_for(work, [B])


def test_a_resource_that_fails_is_tried_again(work: Work, dispatcher: Dispatcher) -> None:
    work.failures = 1
    dispatcher.add(B)
    wait_for(work, [B])


def test_one_resource_is_never_worked_on_twice_at_a_time_and_a_late_event_is_not_lost(
    work: Work, dispatcher: Dispatcher
) -> None:
    dispatcher.add(A)
    time.sleep(0.1)
    dispatcher.add(A)
    dispatcher.add(A)
    work.block.set()
    wait_for(work, [A, A])
    assert work.most == 1


def test_a_resource_that_is_gone_is_forgotten(work: Work, dispatcher: Dispatcher) -> None:
    dispatcher.add(B)
    wait_for(work, [B])
    time.sleep(0.1)
    assert dispatcher.known("Kafka") == []


def test_one_that_is_wanted_sooner_does_not_wait_for_a_later_one(work: Work, dispatcher: Dispatcher) -> None:
    dispatcher.add(A, 60.0)
    time.sleep(0.2)  # a thread waits for A by now, the others for nothing
    for _ in range(3):
        dispatcher.add(B, 0.1)
        time.sleep(0.3)
    wait_for(work, [B] * 3)


def test_the_last_error_of_a_log_is_reported_without_its_time(tmp_path: object) -> None:
    from pathlib import Path

    log = Path(str(tmp_path)) / "log"
    log.write_text("[t] ERROR first (x)\n[t] INFO fine\n[t] ERROR no space left (y)\n\tat z\n", encoding="utf-8")
    assert last_error_line(log) == "ERROR no space left (y)"


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
