"""The network between sites in front of a small cluster: what a client sees of it, and a mirror that it cuts off."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from sandbox import network
from sandbox.network import Conditions
from sandbox.state import PROJECT, read_json
from tests.support.producers import RaisingProducer
from tests.support.running_sandbox import Sandbox
from tests.support.small_cluster import USER, Kit, Object, kafka_spec, mirror_spec
from tests.support.waiting import at_most, wait_until

MIRROR, TOPIC = "far", "mirrored"
LATENCY_MS, ASKED = 300, 5
EXPOSED: Object = {
    "name": "external",
    "port": 9094,
    "type": "loadbalancer",
    "tls": True,
    "authentication": {"type": "scram-sha-512"},
}


@pytest.fixture(scope="module")
def kit(sandbox: Sandbox) -> Iterator[Kit]:
    """A cluster with a listener for other sites, by which its mirror reads it."""
    kit = Kit(sandbox.state, namespace="network-tests")
    kit.create_cluster([*kafka_spec()["listeners"], EXPOSED])
    kit.apply("KafkaTopic", TOPIC, {"partitions": 1, "replicas": 1})
    kit.ready("KafkaTopic", TOPIC)
    yield kit
    kit.remove_cluster(("KafkaMirrorMaker2", MIRROR), ("KafkaTopic", TOPIC))
    found = network.document(sandbox.state)
    assert found is not None
    assert not [name for name in found["proxies"] if name.startswith(kit.namespace)]


def set_network(kit: Kit, conditions: Conditions) -> None:
    network.change(kit.state, conditions, None, print)


def from_afar(kit: Kit) -> Object:
    """Properties of a client at another site."""
    return kit.client_config() | {"bootstrap.servers": kit.listener("external")["bootstrapServers"]}


def round_trip_s(kit: Kit) -> float:
    """The shortest of some requests over a connection that is there: the machine's load only adds to a round trip."""
    admin = AdminClient(from_afar(kit) | {"socket.timeout.ms": 20_000})
    admin.list_topics(timeout=60)
    seconds = []
    for _ in range(ASKED):
        began = time.monotonic()
        admin.list_topics(TOPIC, timeout=60)
        seconds.append(time.monotonic() - began)
    return min(seconds)


def copied(kit: Kit) -> int:
    """Records in the remote topic, read at its own site."""
    reader = Consumer(kit.client_config() | {"group.id": "count"})
    try:
        return int(reader.get_watermark_offsets(TopicPartition(f"here.{TOPIC}", 0), timeout=5)[1])
    except KafkaException:
        return 0
    finally:
        reader.close()


def produce(kit: Kit) -> None:
    producer = RaisingProducer(kit.client_config())
    producer.produce(TOPIC, value="v")
    producer.deliver()


def test_a_running_cluster_moves_behind_a_network_and_keeps_its_address(kit: Kit) -> None:
    address, before = kit.listener("external")["bootstrapServers"], kit.pid(kit.broker())
    wait_until("a client from afar is admitted", lambda: kit.admits(from_afar(kit)))
    command = [sys.executable, "-m", "sandbox", "network", "--latency", "0ms"]
    environment = {**os.environ, "RT_INVENTORY_SANDBOX": str(kit.state.path)}
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=at_most(240), check=False
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "network: healthy")
    assert kit.listener("external")["bootstrapServers"] == address
    assert kit.pid(kit.broker()) != before
    (node,) = read_json(kit.folder() / "layout.json")["nodes"]
    (proxy,) = (network.document(kit.state) or {})["proxies"].values()
    assert proxy["listen"] == address
    assert proxy["upstream"] == f"127.0.0.1:{node['ports']['external-9094' + network.BEHIND]}"
    wait_until("a client from afar is admitted", lambda: kit.admits(from_afar(kit)))


def test_a_client_sees_the_latency_once_and_no_more_of_it_after_the_network_healed(kit: Kit) -> None:
    near = round_trip_s(kit)
    set_network(kit, Conditions(latency_ms=LATENCY_MS))
    far = round_trip_s(kit)
    set_network(kit, Conditions())
    again = round_trip_s(kit)
    assert far > 4 * near
    assert far > 4 * again
    assert LATENCY_MS / 1000 <= far < 1.8 * LATENCY_MS / 1000  # once a round trip, not once in each direction


def test_a_cut_stops_the_mirror_and_healing_brings_it_back(kit: Kit) -> None:
    spec = mirror_spec(kit, USER)
    spec["mirrors"][0]["source"]["bootstrapServers"] = kit.listener("external")["bootstrapServers"]
    kit.apply("KafkaMirrorMaker2", MIRROR, spec)
    kit.ready("KafkaMirrorMaker2", MIRROR)
    produce(kit)
    wait_until("the mirror copies", lambda: copied(kit) == 1, 90)
    set_network(kit, Conditions(cut=True))
    produce(kit)
    assert not kit.admits(from_afar(kit))  # waits 4 s, in which the mirror would have copied
    assert copied(kit) == 1
    set_network(kit, Conditions())
    wait_until("the mirror copies again", lambda: copied(kit) == 2, 90)


def test_a_network_that_dies_comes_back_as_it_was(kit: Kit) -> None:
    set_network(kit, Conditions(latency_ms=20))
    kit.processes.kill(network.PROCESS)
    healthy = "latency 20 ms (proxies: 1)"
    wait_until("the proxies are back", lambda: network.described(kit.state) == healthy, 60)
    set_network(kit, Conditions())
