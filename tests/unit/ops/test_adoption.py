"""What an adoption reads out of live objects, and what it finds that the settings would take away."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kubernetes.config import kube_config

from ops.adoption import live as live_objects
from ops.adoption.command import Declared, differences, own_differences, surplus
from ops.adoption.describe import described, described_mirror
from ops.adoption.live import Live
from ops.errors import OpsError
from ops.recovery import kubernetes_access
from settings import parse
from tests.support.mirror_api_server import ApiServer, serving

KAFKA: dict[str, Any] = {
    "kind": "Kafka",
    "metadata": {"name": "orders", "namespace": "kafka"},
    "spec": {
        "kafka": {
            "listeners": [{"name": "tls", "port": 9093, "type": "internal", "tls": True}],
            "config": {
                "offsets.topic.replication.factor": 1,
                "transaction.state.log.replication.factor": 1,
                "transaction.state.log.min.isr": 1,
            },
        },
    },
}
POOL: dict[str, Any] = {
    "kind": "KafkaNodePool",
    "metadata": {"name": "nodes", "namespace": "kafka"},
    "spec": {"replicas": 1, "roles": ["broker", "controller"], "storage": {"type": "persistent-claim", "size": "5Gi"}},
}


def live(**changed: Any) -> Live:
    found = {"cluster": KAFKA, "pools": [POOL], "users": [], "topics": [], "mirrors": []}
    return Live(**{"api_version": "kafka.strimzi.io/v1", **found, **changed})


def test_what_is_described_is_a_good_stack_file() -> None:
    topic = {"metadata": {"name": "orders-eu"}, "spec": {"topicName": "Orders.EU", "partitions": 3, "replicas": 1}}
    user = {"metadata": {"name": "reader"}, "spec": {"authentication": {"type": "tls"}}}
    values = described(live(topics=[topic], users=[user]))
    stack = parse(values, "prod")
    assert stack.topics[0].resource_name == "orders-eu"
    assert stack.cluster.all_node_pools[0].storage is not None
    assert stack.cluster.all_node_pools[0].storage.size_gib == 5
    assert not stack.cluster.config_defaults


def test_peers_of_a_listener_are_adopted_as_they_are() -> None:
    peers = [
        {"podSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
        {"ipBlock": {"cidr": "10.0.0.0/8"}},
    ]
    kafka = {
        **KAFKA["spec"]["kafka"],
        "listeners": [{**KAFKA["spec"]["kafka"]["listeners"][0], "networkPolicyPeers": peers}],
    }
    found = parse(described(live(cluster={**KAFKA, "spec": {**KAFKA["spec"], "kafka": kafka}})), "prod")
    assert [peer.rendered() for peer in found.cluster.all_listeners[0].network_policy_peers] == peers


def test_an_adoption_takes_no_application_a_right_away() -> None:
    writer = {"metadata": {"name": "writer"}, "spec": {"authentication": {"type": "scram-sha-512"}}}
    (found,) = described(live(users=[writer], mirrors=[mirror("a")]))["mirrors"]
    assert found["standby"] == "open"


def test_exceptions_from_policies_are_adopted_and_no_other_annotation() -> None:
    exception = {"exception.rt-inventory/a-rule": "until 2027-03-31: why"}
    others = {"strimzi.io/kraft": "enabled", "argocd.argoproj.io/tracking-id": "x", "pulumi.com/waitFor": "y"}

    def marked(found: dict[str, Any], name: str = "") -> dict[str, Any]:
        metadata = {"name": name, **found.get("metadata", {}), "annotations": {**others, **exception}}
        return {**found, "metadata": metadata}

    topic = marked({"spec": {"partitions": 3, "replicas": 1}}, "orders")
    user = marked({"spec": {"authentication": {"type": "tls"}}}, "writer")
    values = described(
        live(cluster=marked(KAFKA), pools=[marked(POOL)], users=[user], topics=[topic], mirrors=[marked(mirror("a"))])
    )
    places = [values["cluster"], values["cluster"]["nodePools"][0]]
    places += [values[key][0] for key in ("users", "topics", "mirrors")]
    assert [place["annotations"] for place in places] == [exception] * 5
    assert "annotations" not in described(live())["cluster"]


def test_an_annotation_that_is_declared_and_not_there_is_reported_and_pulumis_are_not() -> None:
    declared = {"pulumi.com/waitFor": "x", "exception.rt-inventory/a-rule": "until 2027-03-31: why"}
    metadata = {"name": "orders", "namespace": "kafka", "annotations": declared}
    inputs = {"kind": "KafkaTopic", "metadata": metadata, "spec": {"partitions": 3}}
    topic = Declared(urn="urn:pulumi:prod::p::KafkaTopic::topics-orders", type="", parent=None, inputs=inputs)
    there = {"metadata": {"annotations": {"example.com/of": "somebody else"}}, "spec": {"partitions": 3}}
    assert own_differences(topic, there) == [
        "metadata.annotations[exception.rt-inventory/a-rule] (declared 'until 2027-03-31: why', there nothing)"
    ]
    assert own_differences(topic, {**there, "metadata": {"annotations": declared}}) == []


def test_a_mirror_of_event_streams_stays_counted_as_it_is() -> None:
    use = "CloudPakForIntegrationProduction"
    spec = {"version": "11.3.0", "license": {"accept": True, "use": use}, "strimziOverrides": KAFKA["spec"]}
    counted = mirror("a")
    annotations = {"eventstreams.production.type": use, "productID": "0123", "productName": "IBM Event Streams"}
    annotations |= {"productCloudpakRatio": "1:1", "productChargedContainers": "mm2-mirrormaker2", "team": "sre"}
    counted["spec"]["template"] = {"pod": {"metadata": {"annotations": annotations}}}
    writer = {"metadata": {"name": "writer"}, "spec": {"authentication": {"type": "scram-sha-512"}}}
    there: dict[str, Any] = {"api_version": "eventstreams.ibm.com/v1beta2", "users": [writer], "pools": []}
    there["cluster"] = {**KAFKA, "kind": "EventStreams", "spec": spec}
    platform = described(live(**there, mirrors=[counted]))["platform"]
    assert platform["cloudPak"] == {
        "productionType": use,
        "productId": "0123",
        "productName": "IBM Event Streams",
        "cloudpakRatio": "1:1",
        "annotations": {"team": "sre"},
    }
    assert "cloudPak" not in described(live(**there))["platform"]


def test_a_password_that_the_operator_made_stays_its_own() -> None:
    user = {"metadata": {"name": "app"}, "spec": {"authentication": {"type": "scram-sha-512"}}}
    assert described(live(users=[user]))["users"][0]["generatedBy"] == "operator"


def test_what_the_settings_cannot_say_is_reported_and_so_not_taken_away_unseen() -> None:
    there = {"kafka": {"config": {"a": 1}, "listeners": [{"name": "tls", "unknown": [{}]}]}, "x.y": {"z": 1}}
    declared = {"kafka": {"config": {"a": 1}, "listeners": [{"name": "tls"}]}}
    assert list(differences(declared, there, "spec")) == []
    assert list(surplus(declared, there, "spec")) == [
        "spec.kafka.listeners[0].unknown (there, and the settings cannot express it)",
        "spec[x.y] (there, and the settings cannot express it)",
    ]


def test_a_value_that_differs_is_reported_with_both() -> None:
    assert list(differences({"a": [1, 2]}, {"a": [1, 3]})) == ["a[1] (declared 2, there 3)"]
    assert list(differences({"a": {}}, {})) == []


@pytest.mark.parametrize(
    ("joined", "parts"),
    [("a|b", ["a", "b"]), ("a,b", ["a", "b"]), (r"x\.(a|b)|c", [r"x\.(a|b)", "c"]), (r"a\|b", [r"a\|b"])],
)
def test_alternatives_are_reported_apart_only_where_they_are_apart(joined: str, parts: list[str]) -> None:
    assert described_mirror(mirror(joined), [{"name": "writer"}])["topics"] == parts


def test_a_mirror_of_several_sources_is_refused_by_name() -> None:
    several = mirror("a")
    several["spec"]["mirrors"] *= 2
    with pytest.raises(OpsError, match=r"KafkaMirrorMaker2 mm2: spec\.mirrors must have one entry .*got 2"):
        described_mirror(several, [{"name": "writer"}])


def mirror(topics: str) -> dict[str, Any]:
    end = {
        "alias": "a",
        "bootstrapServers": "a:9093",
        "authentication": {"type": "scram-sha-512", "username": "writer"},
    }
    flow = {"source": {**end, "alias": "b"}, "topicsPattern": topics}
    return {"metadata": {"name": "mm2"}, "spec": {"target": end, "mirrors": [flow]}}


@pytest.mark.parametrize(
    ("group", "plural", "domain"),
    [("kafka.strimzi.io", "kafkas", "strimzi.io"), ("eventstreams.ibm.com", "eventstreams", "eventstreams.ibm.com")],
)
def test_users_and_topics_of_a_cluster_are_found_by_the_label_of_their_own_operator(
    monkeypatch: pytest.MonkeyPatch, group: str, plural: str, domain: str
) -> None:
    def named(name: str, **labels: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "namespace": "kafka", "labels": labels}}

    other = "strimzi.io" if domain != "strimzi.io" else "eventstreams.ibm.com"
    there = {
        plural: [named("orders")],
        "kafkausers": [
            named("app", **{f"{domain}/cluster": "orders"}),
            named("theirs", **{f"{other}/cluster": "orders"}),
        ],
        "kafkatopics": [
            named("items", **{f"{domain}/cluster": "orders"}),
            named("old", **{f"{domain}/cluster": "past"}),
        ],
    }
    monkeypatch.setattr(live_objects, "connect", lambda _: None)
    monkeypatch.setattr(
        live_objects, "_listed", lambda _, of, version, namespace, kind: there.get(kind, []) if of == group else []
    )
    found = live_objects.read("kafka", None, None)
    assert [each["metadata"]["name"] for each in (*found.users, *found.topics)] == ["app", "items"]


@dataclass
class Busy(ApiServer):
    """An API server that gives these answers before an empty list; 0 closes the connection."""

    failures: list[int] = field(default_factory=list)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        code = self.failures.pop(0) if self.failures else 200
        if code == 0:
            raise ConnectionAbortedError
        return code, {"items": [], "message": "not now"}


@pytest.mark.parametrize(
    ("failures", "reported"),
    [
        ([429, 503, 0, 429], "must have a Kafka or EventStreams resource"),
        ([429] * 10_000, r"must accept the request within 0.5 s \(got 429: .*run this again once it answers"),
        ([401], "log in again, then run this again"),
        ([403], "Ask for the right to list them"),
        ([0] * 10_000, "must answer within"),
    ],
    ids=["for a while", "for long", "a token that has expired", "without the right", "away"],
)
def test_an_api_server_that_is_busy_or_refuses_is_waited_for_or_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: list[int], reported: str
) -> None:
    monkeypatch.setattr(kubernetes_access, "FIRST_PAUSE_S", 0.01)
    if len(failures) > 4:
        monkeypatch.setattr(kubernetes_access, "TRIED_WITHIN_S", 0.5)
    server = Busy({}, failures=failures, headers={"Retry-After": "3600"} if len(failures) > 4 else {})
    with serving(server, tmp_path) as environment:
        monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", environment["KUBECONFIG"])
        with pytest.raises(OpsError, match=reported):
            live_objects.read("kafka", None, None)
