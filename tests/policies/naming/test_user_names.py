"""The rule on names of users."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.naming.user_names import POLICY
from tests.policies import kit


def named(shape: str, name: str) -> kit.Sample:
    user = kit.user(shape)
    user.props["metadata"]["name"] = name
    return user


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("name", ["rt-inv-stg-user", "rt-inv-billing-stg-user", "rt-inv-store-2-stg-user"])
def test_project_and_stage_pass(shape: str, name: str) -> None:
    assert kit.judge(POLICY, named(shape, name), stage="stg") == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("name", ["rt-inv-dev-user", "rt-inv-stg", "inventory-app", "rt-inv-stg-user-2"])
def test_any_other_name_is_told(shape: str, name: str) -> None:
    assert kit.judge(POLICY, named(shape, name), stage="stg") == [
        f"user {name}: name must match rt-inv(-[a-z0-9]+)*-stg-user (got {name}). "
        "People, alerts and other stacks go by it."
    ]


def test_without_a_stage_any_lower_case_word_is_one() -> None:
    assert kit.judge(POLICY, named(kit.V1, "rt-inv-dev-user")) == []
    assert len(kit.judge(POLICY, named(kit.V1, "rt-inv-user"))) == 1


def test_the_pattern_can_be_configured() -> None:
    app = named(kit.V1, "inventory-app")
    assert kit.judge(POLICY, app, pattern="rt-inv-{stage}-user|[a-z]+-app", stage="stg") == []
    assert len(kit.judge(POLICY, kit.user(kit.V1), pattern="[a-z]+-app", stage="stg")) == 1


def test_another_type_is_ignored() -> None:
    assert kit.judge(POLICY, kit.topic(kit.V1), stage="stg") == []


def test_a_name_not_known_in_a_preview_is_left_to_the_update() -> None:
    assert kit.judge(POLICY, named(kit.V1, UNKNOWN_STRING_VALUE), stage="stg") == []
