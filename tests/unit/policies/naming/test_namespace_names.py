"""The rule on names of namespaces."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.naming.namespace_names import POLICY
from tests.support import compliant_resources as kit

CONVENTION = "[a-z][a-z0-9]*(-[a-z0-9]+)*-{stage}"
PATTERN = CONVENTION.replace("{stage}", "stg")


def violation() -> list[kit.Sample]:
    return [kit.core("Namespace", "2-somewhere")]


def message(name: str, pattern: str = PATTERN) -> str:
    return f"namespace {name}: name must match {pattern} (got {name}). People, alerts and other stacks go by it."


@pytest.mark.parametrize("name", ["rt-inventory-stg", "orders-stg", "i18n-2-stg"])
def test_a_convention_may_ask_for_the_stage(name: str) -> None:
    assert kit.judge(POLICY, kit.core("Namespace", name), pattern=CONVENTION, stage="stg") == []


@pytest.mark.parametrize("name", ["eventstreams", "rt-inventory", "stg", "i18n-2"])
def test_lower_case_words_pass(name: str) -> None:
    assert kit.judge(POLICY, kit.core("Namespace", name), stage="stg") == []


@pytest.mark.parametrize("name", ["rt-inventory-dev", "rt-inventory", "stg", "-stg", "RT-stg", "rt-inventory-stg-2"])
def test_any_other_name_is_reported(name: str) -> None:
    assert kit.judge(POLICY, kit.core("Namespace", name), pattern=CONVENTION, stage="stg") == [message(name)]


@pytest.mark.parametrize("name", ["RT", "2-inventory", "inventory-"])
def test_a_name_that_is_not_made_of_such_words_is_reported(name: str) -> None:
    assert kit.judge(POLICY, kit.core("Namespace", name)) == [message(name, "[a-z][a-z0-9]*(-[a-z0-9]+)*")]


def test_without_a_stage_any_lower_case_word_is_one() -> None:
    assert kit.judge(POLICY, kit.core("Namespace", "rt-inventory-dev"), pattern=CONVENTION) == []
    expected = [message("inventory", CONVENTION)]
    assert kit.judge(POLICY, kit.core("Namespace", "inventory"), pattern=CONVENTION) == expected
    assert len(kit.judge(POLICY, kit.core("Namespace", "inventory-2"), pattern=CONVENTION)) == 1


def test_the_pattern_can_be_configured() -> None:
    namespace = kit.core("Namespace", "team-3")
    assert kit.judge(POLICY, namespace, pattern="team-[0-9]+", stage="stg") == []
    assert kit.judge(POLICY, namespace, pattern="team-[0-9]{2}", stage="stg") == [message("team-3", "team-[0-9]{2}")]


def test_a_stage_is_no_pattern() -> None:
    reported = kit.judge(POLICY, kit.core("Namespace", "rt-inventory-stg"), pattern=CONVENTION, stage="s.g")
    assert len(reported) == 1


def test_a_pattern_that_cannot_be_read_is_reported() -> None:
    expected = (
        "namespace a: option pattern must be a regular expression "
        "(got (: missing ), unterminated subpattern at position 0). No name matches."
    )
    assert kit.judge(POLICY, kit.core("Namespace", "a"), pattern="(") == [expected]


def test_another_type_is_ignored() -> None:
    assert kit.judge(POLICY, kit.core("ConfigMap", "Settings"), stage="stg") == []


def test_a_name_not_known_in_a_preview_is_left_to_the_update() -> None:
    assert kit.judge(POLICY, kit.core("Namespace", UNKNOWN_STRING_VALUE), stage="stg") == []


def test_an_exception_lifts_the_rule() -> None:
    namespace = kit.core("Namespace", "Legacy")
    namespace.annotated(**{"exception.rt-inventory/namespace-names": "until 2999-12-31: made by hand long ago"})
    assert kit.judge(POLICY, namespace, stage="stg") == []
