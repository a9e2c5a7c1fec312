"""Checks of replication, configuration, ACLs, internal topics and connectors, without Kafka and Kubernetes."""

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from contract.verification_request import ClusterConfig, InternalTopic, Mirror, Resource, TopicConfigs
from kafka.connector_status import ConnectorState, ResourceStatus, from_status, resource_status
from kafka.errors import Answers, Refusals
from kafka.mirror_metadata import InternalState, Metadata, TopicAcl, TopicAcls, topic_acls
from kafka.topic_metadata import Origin, PartitionState, Setting, TopicState
from kafka.topic_writers import read_rights
from spark.checks import replication, topics
from spark.checks.registry import NOTHING, Check, not_judged

MIRROR = Mirror(
    name="mm2",
    source_alias="es-src",
    target_alias="es-tgt",
    topics=("items",),
    naming="prefixed",
    replication_factor=3,
    sync_topic_acls=True,
)
COPY = "es-src.items"
SOURCE, CHECKPOINT = "a->b.MirrorSourceConnector", "a->b.MirrorCheckpointConnector"
RESOURCE = Resource(api_version="kafka.strimzi.io/v1", kind="KafkaMirrorMaker2", namespace="home", name="mm2")


def states(*parts: PartitionState) -> Answers[TopicState]:
    return Answers(found={COPY: TopicState(COPY, dict(enumerate(parts)))})


def test_a_factor_that_all_replicas_in_sync_hold_passes() -> None:
    assert topics.replication_factor(MIRROR, states(PartitionState(3, 3), PartitionState(4, 4))).ok is True


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (PartitionState(2, 2), "has 2 replicas of 3"),
        (PartitionState(3, 2), "is under-replicated: 2 of 3 replicas in sync"),
        (PartitionState(3, 1, online=False), "is offline: no leader"),
    ],
)
def test_a_partition_that_one_failure_could_take_is_named(part: PartitionState, said: str) -> None:
    check = topics.replication_factor(MIRROR, states(PartitionState(3, 3), part))
    assert (check.ok, check.observed) == (False, f"{COPY}-1 {said}")
    assert check.evidence[0]["in_sync"] == part.in_sync


def test_topics_that_may_not_be_described_are_unknown() -> None:
    refused: Answers[TopicState] = Answers(refused={COPY: "user u may not describe it"})
    check = topics.replication_factor(MIRROR, refused)
    assert (check.ok, check.observed) == (None, "user u may not describe it")
    assert topics.replication_factor(MIRROR, Answers()).observed == NOTHING


def configured(source: Setting, target: Setting | None, name: str = "retention.ms", **rules: Any) -> Check:
    mirror = Mirror(**{**vars(MIRROR), "topic_configs": TopicConfigs(**rules)})
    found = Metadata()
    found.source_configs.found["items"] = {name: source}
    found.target_configs.found[COPY] = {name: target} if target is not None else {}
    return topics.topic_config(mirror, found)


OWN: Origin = "topic"
DEFAULT: Origin = "default"
DYNAMIC: Origin = "broker"
FILE: Origin = "broker file"


@pytest.mark.parametrize("origin", [OWN, DYNAMIC])
def test_what_is_set_at_the_source_must_be_on_the_copy(origin: Origin) -> None:
    check = configured(Setting("1000", origin), Setting("604800000", DEFAULT))
    assert check.ok is False
    assert check.observed == f"{COPY}: retention.ms is 604800000 on the target, 1000 at the source"
    assert check.evidence[0]["source_set_by"] == origin
    assert configured(Setting("1000", origin), Setting("1000", DYNAMIC)).ok is True


def test_a_property_that_only_the_copy_sets_is_a_difference() -> None:
    source = Setting("604800000", DEFAULT)
    assert configured(source, Setting("5", OWN)).ok is False
    assert configured(source, Setting("604800000", OWN)).ok is True


def test_defaults_may_differ_unless_the_source_defaults_are_used() -> None:
    pair = Setting("1", DEFAULT), Setting("2", DEFAULT)
    assert configured(*pair).ok is True
    assert configured(*pair, use_defaults_from="source").ok is False


