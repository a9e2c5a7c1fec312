"""The line and the arithmetic of the measurements over distance; nothing is measured here."""

import math
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from benchmarks import line
from benchmarks.clusters import BenchmarkError
from benchmarks.distance import DEFAULTS, RECOMMENDED, is_within, percentile, rate, setting
from benchmarks.mirror_throughput import Sample
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


def test_a_rate_counts_from_when_the_mirror_has_settled_and_leaves_no_pause_out() -> None:
    samples = [Sample(0, 0, 0), Sample(1, 500, 0), Sample(3, 700, 0), Sample(5, 900, 0), Sample(9, 900, 0)]
    assert rate(samples[:4], settled_at=3) == 100
    assert rate(samples, settled_at=3) == pytest.approx(200 / 6)
    with pytest.raises(BenchmarkError, match="must arrive while it is measured"):
        rate(samples, settled_at=5)


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
        assert (found.tasks, found.overrides(), found.fetch) == (1, {}, math.inf)
        assert found.expected == pytest.approx(40_000)


def test_over_a_distance_the_defaults_carry_a_window_each_round_trip_and_the_recommendation_carries_the_load() -> None:
    plain = setting(DEFAULTS, 100, HERE)
    assert (plain.tasks, plain.overrides()) == (1, {})
    assert plain.expected == pytest.approx(plain.fetch) == pytest.approx(640)  # 64 KiB each 100 ms
    chosen = setting(RECOMMENDED, 100, HERE)
    assert chosen.consumer["receive.buffer.bytes"] == -1
    assert chosen.overrides()["consumer.receive.buffer.bytes"] == -1
    assert chosen.expected == pytest.approx(40_000)
