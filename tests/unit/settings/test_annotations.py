"""Annotations: what is handed on, whose keys are refused, and that an exception's reason is no secret."""

from typing import Any

import pytest

from settings import SettingsError, parse
from settings.rules.common import RESERVED

from ...support.stack_values import TARGET, with_value

EXCEPTION = {"exception.rt-inventory/topic-replication": "until 2027-03-31: one broker until the new rack is there"}
PLACES = ("cluster", "users/0", "topics/0", "mirrors/0")


def problems(values: dict[str, Any]) -> list[str]:
    with pytest.raises(SettingsError) as error:
        parse(values, "stg")
    return [str(problem) for problem in error.value.problems]


def test_nothing_is_annotated_unless_it_is_said() -> None:
    stack = parse(TARGET, "stg")
    found = [stack.cluster, *stack.users, *stack.topics, *stack.mirrors, *stack.cluster.all_node_pools]
    assert all(not each.annotations for each in found)


def test_cluster_users_topics_and_mirrors_have_annotations_of_their_own_that_nobody_changes() -> None:
    values = TARGET
    for place in PLACES:
        values = with_value(values, f"{place}/annotations", EXCEPTION)
    stack = parse(values, "stg")
    for each in (stack.cluster, stack.users[0], stack.topics[0], stack.mirrors[0], stack.mirrors[0]):
        assert each.annotations == EXCEPTION
        with pytest.raises(TypeError):
            each.annotations["more"] = "than was said"  # type: ignore[index]  # the point of it


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("owner", RESERVED)
def test_keys_of_operators_and_tools_are_refused_everywhere(place: str, owner: str) -> None:
    reported = problems(with_value(TARGET, f"{place}/annotations", {f"{owner}/key": "x", **EXCEPTION}))
    where = place.replace("/0", "[0]")
    assert [each.split(": ")[0] for each in reported] == [f"rt-inventory:{where}.annotations[{owner}/key]"]
    assert f"{owner}/key must not be set in annotations" in reported[0]
    assert reported[0].endswith("Remove it.")


@pytest.mark.parametrize(
    "key",
    ["owner", "Owner_of.it-1", "a/b", "example.com/owner", "Example.COM/owner", "n" * 63, f"{'p' * 63}.com/n", "1"],
)
def test_keys_that_kubernetes_accepts_are_accepted(key: str) -> None:
    assert parse(with_value(TARGET, "cluster/annotations", {key: ""}), "stg").cluster.annotations == {key: ""}


@pytest.mark.parametrize("key", ["", "a b", "-a", "a.", "example.com/", "n" * 64, "example.com/" + "n" * 64])
def test_names_that_kubernetes_refuses_are_refused(key: str) -> None:
    (reported,) = problems(with_value(TARGET, "topics/0/annotations", {key: "x"}))
    assert "topic audit: annotations must have keys whose name" in reported


@pytest.mark.parametrize("key", ["/a", "a/b/c", "a..b/c", "-a/b", "a_b/c", ".".join(["p" * 63] * 4) + "/c"])
def test_prefixes_that_kubernetes_refuses_are_refused(key: str) -> None:
    (reported,) = problems(with_value(TARGET, "users/0/annotations", {key: "x"}))
    assert "user writer: annotations must have keys whose prefix" in reported


def test_an_exception_of_a_rule_about_passwords_is_no_secret_but_a_password_in_its_reason_is() -> None:
    key = "exception.rt-inventory/user-password"
    reason = {key: "until 2027-03-31: a legacy client sets its own"}
    assert parse(with_value(TARGET, "users/0/annotations", reason), "stg").users[0].annotations == reason
    (reported,) = problems(with_value(TARGET, "users/0/annotations", {key: "until 2027-03-31: password=hunter2"}))
    assert "must not be in a stack file" in reported
    assert "hunter2" not in reported


def test_a_key_of_another_domain_that_names_a_secret_is_still_looked_at() -> None:
    (reported,) = problems(with_value(TARGET, "users/0/annotations", {"example.com/api-token": "hunter2"}))
    assert "must not be in a stack file" in reported
    assert "hunter2" not in reported
