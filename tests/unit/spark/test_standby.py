"""The check of a read-only standby: who may write is named, and what was not shown is never called safe."""

from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from contract.verification_request import ClusterConfig, Mirror
from kafka.topic_writers import BrokerRights, is_operators
from spark.checks.registry import NOTHING, not_judged
from spark.checks.topics import principal, standby_read_only

from ...support.certificates import certificate

SIDE = ClusterConfig(role="target", alias="es-tgt", client_config={"sasl.username": "mirror"})
OWN, APP = "User:mirror", "User:app"
LITERAL, PREFIX = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED


def rule(who: str, name: str = "items", pattern: Any = LITERAL, *, deny: bool = False, operation: str = "WRITE") -> Any:
    permission = AclPermissionType.DENY if deny else AclPermissionType.ALLOW
    return AclBinding(ResourceType.TOPIC, name, pattern, who, "*", AclOperation[operation], permission)


def judged(*rules: Any, **known: Any) -> Any:
    return standby_read_only(SIDE, BrokerRights(rules=rules, **known), ["items", "store.inventory"])


def test_a_standby_that_only_the_mirror_may_write_holds() -> None:
    check = judged(rule(OWN, "*"), rule(APP, operation="READ"), rule(APP, "audit"))
    observed = "no rule lets anybody write 2 topics of target es-tgt (super users need none)"
    assert (check.ok, check.observed) == (True, observed)


@pytest.mark.parametrize(
    ("granted", "who"),
    [
        (rule(APP), APP),
        (rule(APP, "*"), APP),
        (rule(APP, "store.", PREFIX), APP),
        (rule(APP, operation="ALL"), APP),
        (rule("User:*"), "User:*"),
    ],
)
def test_whoever_may_write_is_named_with_what_lets_it(granted: Any, who: str) -> None:
    check = judged(rule(OWN, "*"), granted)
    assert check.ok is False
    assert f"on target es-tgt may write: {who} (" in check.observed
    assert [row["principal"] for row in check.evidence] == [who]


def test_what_the_fence_denies_holds_against_every_right() -> None:
    denials = [rule(APP, name, deny=True) for name in ("items", "store.inventory")]
    assert judged(rule(APP, "*"), *denials).ok is True
    assert judged(rule(APP, "*"), denials[0]).ok is False, "the other topic is open"


def test_brokers_and_the_operator_are_not_named() -> None:
    operators = "User:CN=rt-kafka,O=io.strimzi"
    check = judged(*(rule(who, "*") for who in (OWN, operators, "User:CN=rt-entity-topic-operator,O=io.strimzi")))
    assert check.ok is True
    assert is_operators(operators)
    assert not is_operators("User:CN=app-kafka,O=example")


def test_a_topic_without_any_rule_is_unknown_for_brokers_do_not_show_what_holds_then() -> None:
    check = judged(rule(OWN, "*"))
    assert check.ok is True, "a rule for every topic is a rule"
    check = judged(rule(OWN))
    unknown = "no rule names store.inventory: whether everybody may write then is shown by no broker"
    assert (check.ok, check.observed) == (None, unknown)
    assert judged(rule(APP)).ok is False, "who may write one of them is named"


def test_a_cluster_without_an_authorizer_is_open() -> None:
    check = judged(everybody=True)
    assert (check.ok, check.evidence) == (False, [{"principal": "User:*", "by": "the cluster has no authorizer"}])


def test_what_may_not_be_seen_is_unknown_and_says_what_to_grant() -> None:
    refused = "user mirror may not Describe cluster. Grant Describe on cluster."
    check = standby_read_only(SIDE, BrokerRights(rules=None, unknown=(refused,)), ["items"])
    assert (check.ok, check.observed) == (None, refused)
    assert standby_read_only(SIDE, None, ["items"]).ok is None


def test_without_a_topic_there_is_nothing_to_judge() -> None:
    check = standby_read_only(SIDE, BrokerRights(rules=()), [])
    assert (check.ok, check.observed) == (None, NOTHING)


def test_a_certificate_is_known_by_its_subject() -> None:
    shown = {"ssl.certificate.pem": certificate("mirror", ends_in_days=10)}
    side = ClusterConfig(role="target", alias="t", client_config=shown)
    assert principal(side) == "User:CN=mirror"
    assert principal(SIDE) == OWN


def test_a_request_that_does_not_say_who_is_active_leaves_it_out() -> None:
    mirror = Mirror(source_alias="a", target_alias="b", topics=("items",))
    assert "standby_read_only" in {one["name"] for one in not_judged(mirror)}
    active = Mirror(source_alias="a", target_alias="b", topics=("items",), active="source")
    assert "standby_read_only" not in {one["name"] for one in not_judged(active)}
