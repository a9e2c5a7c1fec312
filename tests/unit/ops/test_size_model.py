"""The arithmetic of a mirror's size: what limits a task, how many tasks follow, what they cost."""

import math
from dataclasses import replace

import pytest

from ops.sizing.clients import KIB, MIB, Clients, Network, Point, Throughput, consumer_bound, producer_bound, tuned
from ops.sizing.model import Workload, copied, size

# 50 000 records of 1000 bytes a second, 20 us of CPU each.
MEASURED = Throughput((Point(100, 1e-5, 1e-5), Point(1000, 2e-5, 2e-5), Point(10_000, 2e-4, 1e-4)), "test")
NEAR = Network(consumer_ms=0, producer_ms=0, acknowledge_ms=2, source_brokers=3, target_brokers=3)
FAR = replace(NEAR, consumer_ms=100)
LOAD = Workload(topics=1, partitions=48, record_bytes=1000, records_per_second=20_000, latency_ms=40)


def in_turn(request: float, window: float) -> float:
    """Bytes a round trip: one without any, and as many as the request has windows."""
    return request / (1 + request / window)


def test_the_default_receive_buffer_is_what_latency_divides() -> None:
    bound = consumer_bound(Clients(), FAR, 6).bytes_per_second
    assert bound == pytest.approx(3 * in_turn(2 * MIB, 1.1 * 64 * KIB) / 0.1)
    assert bound == pytest.approx(3 * 1.1 * 64 * KIB / 0.1, rel=0.04), "the fetch is many windows"


