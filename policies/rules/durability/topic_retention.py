"""KafkaTopic, Kafka, EventStreams: records must stay for longer than a mirror may be down.

A mirror reads on where it stopped. What the source has deleted meanwhile never reaches the target. A topic that sets
nothing keeps its records for the time that the brokers set: `log.retention.ms` before `log.retention.minutes` before
`log.retention.hours`, of which Kafka reads the first that is set. What is never deleted by age, because -1 is set or
because `cleanup.policy` only compacts, is not judged.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

from pulumi_policy import Severity

from policies.support.clusters import config_of, describe, setting, topic_name
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import CLUSTER, TOPIC, Props, format_value, mapping, sequence, whole, within

KEY = "retention.ms"
_MS_PER_HOUR = 3_600_000
_LAST_KEY = "log.retention.hours"
_UNITS_OF_BROKERS = {"log.retention.ms": 1, "log.retention.minutes": 60_000, _LAST_KEY: _MS_PER_HOUR}
_HOURS_IF_NOT_SET = 168
_CONSEQUENCE = "A mirror that is down for longer never copies what was deleted meanwhile."


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """At most one message."""
    return _of_cluster(type_, props, config) if type_ in CLUSTER else _of_topic(props, config)


def remedy(props: Any, config: Config) -> bool:
    """Raise a topic's retention to the minimum; a value that cannot be read is left alone."""
    if whole(within(props, "spec", "config", KEY)) is None or not _keeps_too_short(props, config):
        return False
    props["spec"]["config"][KEY] = _minimum_ms(config)
    return True


def _of_topic(props: Props, config: Config) -> Iterator[str]:
    topic = topic_name(props)
    if _pattern(config) is None:
        yield f"topic {topic}: option topics must be a regular expression (got {config['topics']}). Correct it."
    elif _keeps_too_short(props, config):
        got = format_value(within(props, "spec", "config", KEY))
        yield f"topic {topic}: {KEY} must be >= {_minimum_ms(config)} (got {got}). {_CONSEQUENCE}"


def _of_cluster(type_: str, props: Props, config: Config) -> Iterator[str]:
    settings = config_of(type_, props)
    key = next((each for each in _UNITS_OF_BROKERS if settings.get(each) is not None), _LAST_KEY)
    value, got = setting(settings, key, _HOURS_IF_NOT_SET)
    unit = _UNITS_OF_BROKERS[key]
    if _deletes(settings.get("log.cleanup.policy")) and _too_short(value, unit, config):
        minimum = format_value(_minimum_ms(config) / unit)
        yield f"{describe(type_, props)}: {key} must be >= {minimum} (got {got}). {_CONSEQUENCE}"


def _keeps_too_short(props: Props, config: Config) -> bool:
    """Whether the topic is one of those that the rule asks for and deletes its records too soon."""
    pattern, settings = _pattern(config), mapping(within(props, "spec", "config"))
    return (
        pattern is not None
        and pattern.fullmatch(topic_name(props)) is not None
        and settings.get(KEY) is not None
        and _deletes(settings.get("cleanup.policy"))
        and _too_short(settings[KEY], 1, config)
    )


def _too_short(value: object, unit: int, config: Config) -> bool:
    """Whether so many units, each of so many milliseconds, are less than the minimum. Below zero is without end."""
    number = whole(value)
    return number is None or 0 <= number * unit < _minimum_ms(config)


def _deletes(policy: object) -> bool:
    """Whether records are deleted by their age: Kafka's default. The policy is a list, or text with commas."""
    if policy is None:
        return True
    parts = policy.split(",") if isinstance(policy, str) else sequence(policy)
    return "delete" in [str(part).strip() for part in parts]


def _pattern(config: Config) -> re.Pattern[str] | None:
    """The option `topics`; None if it is no regular expression."""
    try:
        return re.compile(str(config["topics"]))
    except re.error:
        return None


def _minimum_ms(config: Config) -> int:
    return math.ceil(float(config["minimumHours"]) * _MS_PER_HOUR)


POLICY = resource_policy(
    name="topic-retention",
    description="A topic that sets `retention.ms`, and every cluster, keeps records for at least `minimumHours`.",
    types=CLUSTER | TOPIC,
    violations=violations,
    remedy=remedy,
    options={
        "minimumHours": {
            "type": "number",
            "minimum": 0,
            "default": 24,
            "description": "hours that a mirror may be down without loss",
        },
        "topics": {
            "type": "string",
            "default": ".*",
            "description": "regular expression that the names of the topics in question match as a whole; "
            "clusters are judged in any case",
        },
    },
    severity=Severity.MEDIUM,
    remediation_steps="Raise the named setting, or narrow `topics` to what is mirrored. "
    "Only a topic is remediated, never a cluster.",
)
