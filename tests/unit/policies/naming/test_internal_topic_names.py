"""The rule on topics that take a name which Kafka, MirrorMaker or Connect keeps for itself."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.naming.internal_topic_names import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_topic

MIRROR_MAKERS = ["heartbeats", "es-src.heartbeats", "es-src.checkpoints.internal", "orders.internal", "orders-internal"]


def violation() -> list[kit.Sample]:
    return broken_topic("offsets", lambda topic: topic.spec.update(topicName="__consumer_offsets"))


MIRROR_MAKERS += ["mm2-offset-syncses-tgtinternal", "mm2-offset-syncs_es-tgt_internal", "es-srccheckpointsinternal"]
STORAGE = ["config", "offset", "status"]
UNSET = "nothing, which means delete"


def of_mirror_maker(topic: str, got: str = UNSET) -> str:
    why = "MirrorMaker takes a topic of this name for its own: rename it unless it is one."
    return f"topic {topic}: cleanup.policy must be compact (got {got}). {why}"


def of_connect(topic: str, owner: str = "Mirror mm2", got: str = UNSET) -> str:
    why = f"{owner} keeps its state in it: rename the topic unless it is meant for that."
    return f"topic {topic}: cleanup.policy must be compact (got {got}). {why}"


def connect(shape: str, **spec: object) -> kit.Sample:
    return kit.Sample(
        f"kubernetes:{shape}:KafkaConnect", {"metadata": {"name": "sinks", "namespace": kit.NAMESPACE}, "spec": spec}
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_topics_of_applications_pass(shape: str) -> None:
    assert kit.judge_stack(POLICY, kit.compliant(shape)) == []
    names = ["internal", "heartbeats.orders", "internal.orders", "_items", "mm2-config-s"]
    assert kit.judge_stack(POLICY, [kit.mirror(shape), *(kit.topic(shape, name) for name in names)]) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("cleanup", [None, "compact", "delete"])
def test_a_name_of_kafkas_is_reported_however_it_is_declared(shape: str, cleanup: str | None) -> None:
    topic = kit.topic(shape, "consumer-offsets", **({"cleanup_policy": cleanup} if cleanup else {}))
    topic.spec["topicName"] = "__consumer_offsets"
    assert kit.judge_stack_by_urn(POLICY, [topic]) == [
        (
            "topic __consumer_offsets: name must not start with __ (got __consumer_offsets). "
            "Kafka keeps such names for itself, and no mirror copies them.",
            topic.urn,
        )
    ]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("name", MIRROR_MAKERS)
def test_a_name_of_mirror_makers_is_reported_unless_the_topic_is_compacted(shape: str, name: str) -> None:
    assert kit.judge_stack(POLICY, [kit.topic(shape, name, cleanup_policy="compact")]) == []
    topic = kit.topic(shape, name)
    assert kit.judge_stack_by_urn(POLICY, [topic]) == [(of_mirror_maker(name), topic.urn)]
    both = kit.topic(shape, name, cleanup_policy="compact,delete")
    assert kit.judge_stack(POLICY, [both]) == [of_mirror_maker(name, "compact,delete")]


@pytest.mark.parametrize("name", ["orders.internal", "orders-internal"])
@pytest.mark.parametrize(
    ("versions", "is_told"),
    [(["4.0.0"], False), (["4.1.0", "4.10.0"], False), (["3.9.1"], True), (["4.0.0", "3.9.1"], True), ([None], True)],
)
def test_a_name_that_ends_in_internal_is_an_applications_beside_mirrors_of_kafka_4(
    name: str, versions: list[str | None], is_told: bool
) -> None:
    mirrors = [kit.mirror(kit.V1, f"mm{number}") for number, _ in enumerate(versions)]
    for mirror, version in zip(mirrors, versions, strict=True):
        mirror.spec.pop("version", None)
        if version is not None:
            mirror.spec["version"] = version
    assert kit.judge_stack(POLICY, [*mirrors, kit.topic(kit.V1, name)]) == ([of_mirror_maker(name)] if is_told else [])
    own = kit.topic(kit.V1, "mm2-orders.internal")
    assert kit.judge_stack(POLICY, [*mirrors, own]) == [of_mirror_maker("mm2-orders.internal")]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("kind", STORAGE)
def test_a_storage_topic_of_a_mirror_is_reported_unless_it_is_compacted(shape: str, kind: str) -> None:
    mirror = kit.mirror(shape)
    if shape == kit.V1:
        kit.target(mirror)[f"{kind}StorageTopic"] = "workers"
    else:
        kit.target(mirror)["config"][f"{kind}.storage.topic"] = "workers"
    assert kit.judge_stack(POLICY, [mirror, kit.topic(shape, "workers", cleanup_policy="compact")]) == []
    assert kit.judge_stack(POLICY, [mirror, kit.topic(shape, "workers")]) == [of_connect("workers")]
    assert kit.judge_stack(POLICY, [kit.topic(shape, "workers")]) == []


@pytest.mark.parametrize("shape", [kit.V1BETA2, kit.EVENT_STREAMS])
@pytest.mark.parametrize("name", [f"mirrormaker2-cluster-{end}" for end in ("configs", "offsets", "status")])
def test_the_operators_names_count_where_a_mirror_names_none(shape: str, name: str) -> None:
    assert kit.judge_stack(POLICY, [kit.mirror(shape), kit.topic(shape, name)]) == [of_connect(name)]


def test_the_operators_names_do_not_count_in_v1_which_has_none() -> None:
    mirror = kit.mirror(kit.V1)
    del kit.target(mirror)["configStorageTopic"]
    assert kit.judge_stack(POLICY, [mirror, kit.topic(kit.V1, "mirrormaker2-cluster-configs")]) == []


@pytest.mark.parametrize(
    ("cluster", "name"),
    [
        (connect(kit.V1, configStorageTopic="sink-configs"), "sink-configs"),
        (connect(kit.V1BETA2, config={"offset.storage.topic": "sink-offsets"}), "sink-offsets"),
        (connect(kit.V1BETA2), "connect-cluster-status"),
        (connect(kit.EVENT_STREAMS), "connect-cluster-configs"),
    ],
)
def test_a_storage_topic_of_kafka_connect_is_reported(cluster: kit.Sample, name: str) -> None:
    topic = kit.topic(cluster.shape, name, cleanup_policy="delete")
    assert kit.judge_stack(POLICY, [topic, cluster]) == [of_connect(name, "Connect cluster sinks", "delete")]


@pytest.mark.parametrize("shape", [kit.V1BETA2, kit.EVENT_STREAMS])
def test_fields_of_v1_say_nothing_in_v1beta2(shape: str) -> None:
    cluster = connect(shape, configStorageTopic="items")
    assert kit.judge_stack(POLICY, [cluster, kit.topic(shape, "items")]) == []


def test_another_type_is_ignored() -> None:
    topic = kit.topic(kit.V1, "__consumer_offsets")
    assert kit.judge_stack(POLICY, [kit.Sample("kubernetes:example.com/v1:KafkaTopic", topic.props)]) == []


def test_one_unknown_value_hides_no_other() -> None:
    mirror = kit.mirror(kit.V1)
    kit.target(mirror)["configStorageTopic"] = UNKNOWN_STRING_VALUE
    mirror.spec["version"] = UNKNOWN_STRING_VALUE
    unknown = kit.topic(kit.V1, "heartbeats", cleanup_policy=UNKNOWN_STRING_VALUE)
    named_later = kit.topic(kit.V1, UNKNOWN_STRING_VALUE)
    found = kit.judge_stack(POLICY, [mirror, unknown, named_later, kit.topic(kit.V1, "mm2-offset")])
    assert found == [of_connect("mm2-offset")]
