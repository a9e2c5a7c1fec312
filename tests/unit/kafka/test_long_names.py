"""A topic whose prefixed name is too long for Kafka is one topic's fault: it is missing, the others are judged."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from contract.verification_request import TOPIC_LENGTH_MAX, ClusterConfig, Limits, Mirror, Request
from kafka import mirror_metadata, mirror_position
from kafka.cluster import Cluster, Topic
from kafka.mirror_position import Deadline
from spark.checks.topics import topics_present

SOURCE = ClusterConfig(role="source", alias="src", client_config={})
TARGET = ClusterConfig(role="target", alias="tgt", client_config={"bootstrap.servers": "127.0.0.1:1"})
MIRROR = Mirror(name="mm2", source_alias="src", target_alias="tgt", topics=(".*",), naming="prefixed")
REQUEST = Request(source=SOURCE, target=TARGET, mirror=MIRROR, limits=Limits())
LONG, FITS = "l" * (TOPIC_LENGTH_MAX - 3), "f" * (TOPIC_LENGTH_MAX - 4)


def topic(name: str) -> Topic:
    return Topic(name=name, replicas={0: 1}, compacted=False)


class Recording:
    """A target that holds every topic it may be asked for."""

    def __init__(self) -> None:
        self.named: list[str] = []

    def topics(self, wanted: Callable[[str], bool], named: Iterable[str] = ()) -> dict[str, Topic]:
        self.named = list(named)
        return {name: topic(name) for name in named if wanted(name)}


def test_such_a_topic_is_neither_asked_for_nor_waited_for() -> None:
    target: Any = Recording()
    sources = {name: topic(name) for name in ("items", FITS, LONG)}
    said: list[str] = []
    found = mirror_position.target_topics(target, REQUEST, sources, Deadline(0.5), said.append)
    assert target.named == list(found) == ["src.items", f"src.{FITS}"]
    assert said == []


def test_rights_on_a_name_that_is_too_long_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Admin:
        """Takes questions and grants everything."""

        def list_topics(self, timeout: float) -> Any:
            return SimpleNamespace(topics={}, brokers={})

        def describe_topics(self, topics: Any, **_: Any) -> dict[str, Any]:
            asked.extend(topics.topic_names)
            return {}

    cluster = Cluster(SOURCE)
    monkeypatch.setattr(cluster, "_admin", Admin())
    cluster.topics(lambda name: False, named=["items", "x" * (TOPIC_LENGTH_MAX + 1), "y" * TOPIC_LENGTH_MAX])
    assert sorted(map(len, asked)) == [5, TOPIC_LENGTH_MAX]


def test_its_copy_is_not_described(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, list[str]] = {"states": [], "configs": []}

    def states(_: object, names: Iterable[str]) -> Any:
        asked["states"] += names
        return SimpleNamespace(found={}, refused={})

    def configs(cluster: object, names: Iterable[str]) -> Any:
        asked["configs"] += names if cluster is target else []
        return SimpleNamespace(found={}, refused={})

    monkeypatch.setattr(mirror_metadata, "topic_states", states)
    monkeypatch.setattr(mirror_metadata, "topic_configs", configs)
    source: Any = SimpleNamespace(side=SOURCE)
    target: Any = SimpleNamespace(side=TARGET)
    mirror_metadata.wait_until_synced(REQUEST, {}, source, target, ["items", LONG], Deadline(0), lambda _: None)
    assert asked == {"states": ["src.items"], "configs": ["src.items"]}


def test_the_check_names_the_topic_and_the_reason() -> None:
    check = topics_present(MIRROR, {"items": topic("items"), LONG: topic(LONG)}, {"src.items": topic("src.items")})
    assert check.ok is False
    assert check.observed == (
        f"missing: {LONG}; {LONG} would have a name of 250 characters there, Kafka allows {TOPIC_LENGTH_MAX}"
    )
    assert check.evidence == [{"topic": LONG, "target_topic": f"src.{LONG}"}]
