"""The rule on users that may write what a mirror brings to their cluster."""

from typing import Any

import pytest

from policies.rules.security.standby_read_only import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_cluster, broken_mirror, broken_user, in_cluster

SERVERS = "standby-stg-kafka-bootstrap.{}.svc:9093"


def violation() -> list[kit.Sample]:
    (user,) = broken_user("writes", lambda user: None)
    return [
        *broken_cluster("standby", lambda cluster: None),
        in_cluster(user, "standby-stg"),
        *broken_mirror(
            "mm-standby", lambda mirror: kit.target(mirror).update(bootstrapServers=SERVERS.format(kit.NAMESPACE))
        ),
    ]


def right(name: str, pattern: str = "literal", type_: str = "allow", *operations: str) -> dict[str, Any]:
    resource = {"type": "topic", "name": name, "patternType": pattern}
    return {"type": type_, "host": "*", "operations": [*(operations or ("Write",))], "resource": resource}


class Stack:
    """A standby with its mirror and an application's user, to be changed before they are judged."""

    def __init__(self, shape: str = kit.V1, *rights: dict[str, Any]) -> None:
        self.shape, self.mirror, self.user = shape, kit.mirror(shape), kit.user(shape)
        self.user.props["metadata"]["name"] = "app"
        self.user.spec["authorization"]["acls"] = [*rights]
        self.others = [kit.cluster(shape), kit.user(shape)]

    def naming(self, pattern: str, *, prefixed: bool = False) -> "Stack":
        kit.flow(self.mirror)["topicsPattern"] = pattern
        if prefixed:
            kit.flow(self.mirror)["sourceConnector"]["config"].pop("replication.policy.class")
        return self

    def reported(self) -> list[str]:
        return kit.judge_stack(POLICY, [*self.others, self.user, self.mirror])


def message(topic: str, by: str) -> list[str]:
    return [
        f"user app: authorization.acls must not allow Write on {topic} while mirror mm2 brings it (got it by {by}). "
        "The mirror never sees what an application writes on a standby: deny it until a failover."
    ]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_standby_on_which_only_the_mirror_writes_passes(shape: str) -> None:
    assert Stack(shape).reported() == []
    assert Stack(shape, right("audit"), right("items", "literal", "allow", "Read", "Describe")).reported() == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_user_that_may_write_a_mirrored_topic_is_reported(shape: str) -> None:
    assert Stack(shape, right("items")).reported() == message("items", "topic items")


@pytest.mark.parametrize(
    ("granted", "topic", "by"),
    [
        (right("*"), "items", "topic *"),
        (right("store.", "prefix"), "store.inventory", "prefix store."),
        (right("", "prefix"), "items", "prefix with an empty prefix"),
        (right("items", "literal", "allow", "All"), "items", "topic items"),
    ],
)
def test_a_right_reaches_as_far_as_kafka_lets_it(granted: dict[str, Any], topic: str, by: str) -> None:
    assert Stack(kit.V1, granted).reported() == message(topic, by)


def test_one_operation_of_the_older_api_counts_too() -> None:
    granted = {**right("items"), "operation": "Write"}
    del granted["operations"]
    assert Stack(kit.V1BETA2, granted).reported() == message("items", "topic items")


@pytest.mark.parametrize("denial", [right("*", "literal", "deny"), right("", "prefix", "deny")])
def test_a_denial_wins(denial: dict[str, Any]) -> None:
    assert Stack(kit.V1, right("*"), denial).reported() == []


def test_a_denial_of_some_leaves_the_others() -> None:
    some = right("items", "prefix", "deny")
    assert Stack(kit.V1, right("*"), some).reported() == message("store.inventory", "topic *")


def test_names_behind_a_prefix_are_tried_and_a_denied_prefix_passes() -> None:
    stack = Stack(kit.V1, right("orders.eu")).naming(r"orders\..*")
    assert stack.reported() == message("orders.eu", "topic orders.eu")
    stack.user.spec["authorization"]["acls"].append(right("orders.", "prefix", "deny"))
    assert stack.reported() == []


def test_prefixed_names_are_judged_as_they_are_on_the_standby() -> None:
    assert Stack(kit.V1, right("items")).naming("items", prefixed=True).reported() == []
    found = Stack(kit.V1, right("es-src.items")).naming("items", prefixed=True).reported()
    assert found == message("es-src.items", "topic es-src.items")


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_mirror_at_rest_has_no_standby(shape: str) -> None:
    stack = Stack(shape, right("items"))
    kit.flow(stack.mirror)["sourceConnector"]["state"] = "stopped"
    assert stack.reported() == []


def test_a_mirror_that_carries_over_what_was_left_while_its_target_is_active_has_no_standby() -> None:
    stack = Stack(kit.V1, right("items"))
    kit.flow(stack.mirror)["groupsPattern"] = "nothing/yet"
    assert stack.reported() == []


def test_users_of_another_cluster_are_not_judged() -> None:
    stack = Stack(kit.V1, right("items"))
    stack.user.props["metadata"]["labels"] = {"strimzi.io/cluster": "another"}
    assert stack.reported() == []
    stack = Stack(kit.V1, right("items"))
    kit.target(stack.mirror)["bootstrapServers"] = "kafka.elsewhere.example.com:9094"
    assert stack.reported() == []


def test_a_mirror_that_logs_in_with_a_certificate_may_write() -> None:
    stack = Stack(kit.V1, right("items"))
    certificate = {"secretName": "app", "certificate": "user.crt", "key": "user.key"}
    kit.target(stack.mirror)["authentication"] = {"type": "tls", "certificateAndKey": certificate}
    stack.user.spec["authentication"] = {"type": "tls"}
    stack.others.pop()
    assert stack.reported() == []


def test_an_exception_lifts_it_from_the_user() -> None:
    stack = Stack(kit.V1, right("items"))
    stack.user.annotated(**{"exception.rt-inventory/standby-read-only": "until 2999-12-31: audited by hand"})
    assert stack.reported() == []
