"""The rule on names of users."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.naming.user_names import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import changed


def violation() -> list[kit.Sample]:
    return changed(kit.user(kit.V1), "some.body", lambda user: None)


def named(shape: str, name: str) -> kit.Sample:
    user = kit.user(shape)
    user.props["metadata"]["name"] = name
    return user


CONVENTION = "rt-inv(-[a-z0-9]+)*-{stage}-user"


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("name", ["inventory-app", "rt-inv-dev-user", "reader2"])
def test_lower_case_words_pass(shape: str, name: str) -> None:
    assert kit.judge(POLICY, named(shape, name), stage="stg") == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("name", ["Inventory", "cn=app", "app-", "2-reader"])
def test_any_other_name_is_reported(shape: str, name: str) -> None:
    assert kit.judge(POLICY, named(shape, name), stage="stg") == [
        f"user {name}: name must match [a-z][a-z0-9]*(-[a-z0-9]+)* (got {name}). "
        "People, alerts and other stacks go by it."
    ]


@pytest.mark.parametrize(
    ("name", "passes"), [("rt-inv-stg-user", True), ("rt-inv-billing-stg-user", True), ("rt-inv-dev-user", False)]
)
def test_a_convention_may_ask_for_the_stage(name: str, passes: bool) -> None:
    reported = kit.judge(POLICY, named(kit.V1, name), pattern=CONVENTION, stage="stg")
    assert reported == (
        []
        if passes
        else [
            f"user {name}: name must match rt-inv(-[a-z0-9]+)*-stg-user (got {name}). "
            "People, alerts and other stacks go by it."
        ]
    )


def test_without_a_stage_any_lower_case_word_is_one() -> None:
    assert kit.judge(POLICY, named(kit.V1, "rt-inv-dev-user"), pattern=CONVENTION) == []
    assert len(kit.judge(POLICY, named(kit.V1, "rt-inv-user"), pattern=CONVENTION)) == 1


def test_the_pattern_can_be_configured() -> None:
    app = named(kit.V1, "inventory-app")
    assert kit.judge(POLICY, app, pattern="rt-inv-{stage}-user|[a-z]+-app", stage="stg") == []
    assert len(kit.judge(POLICY, kit.user(kit.V1), pattern="[a-z]+-app", stage="stg")) == 1


def test_another_type_is_ignored() -> None:
    assert kit.judge(POLICY, kit.topic(kit.V1), stage="stg") == []


def test_a_name_not_known_in_a_preview_is_left_to_the_update() -> None:
    assert kit.judge(POLICY, named(kit.V1, UNKNOWN_STRING_VALUE), stage="stg") == []