@pytest.mark.parametrize(
    ("name", "source", "rules"),
    [
        ("min.insync.replicas", Setting("2", OWN), {}),
        ("retention.ms", Setting("1", OWN), {"exclude": (r"retention\..*",)}),
        ("retention.ms", Setting("1", FILE), {}),
        ("retention.ms", Setting("1", OWN, read_only=True), {}),
        ("retention.ms", Setting(None, OWN, hidden=True), {}),
    ],
)
def test_what_mirror_maker_leaves_alone_is_not_judged(name: str, source: Setting, rules: dict[str, Any]) -> None:
    assert configured(source, Setting("9", OWN), name, **rules).ok is True


def test_own_exclusions_replace_those_of_mirror_maker() -> None:
    source, target = Setting("2", OWN), Setting("1", DEFAULT)
    assert configured(source, target, "min.insync.replicas", exclude=("segment.bytes",)).ok is False


def test_a_hidden_value_on_the_copy_is_not_shown() -> None:
    check = configured(Setting("1", OWN), Setting(None, OWN, hidden=True))
    assert "hidden on the target" in check.observed
    assert check.evidence[0]["target"] is None


def test_a_property_that_the_target_does_not_know_is_reported() -> None:
    assert "not known on the target" in configured(Setting("1", OWN), None).observed
    assert configured(Setting("1", DEFAULT), None).ok is True


def test_configuration_that_may_not_be_read_is_unknown() -> None:
    found = Metadata()
    found.source_configs.refused["items"] = "grant it DESCRIBE_CONFIGS on topic items"
    check = topics.topic_config(MIRROR, found)
    assert (check.ok, check.observed) == (None, "grant it DESCRIBE_CONFIGS on topic items")


def test_checks_that_are_left_out_are_reported_with_the_reason() -> None:
    assert [one["name"] for one in not_judged(MIRROR)] == ["internal_topics", "canary_latency", "standby_read_only"]
    for rules in (TopicConfigs(sync=False), TopicConfigs(filter_class="com.example.Filter")):
        left = not_judged(Mirror(**{**vars(MIRROR), "topic_configs": rules, "sync_topic_acls": False}))
        names = ["topic_config", "internal_topics", "acls_synced", "canary_latency", "standby_read_only"]
        assert [one["name"] for one in left] == names


def internal(replicas: int = 3, in_sync: int = 3, policy: str = "compact", factor: int | None = 3) -> InternalState:
    topic = InternalTopic(name="mm2-offsets", replication_factor=factor)
    state = TopicState(topic.name, {0: PartitionState(replicas, in_sync)})
    return InternalState(topic=topic, state=state, cleanup_policy=policy)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (internal(replicas=1, in_sync=1), "partition 0 has 1 replicas of 3"),
        (internal(in_sync=2), "partition 0 is under-replicated: 2 of 3 replicas in sync"),
        (internal(policy="delete"), "has cleanup.policy delete, not compact"),
        (internal(policy="compact,delete"), "has cleanup.policy compact,delete, not compact"),
        (InternalState(topic=InternalTopic(name="mm2-offsets")), "does not exist"),
    ],
)
def test_an_internal_topic_that_could_lose_the_mirrors_memory_is_named(state: InternalState, said: str) -> None:
    check = topics.internal_topics([internal(), state])
    assert (check.ok, check.observed) == (False, f"mm2-offsets on the target {said}")


def test_internal_topics_that_hold_pass_and_an_optional_one_may_be_absent_or_out_of_sight() -> None:
    optional = InternalTopic(name="heartbeats", required=False)
    absent, unseen = InternalState(topic=optional), InternalState(topic=optional, refused="may not")
    assert topics.internal_topics([internal(), internal(1, 1, factor=None), absent, unseen]).ok is True
    assert topics.internal_topics([absent]).ok is None


def test_an_internal_topic_out_of_sight_is_unknown() -> None:
    unseen = InternalState(topic=InternalTopic(name="mm2-configs"), refused="user u may not describe it")
    check = topics.internal_topics([internal(), unseen])
    assert (check.ok, check.observed) == (None, "user u may not describe it")


def acl(topic: str = "items", operation: str = "READ", permission: str = "ALLOW") -> TopicAcl:
    return TopicAcl(topic, "User:app", operation, permission, "*")


def synced(source: list[TopicAcl], target: list[TopicAcl]) -> Check:
    sides = TopicAcls(acls=frozenset(source)), TopicAcls(acls=frozenset(target))
    return topics.acls_synced(MIRROR, Metadata(source_acls=sides[0], target_acls=sides[1]))


