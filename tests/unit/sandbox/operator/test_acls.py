from collections.abc import Mapping

import pytest
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # the package does not list it

from sandbox.operator import users
from sandbox.operator.topics import config_changes, config_values


def user(*entries: Mapping[str, object]) -> dict[str, object]:
    return {"authorization": {"type": "simple", "acls": list(entries)}}


def test_every_operation_is_a_rule_with_strimzis_defaults() -> None:
    rules = users.declared_acls(
        "u", user({"resource": {"type": "topic", "name": "t"}, "operations": ["Read", "Write"]})
    )
    assert rules == {users.AclRule("TOPIC", "t", "LITERAL", operation, "ALLOW", "*") for operation in ("READ", "WRITE")}


def test_a_rule_survives_the_way_to_the_cluster_and_back() -> None:
    entry = {
        "resource": {"type": "group", "name": "g-", "patternType": "prefix"},
        "operations": ["Read"],
        "type": "deny",
    }
    rules = users.declared_acls("u", user(entry))
    assert users.existing_acls(users.acl_binding("User:u", rule) for rule in rules) == rules


def test_cluster_rules_carry_kafkas_name_of_the_cluster() -> None:
    (rule,) = users.declared_acls("u", user({"resource": {"type": "cluster"}, "operations": ["Describe"]}))
    assert (rule.name, rule.resource) == ("kafka-cluster", "BROKER")
    assert users.acl_binding("User:u", rule).operation == AclOperation.DESCRIBE


def test_an_unknown_operation_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(ValueError, match="got Fly, allowed All, Read"):
        users.declared_acls("u", user({"resource": {"type": "topic", "name": "t"}, "operations": ["Fly"]}))


def test_topic_options_are_set_removed_and_left_as_needed() -> None:
    wanted = config_values({"config": {"a": True, "b": ["x", "y"], "c": 1, "d": None}})
    assert wanted == {"a": "true", "b": "x,y", "c": "1"}
    changes = config_changes({"a": "true", "b": "x", "gone": "1"}, wanted)
    assert [(entry.name, entry.value) for entry in changes] == [("b", "x,y"), ("c", "1"), ("gone", None)]
