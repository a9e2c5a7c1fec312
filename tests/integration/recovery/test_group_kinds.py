"""Groups that are unlike others, on real brokers: in transactions, with static members, of the new protocol, sharing.

One cluster is both sides here: no mirror runs. What a mirror does with groups is tested with the pair.
"""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ClientTopicPartition

from contract.verification_request import ClusterConfig, Mirror
from kafka import group_commits
from kafka.cluster import Cluster
from kafka.errors import ClusterError
from kafka.group_commits import CommittedOffset
from kafka.topic_partition import TopicPartition
from ops.doctor import cluster_probes
from ops.errors import OpsError
from ops.recovery import group_offsets
from sandbox.toolchain import Tools
from tests.support import guarded_brokers as guarded
from tests.support.guarded_brokers import Guarded
from tests.support.waiting import wait_until

ITEMS = TopicPartition("items", 0)
MEMBERS_S = 30


@pytest.fixture(scope="module")
def brokers(tools: Tools) -> Iterator[Guarded]:
    with guarded.running(tools) as made:
        made.topic("items", [[1], [2]], records=50)
        made.topic("bills", [[1]])
        yield made


@pytest.fixture(scope="module")
def cluster(brokers: Guarded) -> Cluster:
    made = Cluster(ClusterConfig(role="source", alias="src", client_config=client(brokers)))
    made.connect()
    return made


def client(brokers: Guarded, **config: Any) -> dict[str, Any]:
    return {"bootstrap.servers": brokers.bootstrap("OPEN"), "log_level": 0, **config}


@contextmanager
def member(brokers: Guarded, group: str, **config: Any) -> Iterator[Consumer]:
    """A member of a group that has its partitions, and commits only if it is asked to."""
    settings = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest", **config}
    consumer = Consumer(client(brokers, **settings))
    consumer.subscribe(["items"])
    try:
        wait_until(
            f"{group} has partitions", lambda: consumer.poll(0.2) is not None and consumer.assignment(), MEMBERS_S
        )
        yield consumer
    finally:
        consumer.close()


def commit(consumer: Consumer, offset: int, metadata: str = "") -> None:
    at = ClientTopicPartition(*ITEMS, offset, metadata=metadata)
    assert not [one.error for one in consumer.commit(offsets=[at], asynchronous=False) or [] if one.error]


@contextmanager
def pending(brokers: Guarded, group: str, offset: int) -> Iterator[Producer]:
    """A transaction that has an offset of a group in it, and has not ended yet."""
    with member(brokers, group) as consumer:
        commit(consumer, 5, "time-4711")
        producer = Producer(client(brokers, **{"transactional.id": group}))
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("bills", b"bill")
        at = ClientTopicPartition(*ITEMS, offset, metadata="time-4712")
        producer.send_offsets_to_transaction([at], consumer.consumer_group_metadata(), 20)
        yield producer


def test_offsets_in_a_transaction_are_waited_for_and_not_read_as_they_were(brokers: Guarded, cluster: Cluster) -> None:
    with pending(brokers, "soon", 30) as producer:
        end = threading.Timer(1.0, producer.commit_transaction)
        end.start()
        found = group_commits.read(cluster, ["soon"])
        end.join()
    assert found == {"soon": {ITEMS: CommittedOffset(30, "time-4712")}}, "25 records would be read again"


def test_a_transaction_that_stays_open_is_named_with_its_group(
    brokers: Guarded, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commits, "STABLE_WITHIN_S", 0.5)
    with pending(brokers, "never", 30) as producer:
        with pytest.raises(ClusterError, match=r"offsets of group never: a transaction .* has not ended within 0.5 s"):
            cluster.group_offsets(["never"])
        followed = dict(group_commits.answers(cluster, ["never"], None, stable=False))
        assert {tp: at.offset for tp, at in followed["never"]} == {ITEMS: 5}, "who reads each second waits for nothing"
        producer.abort_transaction(20)
    assert cluster.group_offsets(["never"]) == {"never": {ITEMS: 5}}


def test_metadata_goes_forward_with_a_group_and_not_back(brokers: Guarded, cluster: Cluster) -> None:
    with member(brokers, "streams") as consumer:
        commit(consumer, 10, "time-4711")
    for offset, metadata in ((20, "time-4711"), (15, "")):
        assert list(group_offsets.commit_each(cluster, [("streams", {ITEMS: offset})]))
        assert group_commits.read(cluster, ["streams"]) == {"streams": {ITEMS: CommittedOffset(offset, metadata)}}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("instance", [None, "static"])
def test_a_group_of_each_protocol_with_members_of_each_kind_is_set_once_they_are_gone(
    brokers: Guarded, cluster: Cluster, protocol: str, instance: str | None
) -> None:
    group = f"{protocol}-{instance}"
    config: dict[str, Any] = {"group.protocol": protocol, **({"group.instance.id": instance} if instance else {})}
    if protocol == "classic":
        config["session.timeout.ms"] = 6_000  # after which a broker gives up a static member that has left
    said: list[str] = []
    with member(brokers, group, **config) as consumer:
        commit(consumer, 7)
        assert group_offsets.members(cluster, {group: {}}) == [group]
        with pytest.raises(OpsError, match=f"got members in {group}"):
            group_offsets.require_inactive(cluster, {group: {}})
    if instance and protocol == "consumer":
        # A static member of the new protocol leaves for a while, and stays a member until its session ends (45 s).
        assert group_offsets.members(cluster, {group: {}}) == [group], "its state is one that the client does not know"
        return
    group_offsets.wait_until_inactive(cluster, {group: {}}, said.append)
    assert list(group_offsets.commit_each(cluster, [(group, {ITEMS: 9})])) == [(group, {ITEMS: 9})]
    assert cluster.group_offsets([group]) == {group: {ITEMS: 9}}
    with member(brokers, group, **config) as consumer:
        began = time.monotonic()
        while time.monotonic() - began < MEMBERS_S:
            record = consumer.poll(0.5)
            if record is not None and record.error() is None and record.partition() == 0:
                assert record.offset() in (9, 10), "the first may have been read when the member got its partitions"
                break
        else:
            pytest.fail("no record came")


def test_a_share_group_is_seen_though_it_has_no_offsets_to_carry_over(brokers: Guarded, cluster: Cluster) -> None:
    share = ["org.apache.kafka.tools.consumer.ConsoleShareConsumer", "--bootstrap-server", brokers.bootstrap("OPEN")]
    words = [*share, "--topic", "items", "--group", "sharers"]
    readings: Any = SimpleNamespace(cluster=cluster, group_states=cluster.group_states)
    mirror = Mirror(name="mm2", source_alias="src", target_alias="tgt", topics=(".*",), groups=(".*",))
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(brokers._java(*words), **quiet) as consumer_of_shares:
        try:
            wait_until("it is a group", lambda: cluster_probes.other_groups(readings, mirror) == ("sharers",), 120)
        finally:
            consumer_of_shares.terminate()
    with member(brokers, "plain") as consumer:
        commit(consumer, 1)
    assert "sharers" not in cluster.group_states()
    assert cluster_probes.other_groups(readings, mirror) == ("sharers",)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_has_committed_nothing_yet_has_its_whole_name(
    brokers: Guarded, cluster: Cluster, protocol: str
) -> None:
    name = f"no-commits-{protocol}"
    with member(brokers, name, **{"group.protocol": protocol}):
        assert cluster.group_states()[name] != "DEAD"
        assert group_commits.cut_names(cluster, [name]) == {}
    assert group_commits.cut_names(cluster, [name, "is-no-group"]) == {}
