"""The rule on ACLs that make a superuser."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.security.wildcard_acls import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_user

EVERY_OPERATION = ["Read", "Write", "Create", "Delete", "Alter", "Describe", "AlterConfigs", "DescribeConfigs"]
WITH_OPERATION = [kit.V1BETA2, kit.EVENT_STREAMS]


def violation() -> list[kit.Sample]:
    return broken_user(
        "root",
        lambda user: user.spec["authorization"]["acls"][0].update(
            operations=["All"], resource={"type": "topic", "name": "*", "patternType": "literal"}
        ),
    )


def message(right: str) -> str:
    return (
        f"user rt-inv-stg-user: authorization.acls must not make a superuser (got {right}). "
        "Whoever obtains its login has the whole cluster. Grant what it needs, by name or prefix."
    )


def user_with(shape: str, *acls: Any) -> kit.Sample:
    user = kit.user(shape)
    user.spec["authorization"]["acls"].extend(acls)
    return user


def on(kind: str, name: str | None, operations: list[str], **rest: Any) -> dict[str, Any]:
    resource = {"type": kind, **({} if name is None else {"name": name})}
    return {"resource": {**resource, **rest.pop("resource", {})}, "operations": operations, **rest}


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_user_with_rights_on_one_topic_passes(shape: str) -> None:
    assert kit.judge(POLICY, kit.user(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_user_without_acls_passes(shape: str) -> None:
    user = kit.user(shape)
    del user.spec["authorization"]
    assert kit.judge(POLICY, user) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("kind", ["topic", "group", "transactionalId"])
@pytest.mark.parametrize("type_", [{"type": "allow"}, {}])
def test_all_on_every_name_is_reported(shape: str, kind: str, type_: dict[str, str]) -> None:
    user = user_with(shape, on(kind, "*", ["Describe", "All"], **type_))
    assert kit.judge(POLICY, user) == [message(f"All on {kind} *")]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("operation", ["All", "Alter", "AlterConfigs", "ClusterAction"])
def test_what_takes_the_cluster_over_is_reported(shape: str, operation: str) -> None:
    user = user_with(shape, on("cluster", None, ["Describe", operation]))
    assert kit.judge(POLICY, user) == [message(f"{operation} on the cluster")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_an_empty_prefix_stands_for_every_name(shape: str) -> None:
    user = user_with(shape, on("topic", "", ["All"], resource={"patternType": "prefix"}))
    assert kit.judge(POLICY, user) == [message("All on topic with an empty prefix")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_all_operations_on_every_topic_may_not_be_spelled_out_either(shape: str) -> None:
    some, others = on("topic", "*", EVERY_OPERATION[:5]), on("topic", "*", EVERY_OPERATION[5:])
    reported = "Read, Write, Create, Delete, Alter, Describe, AlterConfigs, DescribeConfigs on topic *"
    assert kit.judge(POLICY, user_with(shape, some, others)) == [message(reported)]


@pytest.mark.parametrize("shape", WITH_OPERATION)
def test_the_older_single_operation_is_read_where_the_api_has_it(shape: str) -> None:
    acl = {"resource": {"type": "topic", "name": "*", "patternType": "literal"}, "operation": "All"}
    assert kit.judge(POLICY, user_with(shape, acl)) == [message("All on topic *")]


def test_the_older_single_operation_is_no_field_of_v1() -> None:
    acl = {"resource": {"type": "topic", "name": "*"}, "operation": "All", "operations": ["Read"]}
    assert kit.judge(POLICY, user_with(kit.V1, acl)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    "acl",
    [
        on("group", "*", ["Read", "Describe"]),
        on("topic", "*", ["Create", "Read", "Write", "Alter", "Describe", "AlterConfigs", "DescribeConfigs"]),
        on("topic", "items", ["All"]),
        on("topic", "items.", ["All"], resource={"patternType": "prefix"}),
        on("topic", "*", ["All"], resource={"patternType": "prefix"}),
        on("topic", "*", ["All"], type="deny"),
        on("topic", None, ["All"]),
        on("cluster", None, ["Describe", "Create", "DescribeConfigs", "IdempotentWrite"]),
    ],
    ids=str,
)
def test_what_makes_no_superuser_passes(shape: str, acl: dict[str, Any]) -> None:
    assert kit.judge(POLICY, user_with(shape, acl)) == []


def test_the_same_right_is_reported_once_and_every_other_one_too() -> None:
    every = on("topic", "*", ["All"])
    user = user_with(kit.V1, every, {**every, "host": "10.0.0.1"}, on("cluster", None, ["Alter"]))
    assert kit.judge(POLICY, user) == [message("All on topic *"), message("Alter on the cluster")]


def test_another_type_is_ignored() -> None:
    user = user_with(kit.V1, on("topic", "*", ["All"]))
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:KafkaUser", user.props)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_one_unknown_name_or_operation_hides_no_other(shape: str) -> None:
    unknown = on("topic", UNKNOWN_STRING_VALUE, ["All"])
    partly = on("group", "*", [UNKNOWN_STRING_VALUE, "All"])
    assert kit.judge(POLICY, user_with(shape, unknown, partly)) == [message("All on group *")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_name_that_is_no_text_hides_no_other_right(shape: str) -> None:
    odd = on("topic", None, ["All"], resource={"type": "topic", "name": {"of": ["a", "mapping"]}})
    user = user_with(shape, odd, {**odd, "resource": "topic"}, on("group", "*", ["All"]))
    assert kit.judge(POLICY, user) == [message("All on group *")]
