"""Overrides of a resource's spec: what a setting stands for is refused by its path, the rest is accepted."""

from typing import Any

import pytest

from settings import SettingsError, parse
from settings.model import Model

from ...support.stack_values import TARGET, Values, with_value

STRIMZI: Values = {"type": "strimzi"}
OLDER: Values = {"type": "strimzi", "version": "0.51.0"}
TERMS = {"accept": True, "use": "CloudPakForIntegrationNonProduction"}
IBM: Values = {"type": "event-streams", "version": "12.0.0", "license": TERMS}


def refused(platform: Values, path: str, value: Any, **cluster: Any) -> dict[str, str]:
    """Problems of a stack with overrides at `cluster` or `mirrors/0`."""
    stack = {**TARGET, "platform": platform, "cluster": {**TARGET["cluster"], **cluster}}
    try:
        parse(with_value(stack, f"{path}/specOverrides", value))
    except SettingsError as error:
        return {problem.key: problem.message for problem in error.problems}
    return {}


@pytest.mark.parametrize(
    ("platform", "begin"), [(STRIMZI, ""), (OLDER, ""), (IBM, "strimziOverrides.")], ids=["v1", "v1beta2", "ibm"]
)
@pytest.mark.parametrize("field", ["version", "replicas", "storage", "listeners", "config", "authorization"])
def test_what_a_setting_of_the_cluster_decides_is_refused_by_its_path(platform: Values, begin: str, field: str) -> None:
    nested: Any = {"kafka": {field: {"any": 1}}}
    found = refused(platform, "cluster", {begin.rstrip("."): nested} if begin else nested)
    path = f"{begin}kafka.{field}.any"
    assert list(found) == [f"cluster.specOverrides.{path}"]
    (message,) = found.values()
    assert message.startswith(
        f"cluster passive: specOverrides must hold only fields that no setting stands for (got {path}, which "
    )
    assert message.endswith(" decides). Remove it.")


@pytest.mark.parametrize("platform", [STRIMZI, OLDER, IBM], ids=["v1", "v1beta2", "ibm"])
@pytest.mark.parametrize("field", ["version", "replicas", "clusters", "target", "mirrors", "connectCluster", "rack"])
def test_what_a_setting_of_a_mirror_decides_is_refused_by_its_path(platform: Values, field: str) -> None:
    assert list(refused(platform, "mirrors/0", {field: [{"any": 1}]})) == [f"mirrors[0].specOverrides.{field}"]


def test_a_parent_of_what_is_rendered_cannot_be_replaced() -> None:
    assert list(refused(STRIMZI, "cluster", {"kafka": None})) == ["cluster.specOverrides.kafka"]
    assert list(refused(IBM, "cluster", {"strimziOverrides": [1]})) == ["cluster.specOverrides.strimziOverrides"]
    operator = "cluster.specOverrides.entityOperator.topicOperator"
    assert list(refused(STRIMZI, "cluster", {"entityOperator": {"topicOperator": None}})) == [operator]
    assert refused(STRIMZI, "cluster", {"entityOperator": {"topicOperator": {"resources": {}}}}) == {}


@pytest.mark.parametrize("platform", [STRIMZI, OLDER], ids=["v1", "v1beta2"])
def test_image_template_options_and_logging_are_accepted(platform: Values) -> None:
    free = {"image": "x", "template": {"pod": {}}, "jvmOptions": {"-Xmx": "2g"}, "logging": {"type": "inline"}}
    assert refused(platform, "mirrors/0", free) == {}
    assert refused(platform, "cluster", {"kafka": free}) == {}


def test_a_heap_or_a_log_level_of_the_settings_is_not_overridden() -> None:
    stack = with_value(with_value(TARGET, "mirrors/0/jvm", {"xmx": "2g"}), "mirrors/0/logLevel", "INFO")
    overrides = {"jvmOptions": {"-Xmx": "4g", "-Xms": "1g"}, "logging": {"type": "external"}}
    with pytest.raises(SettingsError) as caught:
        parse(with_value(stack, "mirrors/0/specOverrides", overrides))
    assert [problem.key for problem in caught.value.problems] == [
        "mirrors[0].specOverrides.jvmOptions.-Xmx",
        "mirrors[0].specOverrides.logging.type",
    ]


def test_how_a_mirror_is_counted_is_not_overridden() -> None:
    annotations = {"template": {"pod": {"metadata": {"annotations": {"productName": "mine"}}}}}
    assert list(refused(IBM, "mirrors/0", annotations)) == [
        "mirrors[0].specOverrides.template.pod.metadata.annotations.productName"
    ]
    assert refused(STRIMZI, "mirrors/0", annotations) == {}
    assert refused(IBM, "mirrors/0", {"template": {"pod": {"metadata": {"labels": {"a": "b"}}}}}) == {}


def test_a_component_is_enabled_by_its_setting_and_not_by_an_override() -> None:
    login = {"adminUI": {"authentication": [{"type": "scram-sha-512"}]}}
    assert list(refused(IBM, "cluster", login)) == ["cluster.specOverrides.adminUI.authentication"]
    assert refused(IBM, "cluster", login, components={"adminUI": {}}) == {}
    assert list(refused(IBM, "cluster", {"adminUI": {"replicas": 2}}, components={"adminUI": {}})) == [
        "cluster.specOverrides.adminUI.replicas"
    ]


def test_components_belong_to_event_streams() -> None:
    assert refused(STRIMZI, "cluster", {}, components={"adminUI": {}}) == {
        "cluster.components": "cluster passive: components must not be given for strimzi (only Event Streams has "
        "them). Remove it."
    }


def test_overrides_cannot_be_changed_once_they_are_read() -> None:
    cluster = parse(with_value(TARGET, "cluster/specOverrides", {"kafka": {"template": {"pods": [{}]}}})).cluster
    assert isinstance(cluster, Model)
    with pytest.raises(TypeError):
        cluster.spec_overrides["kafka"]["template"]["more"] = 1
    assert cluster.spec_overrides["kafka"]["template"]["pods"] == ({},)