def test_a_missing_acl_is_named() -> None:
    check = synced([acl()], [])
    assert (check.ok, check.observed) == (False, f"missing: ALLOW READ on topic {COPY} for User:app from *")
    assert synced([acl()], [acl(COPY)]).ok is True


def test_all_becomes_read_and_the_right_to_write_is_not_copied() -> None:
    assert synced([acl(operation="ALL"), acl(operation="WRITE")], [acl(COPY)]).ok is True
    assert synced([acl(operation="ALL")], [acl(COPY, "DESCRIBE")]).ok is False


@pytest.mark.parametrize("operation", ["ALL", "WRITE"])
def test_denials_are_copied_as_they_are(operation: str) -> None:
    denial = acl(operation=operation, permission="DENY")
    assert synced([denial], [acl(COPY)]).ok is False
    assert synced([denial], [acl(COPY, operation, "DENY")]).ok is True


def test_acls_of_other_topics_are_not_copied_and_without_any_nothing_is_compared() -> None:
    check = synced([acl("other"), acl(operation="WRITE")], [])
    assert check.ok is None
    assert NOTHING in check.observed


def test_acls_that_may_not_be_described_are_unknown() -> None:
    found = Metadata(source_acls=TopicAcls(acls=frozenset([acl()])), target_acls=TopicAcls(refused="grant DESCRIBE"))
    check = topics.acls_synced(MIRROR, found)
    assert (check.ok, check.observed) == (None, "grant DESCRIBE")


class Admin:
    """A cluster's client that allows these operations, and takes a refusal for an empty answer as librdkafka does."""

    def __init__(self, *operations: AclOperation) -> None:
        self.operations = list(operations)

    def describe_cluster(self, **options: Any) -> "Future[Any]":
        assert options["include_authorized_operations"]
        return done(SimpleNamespace(authorized_operations=self.operations or None))

    def describe_acls(self, wanted: object, **options: Any) -> "Future[Any]":
        kind, pattern = ResourceType.TOPIC, ResourcePatternType.LITERAL
        one = AclBinding(kind, "items", pattern, "User:app", "*", AclOperation.READ, AclPermissionType.ALLOW)
        return done([one] if AclOperation.DESCRIBE in self.operations else [])


def done(value: Any) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def test_a_refusal_that_the_client_takes_for_no_acls_is_reported() -> None:
    side = ClusterConfig(role="target", alias="es-tgt", client_config={"sasl.username": "u"})
    cluster: Any = SimpleNamespace(side=side, admin=Admin(AclOperation.CREATE), reports_rights=True)
    refused = "target es-tgt: user u may not describe ACLs, grant it DESCRIBE on the cluster"
    assert topic_acls(cluster) == TopicAcls(refused=refused)
    cluster.admin = Admin(AclOperation.DESCRIBE)
    assert topic_acls(cluster) == TopicAcls(acls=frozenset([acl()]))


def test_what_a_user_is_shown_is_unknown_where_brokers_report_no_rights() -> None:
    side = ClusterConfig(role="source", alias="es-src", client_config={"sasl.username": "u"})
    cluster: Any = SimpleNamespace(side=side, refusals=Refusals(side), admin=Admin(), reports_rights=False)
    found = topic_acls(cluster)
    assert found.acls == frozenset()
    assert "brokers before Kafka 2.3 report no rights" in (found.refused or "")
    (unknown,) = read_rights(cluster).unknown
    assert "it is not known whether user u is shown ACLs" in unknown


def status(*tasks: str, ready: str = "True", name: str = SOURCE) -> ResourceStatus:
    condition = {"type": "Ready" if ready == "True" else "NotReady", "status": "True", "reason": "Held"}
    one = {"name": name, "connector": {"state": "RUNNING"}, "tasks": [{"id": 0, "state": task} for task in tasks]}
    return from_status(RESOURCE, [SOURCE], {"conditions": [condition], "connectors": [one]})


def running(*tasks: str) -> list[ConnectorState]:
    return [ConnectorState(SOURCE, "RUNNING", tasks)]


