"""The rule on names of mirrors and on their aliases."""

import copy

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.naming.mirror_names import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror

PATTERN = "[a-z][a-z0-9]*(-[a-z0-9]+)*"
SOURCE = {kit.V1: "mirrors[0].source", kit.V1BETA2: "clusters[{}]", kit.EVENT_STREAMS: "clusters[{}]"}
TARGET = {kit.V1: "target", kit.V1BETA2: "clusters[{}]", kit.EVENT_STREAMS: "clusters[{}]"}


def violation() -> list[kit.Sample]:
    return broken_mirror("mm-alias", lambda mirror: kit.source(mirror).update(alias="ES.SRC"))


def message(field: str, got: str, mirror: str = "mm2", pattern: str = PATTERN) -> str:
    return f"mirror {mirror}: {field} must match {pattern} (got {got}). People, alerts and other stacks go by it."


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_lower_case_words_joined_by_dashes_pass(shape: str) -> None:
    assert kit.judge(POLICY, kit.mirror(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("name", ["MM2", "2-mirror", "mirror_2", "mirror.two"])
def test_another_name_is_reported(shape: str, name: str) -> None:
    assert kit.judge(POLICY, kit.mirror(shape, name)) == [message("name", name, name)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_an_alias_that_does_not_match_is_reported(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.source(mirror)["alias"] = "es.src"
    assert kit.judge(POLICY, mirror) == [message(f"{SOURCE[shape].format('es.src')} alias", "es.src")]
    mirror = kit.mirror(shape)
    kit.target(mirror)["alias"] = "ES_TGT"
    assert kit.judge(POLICY, mirror) == [message(f"{TARGET[shape].format('ES_TGT')} alias", "ES_TGT")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_an_alias_of_several_mirrors_is_reported_once(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.source(mirror)["alias"] = "es.src"
    mirror.spec["mirrors"].append(copy.deepcopy(kit.flow(mirror)))
    assert kit.judge(POLICY, mirror) == [message(f"{SOURCE[shape].format('es.src')} alias", "es.src")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_one_unknown_alias_hides_neither_the_name_nor_the_other_alias(shape: str) -> None:
    mirror = kit.mirror(shape, "MM2")
    kit.source(mirror)["alias"] = UNKNOWN_STRING_VALUE
    kit.target(mirror)["alias"] = "ES"
    expected = [message("name", "MM2", "MM2"), message(f"{TARGET[shape].format('ES')} alias", "ES", "MM2")]
    assert kit.judge(POLICY, mirror) == expected


def test_both_patterns_can_be_configured_and_may_ask_for_the_stage() -> None:
    mirror = kit.mirror(kit.V1)
    assert kit.judge(POLICY, mirror, pattern="mm[0-9]", aliasPattern="es-(src|tgt)") == []
    asked = {"pattern": "mm2-{stage}", "aliasPattern": "es-t.*", "stage": "stg"}
    assert kit.judge(POLICY, mirror, **asked) == [
        message("name", "mm2", pattern="mm2-stg"),
        message("mirrors[0].source alias", "es-src", pattern="es-t.*"),
    ]


def test_an_alias_pattern_that_cannot_be_read_is_reported() -> None:
    found = kit.judge(POLICY, kit.mirror(kit.V1), aliasPattern="*")
    assert found[0].startswith("mirror mm2: option aliasPattern must be a regular expression (got *: nothing to repeat")


def test_another_type_is_ignored() -> None:
    mirror = kit.mirror(kit.V1, "MM2")
    assert kit.judge(POLICY, kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", mirror.props)) == []
