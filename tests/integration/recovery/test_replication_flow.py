"""What Kafka's own tests of MirrorMaker prove, on one mirror of the sandbox for all cases; see ../anchors.md."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from contract.verification_request import ClusterConfig
from kafka.checkpoints import CheckpointKey, checkpoints
from kafka.cluster import Cluster
from tests.support import records
from tests.support.producers import RaisingProducer
from tests.support.small_cluster import USER, Kit, mirror_spec
from tests.support.waiting import wait_until

NAME, NAMESPACE = "copy", "flow-tests"
STEADY, GROWN, EMPTY, PART, LATE, ALONE, WIDE = "steady", "grown", "empty", "part", "late", "alone", "wide"
MIRRORED = (STEADY, GROWN, EMPTY, PART)
CHECKPOINTS = "here.checkpoints.internal"
WITHIN_S, MANY_WITHIN_S = 60.0, 300.0
MANY = 3000
COPIED, EXCLUDED = "retention.ms", "unclean.leader.election.enable"


@pytest.fixture(scope="module")
def kit(sandbox: Any) -> Iterator[Kit]:
    kit = Kit(sandbox.state, namespace=NAMESPACE, cluster="flow")
    kit.create_cluster()
    partitions = dict.fromkeys((*MIRRORED, LATE, ALONE), 1) | {GROWN: 3, EMPTY: 3}
    new = [NewTopic(topic, number, 1) for topic, number in partitions.items()]
    answers(kit, lambda admin: admin.create_topics(new))
    kit.apply("KafkaMirrorMaker2", NAME, spec(kit))
    kit.ready("KafkaMirrorMaker2", NAME)
    yield kit
    kit.remove_cluster(("KafkaMirrorMaker2", NAME))


def spec(kit: Kit, *more: str, **source: Any) -> dict[str, Any]:
    """The mirror of the cluster to itself, of the topics of every case and `more`, with short intervals."""
    found = mirror_spec(kit, USER)
    mirror = found["mirrors"][0]
    mirror["topicsPattern"] = "|".join((*MIRRORED, *more))
    intervals = ("refresh.topics", "sync.topic.configs", "sync.topic.acls")
    mirror["sourceConnector"]["config"] |= {f"{name}.interval.seconds": 2 for name in intervals}
    mirror["sourceConnector"]["config"] |= {"sync.topic.acls.enabled": True, "offset.lag.max": 0, **source}
    mirror["checkpointConnector"]["config"] |= {
        "sync.group.offsets.enabled": True,
        **{f"{name}.interval.seconds": 1 for name in ("refresh.groups", "emit.checkpoints", "sync.group.offsets")},
    }
    found["target"]["config"]["offset.flush.interval.ms"] = 1000
    return found


def answers(kit: Kit, request: Callable[[AdminClient], dict[Any, Any]], within_s: float = 20) -> dict[Any, Any]:
    """What the brokers answered to a request, by what was asked for."""
    admin = AdminClient(kit.client_config())  # must outlive the answers
    return {key: future.result(within_s) for key, future in request(admin).items()}


def values(*numbers: int) -> list[str]:
    return [f"record {number}" for number in numbers]


def write(kit: Kit, topic: str, partition: int, numbers: range) -> None:
    producer = RaisingProducer(kit.client_config())
    for value in values(*numbers):
        producer.produce(topic, value=value, partition=partition)
    producer.deliver()


def copied(kit: Kit, topic: str, wanted: list[str]) -> None:
    """Wait until the remote topic has exactly these records, whatever their partitions."""

    def same() -> bool:
        return sorted(records.read(kit.client_config(), f"here.{topic}")) == sorted(wanted)

    wait_until(f"{len(wanted)} records in here.{topic}", same, WITHIN_S)


def commit(kit: Kit, group: str, offsets: dict[tuple[str, int], int]) -> None:
    consumer = Consumer(kit.client_config() | {"group.id": group})
    try:
        records.commit(consumer, [TopicPartition(*partition, offset) for partition, offset in offsets.items()])
    finally:
        consumer.close()


def committed(kit: Kit, group: str, topic: str, partition: int) -> int:
    """The group's offset in the remote topic, negative if it has none."""
    consumer = Consumer(kit.client_config() | {"group.id": group})
    try:
        (found,) = records.committed_by(consumer, [TopicPartition(f"here.{topic}", partition)])
        return int(found.offset)
    finally:
        consumer.close()


