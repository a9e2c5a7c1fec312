"""The line and the arithmetic of the measurements over distance; nothing is measured here."""

import os
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from benchmarks import line
from benchmarks.clusters import BenchmarkError
from benchmarks.distance import consumed_until_now, is_within, percentile
from benchmarks.distance_settings import DEFAULTS, RECOMMENDED, setting
from benchmarks.mirror_throughput import Sample
from benchmarks.pace import is_long_enough, longest_pause, rate, settled
from ops.sizing.clients import Point, Throughput

HERE = Throughput((Point(1024, 1 / 40_000, 2e-5),), "made up")


def ip(source: bytes, target: bytes, payload: bytes = b"payload") -> bytes:
    """An IPv4 packet with the checksum of its header."""
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, 0, 64, 6, 0, source, target)
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload


def checksum(head: bytes) -> int:
    total = sum(struct.unpack(">10H", head[:20]))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def test_a_returned_packet_goes_to_its_sender_with_a_right_checksum() -> None:
    there, here = bytes([10, 213, 77, 1]), bytes([10, 213, 77, 2])
    assert line.returned(ip(there, here)) == ip(here, there)
    assert checksum(line.returned(ip(there, here))) == 0


@pytest.fixture
def carried() -> Iterator[tuple[socket.socket, int]]:
    """A device as a pair of sockets that keep packets apart, and the end where round trips are ordered."""
    own, device = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    orders, order = os.pipe()
    thread = threading.Thread(target=line.carry, args=(device.fileno(), orders), daemon=True)
    thread.start()
    own.settimeout(10)
    yield own, order
    os.close(order)
    thread.join(10)
    assert not thread.is_alive()
    os.close(orders)
    own.close()
    device.close()


def test_packets_come_back_in_order_half_a_round_trip_later_and_others_are_dropped(
    carried: tuple[socket.socket, int],
) -> None:
    own, order = carried
    near, far = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
    own.send(ip(near, far, b"0"))
    assert own.recv(100) == ip(far, near, b"0")
    os.write(order, b"200\n")
    time.sleep(0.05)
    began = time.monotonic()
    own.send(b"\x60 of version 6")
    for payload in (b"1", b"2"):
        own.send(ip(near, far, payload))
    assert [own.recv(100) for _ in range(2)] == [ip(far, near, payload) for payload in (b"1", b"2")]
    assert time.monotonic() >= began + 0.1


def test_where_packets_cannot_be_delayed_the_reason_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert line.tunnel_problem() == "not root"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(line, "DEVICE", line.DEVICE / "none")
    assert line.tunnel_problem() == f"no {line.DEVICE}"


def in_steps(begin: float, seconds: float) -> list[Sample]:
    """What a task copies by turns of 7 MiB in 11.2 s and of 1 MiB in 1.6 s, 640 records a second, watched meanwhile."""
    ends = [0.0]
    while ends[-1] < begin + seconds:
        ends += [ends[-1] + 11.2, ends[-1] + 12.8]
    found = []
    for tenth in range(int(seconds * 10)):
        done = sum(1 for end in ends[1:] if end <= begin + tenth / 10)
        found.append(Sample(tenth / 10, (done // 2) * 8192 + (done % 2) * 7168, 0))
    return found


def test_a_count_settles_2_s_after_its_first_record() -> None:
    samples = [Sample(0, 0, 0), Sample(1, 10, 0), Sample(2.9, 20, 0), Sample(3, 30, 0), Sample(4, 40, 0)]
    assert settled(samples) == samples[3:]
    assert settled(samples[:1]) == []


def test_a_count_is_watched_for_five_times_its_longest_pause_that_at_the_end_included() -> None:
    steady = [Sample(tenth / 10, tenth, 0) for tenth in range(82)]
    assert not is_long_enough(steady[:80])
    assert is_long_enough(steady)
    stands = [*steady, Sample(15, 81, 0)]
    assert longest_pause(stands) == pytest.approx(6.9)
    assert not is_long_enough(stands)
    assert not is_long_enough(in_steps(0, 55.9))
    assert is_long_enough(in_steps(0, 58))


@pytest.mark.parametrize("begin", range(13))
def test_where_a_measurement_begins_between_steps_hardly_moves_its_rate(begin: int) -> None:
    assert rate(in_steps(begin, 58)) == pytest.approx(640, rel=0.06)


def test_a_pause_at_the_end_counts_and_a_count_that_stands_has_no_rate() -> None:
    samples = [Sample(second, min(second, 5) * 100, 0) for second in range(11)]
    assert rate(samples[:6]) == pytest.approx(100)
    assert rate(samples) < 60
    with pytest.raises(BenchmarkError, match="must arrive while they are counted"):
        rate(samples[5:])


def test_the_consumer_tools_last_whole_line_counts() -> None:
    head = "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec\n"
    line = "2026-11-27 04:40:10:123, 0, 7.9980, 0.6250, 8190, 640.1024, 0, 12810, 0.6243, 639.3443"
    assert consumed_until_now("") == consumed_until_now(head) == consumed_until_now(head + line) == 0
    assert consumed_until_now(f"{head}{line}\n{line.replace('8190', '9000')}") == 8190


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert (percentile(values, 50), percentile(values, 99), percentile([7.0], 99)) == (50, 99, 7)


def test_the_expectation_holds_within_a_fifth_of_the_measurement() -> None:
    assert is_within(80, 100)
    assert is_within(120, 100)
    assert not is_within(79, 100)
    assert not is_within(121, 100)


def test_without_a_distance_both_settings_are_kafkas_and_fill_the_machine() -> None:
    for name in (DEFAULTS, RECOMMENDED):
        found = setting(name, 0, HERE)
        assert (found.tasks, found.overrides()) == (1, {})
        assert found.expected(0, HERE) == pytest.approx(40_000)


def test_over_a_distance_the_defaults_carry_a_window_each_round_trip_and_the_recommendation_carries_the_load() -> None:
    plain = setting(DEFAULTS, 100, HERE)
    assert (plain.tasks, plain.overrides()) == (1, {})
    assert plain.expected(100, HERE) == pytest.approx(704, rel=0.01)  # 70.4 KiB each 100 ms
    chosen = setting(RECOMMENDED, 100, HERE)
    assert chosen.consumer["receive.buffer.bytes"] == -1
    assert chosen.overrides()["consumer.receive.buffer.bytes"] == -1
    assert 40_000 * 2 / 3 <= chosen.expected(100, HERE) <= 40_000