@pytest.mark.parametrize(
    ("round_trip_ms", "fetch_mib", "measured"), [(50, 8, 43_313), (100, 16, 23_253), (150, 32, 16_960)]
)
def test_a_fetch_waits_for_a_round_trip_as_kafkas_consumer_tool_did(
    round_trip_ms: int, fetch_mib: int, measured: int
) -> None:
    """Rates of benchmarks/results/distance.json."""
    clients = Clients(receive_buffer=-1, max_partition_fetch=fetch_mib * MIB // 8)
    network = Network(round_trip_ms, 0, 0, source_brokers=1, target_brokers=1, broker_buffer=-1)
    carried = consumer_bound(clients, network, 8).bytes_per_second
    assert carried is not None
    assert carried / 1024 == pytest.approx(measured, rel=0.12)


def test_the_brokers_send_buffer_limits_a_consumer_that_lets_the_system_choose() -> None:
    clients = Clients(receive_buffer=-1)
    bound = consumer_bound(clients, FAR, 6).bytes_per_second
    assert bound == pytest.approx(3 * in_turn(2 * MIB, 1.35 * 100 * KIB) / 0.1)
    opened = consumer_bound(clients, replace(FAR, broker_buffer=-1), 6)
    assert opened.bytes_per_second == pytest.approx(3 * in_turn(2 * MIB, 3 * MIB) / 0.1)


def test_a_task_with_one_partition_reaches_one_broker() -> None:
    bound = consumer_bound(Clients(), FAR, 1).bytes_per_second
    assert bound == pytest.approx(in_turn(MIB, 1.1 * 64 * KIB) / 0.1)


def test_no_round_trip_is_no_limit() -> None:
    assert consumer_bound(Clients(), NEAR, 6).bytes_per_second is None


def test_the_producer_waits_for_the_replicas_after_each_request() -> None:
    network = replace(NEAR, producer_ms=8)
    bound = producer_bound(Clients(), network, 6, 100)
    on_its_way_s = 0.008 * 2 * 16 / (1.1 * 100)
    assert bound.bytes_per_second == pytest.approx(3 * 2 * 16 * KIB / (0.010 + on_its_way_s))


def test_a_request_holds_no_more_than_its_maximum() -> None:
    bound = producer_bound(Clients(batch=MIB), replace(NEAR, broker_buffer=-1), 60, 100)
    assert bound.bytes_per_second == pytest.approx(3 * MIB / 0.002)


def test_a_record_larger_than_a_batch_goes_alone() -> None:
    bound = producer_bound(Clients(), NEAR, 1, 200 * KIB)
    assert bound.bytes_per_second == pytest.approx(200 * KIB / 0.002)


def test_a_window_limits_a_producer_over_distance_however_large_its_requests_are() -> None:
    network = replace(NEAR, producer_ms=50, acknowledge_ms=0)
    bound = producer_bound(Clients(batch=MIB, send_buffer=-1, in_flight=5), network, 3, 100)
    assert bound.bytes_per_second == pytest.approx(3 * 1.1 * 100 * KIB / 0.05)


def test_settings_that_carry_enough_stay_as_they_are() -> None:
    assert tuned(Clients(), FAR, 6, MIB, MIB) == Clients()


def test_no_fetch_grows_beyond_what_a_window_makes_of_it() -> None:
    needs = 3 * 100 * MIB
    assert tuned(Clients(), FAR, 6, needs, 0).consumer_overrides() == {"receive.buffer.bytes": -1}
    opened = tuned(Clients(), replace(FAR, broker_buffer=-1), 6, needs, 0)
    assert opened.max_partition_fetch == 8 * MIB  # 4 windows of 3 MiB from 2 partitions


def test_a_fetch_that_carries_a_share_of_a_window_is_larger_than_that_share() -> None:
    network = replace(FAR, broker_buffer=-1)
    clients = tuned(Clients(), network, 3, 3 * 15 * MIB, 0)  # 1.5 of 3 MiB a round trip: as much to wait as to come
    assert clients.max_partition_fetch == 4 * MIB
    carried = consumer_bound(clients, network, 3).bytes_per_second
    assert carried is not None
    assert carried >= 3 * 15 * MIB


def test_batches_grow_to_what_is_needed_and_linger_until_they_are_full() -> None:
    clients = tuned(Clients(), replace(NEAR, producer_ms=8), 3, 0, 3 * 5 * MIB)
    assert clients.producer_overrides() == {"batch.size": 128 * KIB, "linger.ms": 10}


def test_requests_in_flight_keep_their_order_by_idempotence() -> None:
    clients = tuned(Clients(), replace(NEAR, producer_ms=100, broker_buffer=-1), 3, 0, 3 * 20 * MIB)
    overrides = clients.producer_overrides()
    assert overrides["batch.size"] == MIB
    assert overrides["max.in.flight.requests.per.connection"] == 5
    assert overrides["enable.idempotence"] == "true"


def test_without_latency_cpu_decides() -> None:
    found = size(replace(LOAD, latency_ms=0, records_per_second=60_000), MEASURED)
    assert (found.tasks, found.consumer, found.producer) == (3, {}, {})  # 120 000 / 50 000


def test_latency_makes_more_tasks_and_recommends_what_spares_them() -> None:
    found = size(LOAD, MEASURED)
    # Of 4 tasks each would fetch 3 brokers x 135 KiB / (1 + 135 KiB / 4 MiB) / 40 ms, 10 037 records/s, and copy 9 840.
    assert found.tasks == 5
    assert found.consumer == {"receive.buffer.bytes": -1}
    assert any("socket.send.buffer.bytes -1 1 task would do" in words for words in found.advice)


@pytest.mark.parametrize(
    ("round_trip_ms", "tasks", "fetch_mib", "here", "measured"),
    [
        (20, 1, 8, 87_805, 60_305),
        (50, 2, 8, 73_723, 59_862),
        (50, 1, 16, 75_654, 45_100),
        (100, 3, 8, 74_903, 45_500),
        (100, 3, 16, 78_575, 53_537),
        (150, 4, 16, 76_234, 45_744),
        (150, 4, 32, 86_544, 55_999),
    ],
)
def test_what_is_expected_comes_within_a_fifth_of_what_mirrors_copied(
    round_trip_ms: int, tasks: int, fetch_mib: int, here: int, measured: int
) -> None:
    """Rates of the day of benchmarks/results/distance.json, some of runs whose results were not kept."""
    throughput = Throughput((Point(1024, 1 / here, 1.5e-5),), "benchmarks.distance, 2 cores, one broker on each side")
    load = Workload(
        topics=1, partitions=8, record_bytes=1024, records_per_second=here / 2, latency_ms=round_trip_ms, local_ms=0.2,
        acknowledge_ms=0, source_brokers=1, target_brokers=1, broker_buffer=-1,
    )  # fmt: skip
    clients = Clients(receive_buffer=-1, max_partition_fetch=fetch_mib * MIB // 8)
    assert measured * 0.8 <= copied(load, throughput, clients, tasks) <= measured * 1.2


def test_the_brokers_setting_makes_the_advice_true() -> None:
    assert size(replace(LOAD, broker_buffer=-1), MEASURED).tasks == 1


def test_the_busiest_task_keeps_up_with_its_share() -> None:
    found = size(replace(LOAD, latency_ms=0, partitions=5, records_per_second=60_000), MEASURED)
    # 3 tasks would be 2 partitions and 48 000 records/s for the busiest, which is just enough.
    assert found.tasks == 3
    found = size(replace(LOAD, latency_ms=0, partitions=4, records_per_second=60_000), MEASURED)
    assert found.tasks == 4  # 3 tasks would leave 2 of 4 partitions to one: 60 000 records/s


def test_there_are_never_more_tasks_than_partitions() -> None:
    found = size(replace(LOAD, latency_ms=0, partitions=4, records_per_second=200_000), MEASURED)
    assert (found.feasible, found.tasks) == (False, 4)
    assert any("must be at least 8 for this rate (got 4)" in words for words in found.advice)


def test_workers_follow_from_cpu_and_do_not_outnumber_tasks() -> None:
    load = replace(LOAD, latency_ms=0, records_per_second=100_000)
    assert size(load, MEASURED).replicas == 3  # 200 000 x 20 us = 4 cores / (2 - 0.2)
    assert size(replace(load, worker_cpu=8), MEASURED).replicas == 1
    assert size(replace(LOAD, latency_ms=0, worker_cpu=0.5), MEASURED).replicas == 1


def test_availability_means_two_workers_and_memory_for_the_tasks_of_a_lost_one() -> None:
    plain = size(LOAD, MEASURED)
    ready = size(replace(LOAD, availability=True), MEASURED)
    assert (plain.replicas, ready.replicas) == (1, 2)
    assert ready.heap_mib == plain.heap_mib


def test_compressed_records_pass_a_window_faster_and_cost_more_cpu() -> None:
    plain, compressed = size(LOAD, MEASURED), size(replace(LOAD, compression_ratio=4), MEASURED)
    assert compressed.tasks < plain.tasks
    assert compressed.cpu == pytest.approx(1.3 * plain.cpu, abs=0.01)
    assert compressed.producer["compression.type"] == "lz4"


def test_a_mirror_at_the_source_is_advised_to_move() -> None:
    found = size(replace(LOAD, workers_at="source"), MEASURED)
    assert any(words.startswith("workers: put them at the target") for words in found.advice)
    assert found.producer["batch.size"] > 16 * KIB


def test_a_heap_holds_every_tasks_buffers() -> None:
    found = size(replace(LOAD, latency_ms=0), MEASURED)
    # (256 + 32 + 48 x 1 MiB fetched + 1 MB polled) x 1.25 rounded up to 128 MiB
    assert found.heap_mib == math.ceil((256 + 32 + 48 + 0.95) * 1.25 / 128) * 128
    assert found.memory_mib >= found.heap_mib / 0.75


@pytest.mark.parametrize(
    ("record_bytes", "seconds"), [(1, 1e-5), (100, 1e-5), (550, 1.5e-5), (10_000, 2e-4), (20_000, 4e-4)]
)
def test_the_time_of_a_record_lies_on_the_line_between_measured_sizes(record_bytes: int, seconds: float) -> None:
    assert 1 / MEASURED.records_per_second(record_bytes) == pytest.approx(seconds)