def test_connectors_that_run_on_both_sides_pass() -> None:
    check = replication.connectors_running(running("RUNNING"), "http://x", status("RUNNING"))
    assert (check.ok, check.observed) == (True, "1 connectors run")
    assert [one["told_by"] for one in check.evidence] == ["Connect", "resource"]


def test_a_failed_task_of_a_ready_resource_fails_and_is_reported_as_such() -> None:
    check = replication.connectors_running(None, "http://x", status("RUNNING", "FAILED"))
    assert check.ok is False
    assert f"KafkaMirrorMaker2 home/mm2 is Ready, yet task 1 of {SOURCE} is FAILED" in check.observed
    check = replication.connectors_running(running("FAILED"), "http://x", status("RUNNING"))
    assert check.ok is False
    assert check.observed == f"task 0 of {SOURCE} is FAILED, although KafkaMirrorMaker2 home/mm2 is Ready"


def test_a_resource_that_is_not_ready_fails_with_its_reason() -> None:
    check = replication.connectors_running(running("RUNNING"), "http://x", status("RUNNING", ready="False"))
    assert (check.ok, check.observed) == (False, "KafkaMirrorMaker2 home/mm2 is not Ready: Held")


def test_a_connector_that_the_status_does_not_list_is_missing() -> None:
    assert f"{SOURCE} is missing" in replication.connectors_running(None, None, status("RUNNING", name="x")).observed


def test_without_kubernetes_connect_alone_is_judged_and_it_is_said() -> None:
    silent = ResourceStatus(resource=RESOURCE, silent="no Kubernetes access")
    check = replication.connectors_running(running("RUNNING"), "http://x", silent)
    assert check.ok is True
    assert check.observed == "1 connectors run; KafkaMirrorMaker2 home/mm2 is not known: no Kubernetes access"
    check = replication.connectors_running(None, "http://x", silent)
    assert check.ok is None
    assert check.observed.startswith("Connect at http://x does not answer; KafkaMirrorMaker2 home/mm2 is not known")


def test_the_resource_alone_is_judged_when_connect_is_silent_and_it_is_said() -> None:
    check = replication.connectors_running(None, "http://x", status("RUNNING"))
    assert (check.ok, check.observed) == (True, "1 connectors run; Connect at http://x does not answer")
    ready = from_status(RESOURCE, [SOURCE], {"conditions": [{"type": "Ready", "status": "True"}]})
    assert replication.connectors_running(None, "http://x", ready).ok is None


def test_a_status_of_an_older_generation_alone_proves_nothing() -> None:
    stale = replace(status("RUNNING"), current=False)
    check = replication.connectors_running(None, "http://x", stale)
    why = "the status of KafkaMirrorMaker2 home/mm2 is older than its specification: its operator has not reconciled it"
    assert (check.ok, check.observed) == (None, f"Connect at http://x does not answer; {why}")
    check = replication.connectors_running(running("RUNNING"), "http://x", stale)
    assert (check.ok, check.observed) == (True, "1 connectors run")
    failed = replace(status("FAILED"), current=False)
    assert replication.connectors_running(None, "http://x", failed).ok is False


def test_a_connector_without_a_task_that_copies_is_reported() -> None:
    check = replication.connectors_running([ConnectorState(SOURCE, "RUNNING", ())], "http://x")
    assert (check.ok, check.observed) == (False, f"{SOURCE} is RUNNING without a task")
    assert replication.connectors_running([ConnectorState(CHECKPOINT, "RUNNING", ())], "http://x").ok is True


def test_a_kubeconfig_that_is_not_there_leaves_the_resource_unknown() -> None:
    found = resource_status(RESOURCE, [SOURCE], {"KUBECONFIG": "/does/not/exist"})
    assert found.silent is not None
    assert found.silent.startswith("no Kubernetes access by the kubeconfig's current context")
    named = resource_status(RESOURCE.model_copy(update={"context": "stg"}), [SOURCE], {"KUBECONFIG": "/does/not/exist"})
    assert (named.silent or "").startswith("no Kubernetes access by context stg")
    assert not found.faults


def test_a_kubeconfig_that_is_no_yaml_is_reported_without_its_text(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("token: [very-secret-4711\n")
    found = resource_status(RESOURCE, [SOURCE], {"KUBECONFIG": str(file)})
    assert "the kubeconfig cannot be parsed: ParserError" in (found.silent or "")
    assert "4711" not in (found.silent or "")
