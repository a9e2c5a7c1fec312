"""A topic that the mirror covers and the source's user may not see is named as soon as anything else names it."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from contract.verification_request import ClusterConfig, InternalTopic, Mirror
from kafka.checkpoints import CheckpointHistory, OffsetSyncHistory, OffsetTranslation
from kafka.cluster import Cluster, Topic
from kafka.topic_metadata import HiddenTopics, hidden_topics, named_elsewhere
from spark.checks.topics import topics_present

SOURCE = ClusterConfig(
    role="source", alias="src", client_config={"bootstrap.servers": "k1:9092", "sasl.username": "reader"}
)
PREFIXED = Mirror(
    name="mm2",
    source_alias="src",
    target_alias="tgt",
    topics=("items.*", "orders"),
    topics_exclude=("items.old",),
    naming="prefixed",
)
IDENTITY = Mirror(
    name="mm2",
    source_alias="src",
    target_alias="tgt",
    topics=(".*",),
    internal_topics=(InternalTopic(name="mm2-status"),),
    offset_storage_topic="mm2-offsets",
)
SEEN = ["items"]


def named(mirror: Mirror, **known: Any) -> dict[str, str]:
    found: dict[str, Any] = {"positions": None, "translation": OffsetTranslation(), "on_target": []} | known
    return named_elsewhere(mirror, SEEN, **found)


def test_each_that_names_a_topic_is_asked() -> None:
    translation = OffsetTranslation(
        checkpoints={("g", "src.items.b", 0): CheckpointHistory(), ("g", "items.local", 0): CheckpointHistory()},
        syncs={("items.c", 0): OffsetSyncHistory()},
    )
    positions = {("items", 0): 5, ("items.a", 0): 5, ("items.a", 1): 7}
    on_target = ["src.items", "src.items.d", "src.orders", "local", "items.e"]
    assert named(PREFIXED, positions=positions, translation=translation, on_target=on_target) == {
        "items.a": "the mirror's offsets",
        "items.b": "a checkpoint",
        "items.c": "the mirror's offset syncs",
        "items.d": "a topic of the target",
        "orders": "a topic of the target",
    }


def test_what_the_mirror_does_not_carry_or_kafka_cannot_have_is_not_asked_for() -> None:
    positions = {(name, 0): 1 for name in ("items.old", "other", "items.internal", "items\n", "", "items" * 60)}
    assert named(PREFIXED, positions=positions, on_target=["src.tgt.items", "src.src.other"]) == {}


def test_with_identity_naming_topics_of_the_target_count_only_where_no_position_is_known() -> None:
    on_target = ["items", "local", "mm2-status", "mm2-offsets", "src.checkpoints.internal", "__consumer_offsets"]
    assert named(IDENTITY, on_target=on_target) == {"local": "a topic of the target"}
    assert named(IDENTITY, on_target=on_target, positions={}) == {"local": "a topic of the target"}
    assert named(IDENTITY, on_target=on_target, positions={("items", 0): 5}) == {}


def source(answers: dict[str, int | None], monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A source that answers for each topic with an error's code, or describes it."""

    def describe(topics: Any, **_: Any) -> dict[str, Future[Any]]:
        asked: dict[str, Future[Any]] = {name: Future() for name in topics.topic_names}
        for name, future in asked.items():
            code = answers[name]
            if code is None:
                future.set_result(object())
            else:
                future.set_exception(KafkaException(KafkaError(code)))
        return asked

    cluster = Cluster(SOURCE)
    monkeypatch.setattr(cluster, "_admin", SimpleNamespace(describe_topics=describe))
    return cluster


def test_a_denied_topic_is_hidden_and_a_deleted_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "denied": KafkaError.TOPIC_AUTHORIZATION_FAILED,
        "deleted": KafkaError.UNKNOWN_TOPIC_OR_PART,
        "younger": None,
    }
    found = hidden_topics(source(answers, monkeypatch), dict.fromkeys(answers, "a checkpoint"))
    assert found.named_by == {"denied": "a checkpoint"}
    assert found.reason == (
        "named by a checkpoint, but not verified: source src (k1:9092, user reader): user reader may not Describe and "
        "Read and DescribeConfigs topic denied. Grant Describe and Read and DescribeConfigs on topic denied. "
        "If it was deleted, name it in topicsExclude."
    )
    del answers["denied"]
    assert hidden_topics(source(answers, monkeypatch), dict.fromkeys(answers, "a checkpoint")) == HiddenTopics()


def test_nothing_is_asked_where_nothing_is_named() -> None:
    assert hidden_topics(Cluster(SOURCE), {}) == HiddenTopics()


def test_a_hidden_topic_leaves_the_check_unknown_and_a_missing_one_fails_it() -> None:
    topics = {"items": Topic(name="items", replicas={0: 1}, compacted=False)}
    there = {"src.items": Topic(name="src.items", replicas={0: 1}, compacted=False)}
    hidden = HiddenTopics({"items.a": "a checkpoint"}, "named by a checkpoint")
    check = topics_present(PREFIXED, topics, there, hidden=hidden)
    assert (check.ok, check.observed) == (None, "named by a checkpoint")
    assert check.evidence == [{"hidden": "items.a", "named_by": "a checkpoint"}]
    assert topics_present(PREFIXED, {}, {}, hidden=hidden).observed == "named by a checkpoint"
    check = topics_present(PREFIXED, topics, {}, hidden=hidden)
    assert (check.ok, check.observed) == (False, "missing: items; named by a checkpoint")
    assert topics_present(PREFIXED, topics, there, hidden=HiddenTopics()).ok is True