def reached(kit: Kit, group: str, topic: str, partition: int, offset: int) -> None:
    """Wait until the group has this offset in the remote topic."""
    what = f"offset {offset} of {group} in here.{topic}-{partition}"
    wait_until(what, lambda: committed(kit, group, topic, partition) == offset, WITHIN_S)


def emitted(kit: Kit) -> dict[CheckpointKey, list[int]]:
    """The target offsets of all checkpoints so far, in the order in which they were written."""
    cluster = Cluster(ClusterConfig(role="target", alias="there", client_config=kit.client_config()))
    cluster.connect()
    reader = cluster.topic_reader(CHECKPOINTS)
    try:
        found = checkpoints(reader.with_timestamps())
        return {key: [one.downstream for one in history.newest] for key, history in found.items()}
    finally:
        reader.close()


def test_added_partitions_are_added_to_the_remote_topic_and_copied(kit: Kit) -> None:
    write(kit, GROWN, 0, range(3))
    copied(kit, GROWN, values(*range(3)))
    answers(kit, lambda admin: admin.create_partitions([NewPartitions(GROWN, 8)]))
    remote = f"here.{GROWN}"

    def partitions() -> int:
        return len(AdminClient(kit.client_config()).list_topics(remote, timeout=10).topics[remote].partitions)

    wait_until("the remote topic has 8 partitions", lambda: partitions() == 8, WITHIN_S)
    for partition in range(8):
        write(kit, GROWN, partition, range(10 * partition, 10 * partition + 2))
    wanted = [number for partition in range(8) for number in (10 * partition, 10 * partition + 1)]
    copied(kit, GROWN, values(*range(3), *wanted))


def test_a_group_skips_nothing_of_a_partition_that_was_empty(kit: Kit) -> None:
    for partition in (0, 1):
        write(kit, EMPTY, partition, range(5))
    copied(kit, EMPTY, values(*range(5), *range(5)))
    commit(kit, "empty-group", {(EMPTY, 0): 5, (EMPTY, 1): 5, (EMPTY, 2): 0})
    for partition in (0, 1):
        reached(kit, "empty-group", EMPTY, partition, 5)
    assert committed(kit, "empty-group", EMPTY, 2) <= 0
    write(kit, EMPTY, 2, range(100, 103))
    copied(kit, EMPTY, values(*range(5), *range(5), *range(100, 103)))
    assert committed(kit, "empty-group", EMPTY, 2) <= 0, "what the group has not read is not skipped"


def test_a_group_has_no_checkpoint_for_what_is_not_mirrored(kit: Kit) -> None:
    """Neither a topic that the mirror leaves out, nor one of which no record was copied."""
    write(kit, ALONE, 0, range(5))
    write(kit, STEADY, 0, range(5))
    copied(kit, STEADY, values(*range(5)))
    commit(kit, "some-group", {(STEADY, 0): 5, (ALONE, 0): 5, (PART, 0): 0})
    reached(kit, "some-group", STEADY, 0, 5)
    assert {topic for group, topic, _ in emitted(kit) if group == "some-group"} == {f"here.{STEADY}"}
    assert f"here.{ALONE}" not in records.topics(kit.client_config())


def test_a_group_behind_the_flow_is_translated_and_a_rewind_is_followed_by_a_checkpoint(kit: Kit) -> None:
    key = ("slow-group", f"here.{PART}", 0)
    for batch in range(10):
        write(kit, PART, 0, range(batch * 50, batch * 50 + 50))
    copied(kit, PART, values(*range(500)))

    def translated(upstream: int, previous: int) -> int:
        commit(kit, key[0], {(PART, 0): upstream})
        wait_until(
            f"a checkpoint of {upstream}",
            lambda: (found := emitted(kit).get(key)) is not None and found[-1] != previous,
            WITHIN_S,
        )
        return emitted(kit)[key][-1]

    ahead = translated(450, -1)
    assert 0 < ahead <= 450, "a group is never put past what it has read"
    behind = translated(50, ahead)
    assert behind <= 50, "a group that rewinds is not kept ahead"


