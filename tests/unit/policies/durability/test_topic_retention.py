"""The rule on how long records stay."""

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from policies.rules.durability.topic_retention import KEY, POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_topic

HOUR = 3_600_000
DAY = 24 * HOUR
CONSEQUENCE = "A mirror that is down for longer never copies what was deleted meanwhile."


def violation() -> list[kit.Sample]:
    return broken_topic("short", lambda topic: topic.spec.update(config={"retention.ms": 60_000}))


def of_topic(got: object, minimum: int = DAY) -> str:
    return f"topic items: retention.ms must be >= {minimum} (got {got}). {CONSEQUENCE}"


def of_cluster(key: str, minimum: object, got: str) -> str:
    return f"cluster rt-inventory-stg: {key} must be >= {minimum} (got {got}). {CONSEQUENCE}"


def cluster(shape: str, **config: object) -> kit.Sample:
    sample = kit.cluster(shape)
    kit.brokers(sample)["config"] |= {key.replace("_", "."): value for key, value in config.items()}
    return sample


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("value", [None, DAY, str(DAY), 604_800_000, -1, "-1"])
def test_a_day_or_more_and_no_end_at_all_pass(shape: str, value: object) -> None:
    assert kit.judge(POLICY, kit.topic(shape, retention_ms=value)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("value", [DAY - 1, str(DAY - 1), 0, "a day"])
def test_less_than_a_day_is_reported(shape: str, value: object) -> None:
    assert kit.judge(POLICY, kit.topic(shape, retention_ms=value)) == [of_topic(value)]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("policy", ["compact", " compact ", ["compact"]])
def test_a_topic_that_only_compacts_passes(shape: str, policy: object) -> None:
    assert kit.judge(POLICY, kit.topic(shape, retention_ms=HOUR, cleanup_policy=policy)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("policy", ["delete", "compact,delete", "delete, compact", ["compact", "delete"]])
def test_a_topic_that_also_deletes_is_judged(shape: str, policy: object) -> None:
    assert kit.judge(POLICY, kit.topic(shape, retention_ms=HOUR, cleanup_policy=policy)) == [of_topic(HOUR)]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    ("key", "least", "too_little"),
    [("log.retention.ms", DAY, DAY - 1), ("log.retention.minutes", 1440, 1439), ("log.retention.hours", 24, 23)],
)
def test_a_cluster_is_judged_in_the_unit_that_it_sets(shape: str, key: str, least: int, too_little: int) -> None:
    sample = kit.cluster(shape)
    kit.brokers(sample)["config"][key] = least
    assert kit.judge(POLICY, sample) == []
    kit.brokers(sample)["config"][key] = str(too_little)
    assert kit.judge(POLICY, sample) == [of_cluster(key, least, str(too_little))]
    kit.brokers(sample)["config"][key] = -1
    assert kit.judge(POLICY, sample) == []


def test_milliseconds_count_before_minutes_and_minutes_before_hours() -> None:
    short = [of_cluster("log.retention.minutes", 1440, "60")]
    assert kit.judge(POLICY, cluster(kit.V1, log_retention_minutes=60, log_retention_hours=168)) == short
    sample = cluster(kit.V1, log_retention_ms=DAY, log_retention_minutes=60, log_retention_hours=1)
    assert kit.judge(POLICY, sample) == []


def test_a_cluster_that_only_compacts_passes() -> None:
    sample = cluster(kit.V1, log_retention_hours=1, log_cleanup_policy="compact")
    assert kit.judge(POLICY, sample) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_kafkas_default_of_a_week_counts_where_nothing_is_set(shape: str) -> None:
    assert kit.judge(POLICY, kit.cluster(shape), minimumHours=168) == []
    expected = [of_cluster("log.retention.hours", 169, "nothing, which means 168")]
    assert kit.judge(POLICY, kit.cluster(shape), minimumHours=169) == expected


def test_the_minimum_can_be_configured_down_to_parts_of_an_hour() -> None:
    assert kit.judge(POLICY, kit.topic(kit.V1, retention_ms=DAY), minimumHours=48) == [of_topic(DAY, 2 * DAY)]
    assert kit.judge(POLICY, kit.topic(kit.V1, retention_ms=HOUR // 2), minimumHours=0.5) == []
    expected = [of_cluster("log.retention.hours", 1.5, "1")]
    assert kit.judge(POLICY, cluster(kit.V1, log_retention_hours=1), minimumHours=1.5) == expected


def test_only_topics_whose_whole_name_matches_are_judged() -> None:
    topic = kit.topic(kit.V1, retention_ms=HOUR)
    assert kit.judge(POLICY, topic, topics="item") == []
    assert kit.judge(POLICY, topic, topics="item.|stock") == [of_topic(HOUR)]
    topic.spec["topicName"] = "stock"
    assert kit.judge(POLICY, topic, topics="items") == []


def test_a_cluster_is_judged_whatever_topics_are_asked_for() -> None:
    expected = [of_cluster("log.retention.hours", 24, "1")]
    assert kit.judge(POLICY, cluster(kit.V1, log_retention_hours=1), topics="stock") == expected


def test_an_option_that_is_no_regular_expression_is_reported() -> None:
    expected = ["topic items: option topics must be a regular expression (got *). Correct it."]
    assert kit.judge(POLICY, kit.topic(kit.V1), topics="*") == expected
    assert kit.remedied(POLICY, kit.topic(kit.V1, retention_ms=HOUR), topics="*") is None


def test_another_type_is_ignored() -> None:
    topic = kit.topic(kit.V1, retention_ms=HOUR)
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:KafkaTopic", topic.props)) == []


def test_what_a_preview_does_not_know_is_left_to_the_update() -> None:
    assert kit.judge(POLICY, kit.topic(kit.V1, retention_ms=UNKNOWN_NUMBER_VALUE)) == []
    assert kit.judge(POLICY, kit.topic(kit.V1, retention_ms=HOUR, cleanup_policy=UNKNOWN_STRING_VALUE)) == []
    assert kit.judge(POLICY, cluster(kit.V1, log_retention_ms=UNKNOWN_NUMBER_VALUE, log_retention_hours=1)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("value", [HOUR, str(HOUR)])
def test_the_remedy_raises_the_retention_to_the_minimum(shape: str, value: object) -> None:
    topic = kit.topic(shape, retention_ms=value, min_insync_replicas=2)
    config = {KEY: 2 * DAY, "min.insync.replicas": 2}
    expected = {**topic.props, "spec": {"partitions": 3, "replicas": 3, "config": config}}
    assert kit.remedied(POLICY, topic, minimumHours=48) == expected


@pytest.mark.parametrize("config", [{}, {"retention_ms": -1}, {"retention_ms": DAY}, {"retention_ms": "a day"}])
def test_the_remedy_leaves_alone_what_complies_or_cannot_be_read(config: dict[str, object]) -> None:
    assert kit.remedied(POLICY, kit.topic(kit.V1, **config)) is None


def test_the_remedy_leaves_a_cluster_and_other_topics_alone() -> None:
    assert kit.remedied(POLICY, cluster(kit.V1, log_retention_hours=1)) is None
    assert kit.remedied(POLICY, kit.topic(kit.V1, retention_ms=HOUR), topics="stock") is None


@pytest.mark.parametrize(
    "config",
    [
        UNKNOWN_OBJECT_VALUE,
        {KEY: UNKNOWN_NUMBER_VALUE},
        {KEY: UNKNOWN_STRING_VALUE},
        {KEY: HOUR, "cleanup.policy": UNKNOWN_STRING_VALUE},
    ],
)
def test_the_remedy_leaves_alone_what_is_unknown(config: object) -> None:
    topic = kit.topic(kit.V1)
    topic.spec["config"] = config
    assert kit.remedied(POLICY, topic) is None
