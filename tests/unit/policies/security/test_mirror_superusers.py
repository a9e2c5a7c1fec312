"""The rule on mirrors that log in as superusers."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.security.mirror_superusers import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_cluster, broken_mirror

CERTIFICATE = {"type": "tls", "certificateAndKey": {"secretName": "rt-inv-stg-user", "certificate": "a", "key": "b"}}
EVERYTHING = {"resource": {"type": "topic", "name": "*"}, "operations": ["All"]}
BY_CLUSTER = "authorization.superUsers of cluster rt-inventory-stg"
BY_ACL = "All on topic * of KafkaUser rt-inv-stg-user"
ELSEWHERE = "kafka.elsewhere.example.com:9094"


def violation() -> list[kit.Sample]:
    return [
        *broken_cluster(
            "superusers",
            lambda cluster: kit.brokers(cluster)["authorization"].update(superUsers=["User:root-of-mirrors"]),
        ),
        *broken_mirror(
            "mm-superuser",
            lambda mirror: (
                kit.target(mirror).update(bootstrapServers=f"superusers-stg-kafka-bootstrap.{kit.NAMESPACE}.svc:9093"),
                kit.target(mirror)["authentication"].update(username="root-of-mirrors"),
            ),
        ),
    ]


def message(shape: str, source: str, user: str = "rt-inv-stg-user", end: int = 1) -> str:
    where = (["mirrors[0].source", "target"] if shape == kit.V1 else ["clusters[es-src]", "clusters[es-tgt]"])[end]
    return (
        f"mirror mm2: {where} user {user} must not be a superuser (got it by {source}). "
        "Whoever reads the mirror's login has that cluster. Give the mirror a user with the rights it needs."
    )


class Stack:
    """Cluster, user and mirror of one stack, to be changed before they are judged."""

    def __init__(self, shape: str) -> None:
        self.cluster, self.user, self.mirror = kit.cluster(shape), kit.user(shape), kit.mirror(shape)

    def superusers(self, *principals: str) -> "Stack":
        kit.brokers(self.cluster)["authorization"]["superUsers"] = [*principals]
        return self

    def reached_at(self, servers: str) -> "Stack":
        kit.target(self.mirror)["bootstrapServers"] = servers
        return self

    def reported(self, **config: Any) -> list[str]:
        return kit.judge_stack(POLICY, [self.cluster, self.user, self.mirror], **config)


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_mirror_with_users_of_its_own_passes(shape: str) -> None:
    assert Stack(shape).reported() == []
    assert Stack(shape).superusers("CN=platform-admin").reported() == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("listed", ["rt-inv-stg-user", "User:rt-inv-stg-user"])
def test_a_login_that_its_cluster_lists_as_superuser_is_reported(shape: str, listed: str) -> None:
    assert Stack(shape).superusers("CN=other", listed).reported() == [message(shape, BY_CLUSTER)]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("listed", ["CN=rt-inv-stg-user", "User:CN=rt-inv-stg-user"])
def test_a_certificate_is_that_of_the_user_whose_secret_it_is(shape: str, listed: str) -> None:
    stack = Stack(shape).superusers(listed)
    kit.target(stack.mirror)["authentication"] = CERTIFICATE
    stack.user.spec["authentication"] = {"type": "tls"}
    assert stack.reported() == [message(shape, BY_CLUSTER, "CN=rt-inv-stg-user")]
    assert stack.superusers("rt-inv-stg-user").reported() == []


def test_a_certificate_is_that_of_its_secret_where_the_stack_has_no_such_user() -> None:
    stack = Stack(kit.V1).superusers("CN=rt-inv-stg-user")
    kit.target(stack.mirror)["authentication"] = CERTIFICATE
    expected = [message(kit.V1, BY_CLUSTER, "CN=rt-inv-stg-user")]
    assert kit.judge_stack(POLICY, [stack.cluster, stack.mirror]) == expected


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_the_user_operators_prefix_of_secrets_is_no_part_of_the_user(shape: str) -> None:
    stack = Stack(shape).superusers("CN=rt-inv-stg-user")
    spec = stack.cluster.spec["strimziOverrides"] if shape == kit.EVENT_STREAMS else stack.cluster.spec
    spec["entityOperator"] = {"userOperator": {"secretPrefix": "kafka-"}}
    secret = {**CERTIFICATE["certificateAndKey"], "secretName": "kafka-rt-inv-stg-user"}  # type: ignore[dict-item]
    kit.target(stack.mirror)["authentication"] = {"type": "tls", "certificateAndKey": secret}
    stack.user.spec["authentication"] = {"type": "tls"}
    assert stack.reported() == [message(shape, BY_CLUSTER, "CN=rt-inv-stg-user")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_login_whose_user_has_a_superusers_rights_is_reported(shape: str) -> None:
    stack = Stack(shape)
    stack.user.spec["authorization"]["acls"].append(EVERYTHING)
    assert stack.reported() == [message(shape, BY_ACL)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_the_users_secret_ties_it_to_the_mirror_wherever_the_cluster_is_reached(shape: str) -> None:
    stack = Stack(shape).reached_at(ELSEWHERE).superusers("rt-inv-stg-user")
    stack.user.spec["authorization"]["acls"].append(EVERYTHING)
    assert stack.reported() == [message(shape, BY_CLUSTER), message(shape, BY_ACL)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_user_of_the_cluster_is_known_by_its_name_where_its_secret_was_copied(shape: str) -> None:
    stack = Stack(shape)
    stack.user.spec["authorization"]["acls"].append(EVERYTHING)
    kit.target(stack.mirror)["authentication"]["passwordSecret"]["secretName"] = "copied"
    assert stack.reported() == [message(shape, BY_ACL)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_user_of_the_stack_is_judged_although_its_cluster_is_elsewhere(shape: str) -> None:
    stack = Stack(shape)
    stack.user.spec["authorization"]["acls"].append(EVERYTHING)
    assert kit.judge_stack(POLICY, [stack.user, stack.mirror]) == [message(shape, BY_ACL)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_user_of_the_same_name_at_another_cluster_is_another_user(shape: str) -> None:
    stack = Stack(shape).reached_at(ELSEWHERE).superusers("rt-inv-stg-user")
    stack.user.spec["authorization"]["acls"].append(EVERYTHING)
    kit.target(stack.mirror)["authentication"]["passwordSecret"]["secretName"] = "copied"
    assert stack.reported() == []


@pytest.mark.parametrize(
    "servers",
    [
        "rt-inventory-stg-kafka-bootstrap:9093",
        "rt-inventory-stg-kafka-bootstrap.rt-inventory-stg:9093",
        "rt-inventory-stg-kafka-external-bootstrap.rt-inventory-stg.svc:9094",
        "elsewhere.example.com:9093,RT-inventory-stg-kafka-bootstrap.rt-inventory-stg.svc.cluster.local:9093",
        "rt-inventory-stg-dual-0.rt-inventory-stg-kafka-brokers.rt-inventory-stg.svc:9093",
        "kafka.stg.example.com:9094",
        "kafka-alias.stg.example.com:9094",
        "kafka-0.stg.example.com:9094",
    ],
)
def test_every_name_of_the_cluster_leads_to_it(servers: str) -> None:
    stack = Stack(kit.V1).reached_at(servers).superusers("rt-inv-stg-user")
    kit.target(stack.mirror)["authentication"]["passwordSecret"]["secretName"] = "copied"
    kit.brokers(stack.cluster)["listeners"][1]["configuration"] = {
        "bootstrap": {"host": "kafka.stg.example.com", "alternativeNames": ["kafka-alias.stg.example.com"]},
        "brokers": [{"broker": 0, "advertisedHost": "kafka-0.stg.example.com"}],
    }
    assert stack.reported() == [message(kit.V1, BY_CLUSTER)]


@pytest.mark.parametrize(
    "servers",
    [
        "rt-inventory-stg-kafka-bootstrap.elsewhere.svc:9093",
        "rt-inventory-stg-kafka-bootstrap.rt-inventory-stg.example.com:443",
        "rt-inventory-dev-kafka-bootstrap:9093",
        "old-rt-inventory-stg-kafka-bootstrap:9093",
        "kafka.stg.example.com:9094",
    ],
)
def test_the_name_of_another_cluster_does_not_lead_to_it(servers: str) -> None:
    stack = Stack(kit.V1).reached_at(servers).superusers("rt-inv-stg-user")
    kit.target(stack.mirror)["authentication"]["passwordSecret"]["secretName"] = "copied"
    assert stack.reported() == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_superusers_of_clusters_elsewhere_are_configured(shape: str) -> None:
    stack = Stack(shape)
    expected = [message(shape, "the option superUsers", "rt-inv-dev-user", end=0)]
    assert stack.reported(superUsers=["User:rt-inv-dev-user", "rt-inv-stg-user"]) == expected
    assert stack.reported(superUsers=["CN=rt-inv-dev-user"]) == []


def test_a_login_without_authentication_is_anonymous() -> None:
    stack = Stack(kit.V1).superusers("ANONYMOUS")
    del kit.target(stack.mirror)["authentication"]
    assert stack.reported() == [message(kit.V1, BY_CLUSTER, "ANONYMOUS")]


def test_a_login_that_does_not_name_its_user_is_not_judged() -> None:
    stack = Stack(kit.V1).superusers("rt-inv-stg-user", "None")
    kit.target(stack.mirror)["authentication"] = {"type": "custom", "sasl": True, "username": "rt-inv-stg-user"}
    assert stack.reported() == []


def test_a_finding_belongs_to_the_mirror() -> None:
    stack = Stack(kit.V1).superusers("rt-inv-stg-user")
    found = kit.judge_stack_by_urn(POLICY, [stack.cluster, stack.user, stack.mirror])
    assert [urn for _message, urn in found] == [stack.mirror.urn]


def test_other_types_are_ignored() -> None:
    stack = Stack(kit.V1).superusers("rt-inv-stg-user")
    stack.mirror = kit.Sample("kubernetes:example.com/v1:KafkaMirrorMaker2", stack.mirror.props)
    assert stack.reported() == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_one_unknown_login_or_cluster_hides_no_other(shape: str) -> None:
    stack = Stack(shape).superusers("rt-inv-stg-user")
    kit.source(stack.mirror)["authentication"]["username"] = UNKNOWN_STRING_VALUE
    kit.source(stack.mirror)["authentication"]["passwordSecret"]["secretName"] = UNKNOWN_STRING_VALUE
    later, cluster = kit.cluster(shape), stack.cluster
    later.props["metadata"]["namespace"] = UNKNOWN_STRING_VALUE
    assert kit.judge_stack(POLICY, [later, cluster, stack.user, stack.mirror]) == [message(shape, BY_CLUSTER)]