def test_checkpoints_only_grow_over_a_restart_of_the_worker(kit: Kit) -> None:
    key = ("restarted-group", f"here.{STEADY}", 0)
    start = len(records.read(kit.client_config(), STEADY))
    write(kit, STEADY, 0, range(start, start + 20))
    copied(kit, STEADY, values(*range(start + 20)))
    commit(kit, key[0], {(STEADY, 0): start + 20})
    reached(kit, key[0], STEADY, 0, start + 20)
    before = kit.pid(kit.worker(NAME))
    kit.processes.kill(kit.worker(NAME))
    wait_until("another worker", lambda: kit.pid(kit.worker(NAME)) not in (None, before), WITHIN_S)
    kit.ready("KafkaMirrorMaker2", NAME)
    write(kit, STEADY, 0, range(start + 20, start + 30))

    def all_there() -> bool:
        return set(records.read(kit.client_config(), f"here.{STEADY}")) == set(values(*range(start + 30)))

    wait_until("the records after the restart", all_there, WITHIN_S)
    ends = len(records.read(kit.client_config(), f"here.{STEADY}"))
    commit(kit, key[0], {(STEADY, 0): start + 30})
    reached(kit, key[0], STEADY, 0, ends)
    found = emitted(kit)[key]
    assert len(found) > 1
    assert found == sorted(found)
    assert found[-1] == ends


def test_a_mirror_scaled_to_zero_stops_and_goes_on_without_a_gap_or_a_repetition(kit: Kit) -> None:
    before = records.read(kit.client_config(), f"here.{STEADY}")
    kit.change("KafkaMirrorMaker2", NAME, {"spec": {"replicas": 0}})
    found = kit.ready("KafkaMirrorMaker2", NAME)["status"]
    assert (found["replicas"], found["connectors"]) == (0, [])
    assert kit.worker(NAME) not in kit.processes.names()
    start = len(records.read(kit.client_config(), STEADY))
    write(kit, STEADY, 0, range(start, start + 10))
    assert records.read(kit.client_config(), f"here.{STEADY}") == before
    kit.change("KafkaMirrorMaker2", NAME, {"spec": {"replicas": 1}})
    kit.ready("KafkaMirrorMaker2", NAME)
    wanted = [*before, *values(*range(start, start + 10))]
    copied(kit, STEADY, wanted)
    assert records.read(kit.client_config(), f"here.{STEADY}") == wanted


def configured(kit: Kit, topic: str, name: str = COPIED) -> tuple[str, bool]:
    """The topic's value of a property, and whether the topic itself sets it."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    entry = answers(kit, lambda admin: admin.describe_configs([resource]))[resource][name]
    return entry.value, ConfigSource(entry.source) == ConfigSource.DYNAMIC_TOPIC_CONFIG


def configure(kit: Kit, topic: str, values: dict[str, str | None]) -> None:
    """Set properties of a topic, or take them away."""
    kinds = {
        name: AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET for name, value in values.items()
    }
    entries = [ConfigEntry(name, values[name] or "", incremental_operation=kind) for name, kind in kinds.items()]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    answers(kit, lambda admin: admin.incremental_alter_configs([resource]))


def test_a_property_is_copied_unless_excluded_and_is_the_targets_default_once_the_source_sets_none(kit: Kit) -> None:
    remote = f"here.{STEADY}"
    wait_until("the remote topic exists", lambda: remote in records.topics(kit.client_config()), WITHIN_S)
    default, _ = configured(kit, remote)
    configure(kit, STEADY, {COPIED: "7200000", EXCLUDED: "true"})
    wait_until("the property is copied", lambda: configured(kit, remote) == ("7200000", True), WITHIN_S)
    assert configured(kit, remote, EXCLUDED) == ("false", False)
    configure(kit, STEADY, {COPIED: None})
    wait_until("the property is the default", lambda: configured(kit, remote) == (default, False), WITHIN_S)


def test_with_the_defaults_of_the_source_the_remote_topic_sets_them(kit: Kit) -> None:
    default, own = configured(kit, f"here.{STEADY}")
    assert not own
    kit.apply("KafkaMirrorMaker2", NAME, spec(kit, **{"use.defaults.from": "source"}))
    wait_until("the remote topic sets it", lambda: configured(kit, f"here.{STEADY}") == (default, True), WITHIN_S)
    kit.apply("KafkaMirrorMaker2", NAME, spec(kit, **{"use.defaults.from": "target"}))
    wait_until("it is the default again", lambda: configured(kit, f"here.{STEADY}") == (default, False), WITHIN_S)


def test_rights_to_read_are_copied_and_rights_to_write_are_not(kit: Kit) -> None:
    def binding(user: str, operation: AclOperation) -> AclBinding:
        pattern = (ResourceType.TOPIC, STEADY, ResourcePatternType.LITERAL, f"User:{user}", "*", operation)
        return AclBinding(*pattern, AclPermissionType.ALLOW)

    asked = [
        binding("somebody", AclOperation.DESCRIBE),
        binding("anybody", AclOperation.ALL),
        binding("writer", AclOperation.WRITE),
    ]
    answers(kit, lambda admin: admin.create_acls(asked))
    anybody: Any = (None, None, AclOperation.ANY, AclPermissionType.ANY)  # the stub knows text only
    every = AclBindingFilter(ResourceType.TOPIC, f"here.{STEADY}", ResourcePatternType.LITERAL, *anybody)

    def rights() -> set[tuple[str, AclOperation]]:
        found = answers(kit, lambda admin: {every: admin.describe_acls(every)})[every]
        return {(one.principal, one.operation) for one in found}

    wanted = {("User:somebody", AclOperation.DESCRIBE), ("User:anybody", AclOperation.READ)}
    wait_until("the rights of both readers", lambda: rights() == wanted, WITHIN_S)


def test_a_mirror_from_the_latest_offset_copies_only_what_is_written_after_it_began(kit: Kit) -> None:
    write(kit, LATE, 0, range(5))
    kit.apply("KafkaMirrorMaker2", NAME, spec(kit, LATE, **{"consumer.auto.offset.reset": "latest"}))
    kit.ready("KafkaMirrorMaker2", NAME)
    written = 5

    def arrived() -> list[str]:
        nonlocal written
        write(kit, LATE, 0, range(written, written + 1))
        written += 1
        return records.read(kit.client_config(), f"here.{LATE}")

    first = wait_until("a record that was written later", arrived, WITHIN_S)[0]
    begun = int(first.removeprefix("record "))
    assert begun >= 5
    copied(kit, LATE, values(*range(begun, written)))


@pytest.mark.nightly
def test_a_topic_of_three_thousand_partitions_is_copied_and_a_group_goes_on_in_each(kit: Kit) -> None:
    new = NewTopic(WIDE, MANY, 1)
    answers(kit, lambda admin: admin.create_topics([new], request_timeout=MANY_WITHIN_S), MANY_WITHIN_S)
    producer = RaisingProducer(kit.client_config())
    for number, value in enumerate(values(*range(MANY))):
        producer.produce(WIDE, value=value, partition=number)
    producer.deliver(MANY_WITHIN_S)
    kit.apply("KafkaMirrorMaker2", NAME, spec(kit, WIDE))
    kit.ready("KafkaMirrorMaker2", NAME)
    group = Consumer(kit.client_config() | {"group.id": "wide-group", "enable.auto.commit": False})
    try:
        remote = [TopicPartition(f"here.{WIDE}", number, 0) for number in range(MANY)]
        wait_until("the remote topic exists", lambda: remote[0].topic in records.topics(kit.client_config()), WITHIN_S)
        group.assign(remote)
        found = dict[int, str]()

        def all_there() -> bool:
            for message in group.consume(MANY, timeout=1):
                assert message.error() is None, message.error()
                found[message.partition()] = message.value().decode()
            return len(found) == MANY

        wait_until("a record in each partition", all_there, MANY_WITHIN_S)
        assert found == dict(enumerate(values(*range(MANY))))
        records.commit(group, [TopicPartition(WIDE, number, 1) for number in range(MANY)])
        wait_until(
            "the group's offset in each partition",
            lambda: {one.offset for one in records.committed_by(group, remote)} == {1},
            MANY_WITHIN_S,
        )
    finally:
        group.close()
