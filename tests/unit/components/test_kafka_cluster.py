"""The cluster as others reach it: address and authority of its listener, names and protection of its resources."""

from typing import Any

import pulumi
import pytest

from ...support.pulumi_engine import PLATFORM, Engine, target, up
from ...support.recorded_program import CERTIFICATE

EVENT_STREAMS = {"type": "event-streams", "version": "11.0.0", "license": {"accept": True}}
TWO = [{"name": "tls", "port": 9093}, {"name": "external", "port": 9094, "type": "loadbalancer"}]


def cluster(**settings: Any) -> dict[str, Any]:
    """A stack with nothing but a cluster."""
    own = {"name": "kafka-stg", "namespace": "stg", "protect": False, **settings}
    return target(cluster=own, users=[], mirrors=[])


def status(*listeners: dict[str, Any], key: str = "listeners") -> dict[str, Any]:
    """What an operator reports when it is done."""
    return {"conditions": [{"type": "Ready", "status": "True"}], key: list(listeners)}


INSIDE = {"name": "tls", "bootstrapServers": "inside:9093", "certificates": [CERTIFICATE]}
OUTSIDE = {"name": "external", "bootstrapServers": "outside:443", "certificates": [CERTIFICATE, CERTIFICATE]}


def test_clients_get_the_listener_that_the_settings_name() -> None:
    for named, expected in ((None, INSIDE), ("external", OUTSIDE)):
        choice = {"listener": named} if named else {}
        seen = up(Engine(status=status(OUTSIDE, INSIDE)), cluster(listeners=TWO, **choice))
        assert seen.exports["cluster"]["bootstrapServers"] == expected["bootstrapServers"]
        authorities = expected["certificates"]
        assert seen.exports["clusterCaCertificate"] == "".join(each + "\n" for each in authorities)


def test_an_exposed_cluster_is_reached_from_outside_by_one_listener_and_from_inside_by_the_other() -> None:
    engine = Engine(status=status(INSIDE, OUTSIDE))
    seen = up(engine, cluster(expose={"type": "nodeport", "host": "10.0.0.7"}))
    assert seen.exports["cluster"]["bootstrapServers"] == "outside:443"
    assert seen.exports["cluster"]["internalBootstrapServers"] == "inside:9093"
    inside, outside = engine.one("v1:Kafka")["spec"]["kafka"]["listeners"]
    login = {"type": "scram-sha-512"}
    assert inside == {"name": "tls", "port": 9093, "type": "internal", "tls": True, "authentication": login}
    # The brokers' certificates name a node only if it is said.
    names = {"bootstrap": {"alternativeNames": ["10.0.0.7"]}, "advertisedHostTemplate": "10.0.0.7"}
    assert outside == {**inside, "name": "external", "port": 9094, "type": "nodeport", "configuration": names}


def test_event_streams_publishes_its_listeners_under_another_name_and_by_type() -> None:
    old = {"type": "tls", "bootstrapServers": "es:9093", "certificates": [CERTIFICATE]}
    engine = Engine(status=status(old, key="kafkaListeners"))
    seen = up(engine, {**cluster(), "platform": EVENT_STREAMS})
    assert seen.exports["cluster"]["bootstrapServers"] == "es:9093"
    waits = engine.one("v1beta2:EventStreams")["metadata"]["annotations"]["pulumi.com/waitFor"]
    assert waits == '["jsonpath={.status.phase}=Ready"]'


def test_a_listener_without_tls_has_no_authority() -> None:
    plain = [{"name": "plain", "port": 9092, "tls": False}]
    published = {"name": "plain", "bootstrapServers": "inside:9092"}
    seen = up(Engine(status=status(published)), cluster(listeners=plain))
    assert seen.exports["cluster"]["securityProtocol"] == "SASL_PLAINTEXT"
    assert seen.exports["cluster"]["caSecret"] is None
    assert seen.exports["clusterCaCertificate"] is None


def test_a_listener_without_authentication_has_no_mechanism() -> None:
    listener = [{"name": "tls", "port": 9093, "authentication": "none"}]
    seen = up(Engine(status=status(INSIDE)), cluster(listeners=listener))
    connection = seen.exports["cluster"]
    assert (connection["securityProtocol"], connection["saslMechanism"]) == ("SSL", None)


@pytest.mark.parametrize(
    "published", [{}, {"name": "external"}, {"name": "external", "bootstrapServers": "outside:443"}]
)
def test_a_cluster_that_is_ready_without_its_listener_ends_the_up(published: dict[str, Any]) -> None:
    reported = r"Kafka kafka-stg: status must hold listener external with bootstrapServers and certificates .*kubectl"
    with pytest.raises(pulumi.RunError, match=reported):
        up(Engine(status=status(INSIDE, published)), cluster(listeners=TWO, listener="external"))


def test_a_listener_that_is_yet_to_be_made_is_unknown_in_its_preview() -> None:
    engine = Engine(status=status(INSIDE), preview=True)
    seen = up(engine, cluster(listeners=TWO, listener="external"))
    assert {"cluster", "clusterCaCertificate"} <= seen.unknown


def test_resources_keep_their_names_and_pools_are_named_only_where_there_are_several_kinds() -> None:
    engine = Engine()
    up(engine, cluster())
    assert {name for kind, name in engine.resources if kind in ("v1:Kafka", "v1:KafkaNodePool")} == {
        "cluster-kafka",
        "cluster-pool",
    }
    assert [urn.rsplit("::", 1)[-1] for urn in engine.asked("cluster-kafka").dependencies] == ["cluster-pool"]
    pools = [
        {"name": "controller", "roles": ["controller"], "replicas": 3},
        {"name": "broker", "roles": ["broker"], "replicas": 3},
    ]
    engine = Engine()
    up(engine, cluster(nodePools=pools))
    assert {name for kind, name in engine.resources if kind == "v1:KafkaNodePool"} == {
        "cluster-pool-controller",
        "cluster-pool-broker",
    }
    engine = Engine(status=status({**INSIDE}, key="kafkaListeners"))
    up(engine, {**cluster(), "platform": EVENT_STREAMS})
    assert ("v1beta2:EventStreams", "cluster-eventstreams") in engine.resources
    assert "v1beta2:KafkaNodePool" not in engine.kinds()


def test_a_protected_cluster_protects_its_namespace_pools_topics_and_copies() -> None:
    for protect in (True, False):
        engine = Engine()
        own = {"name": "kafka-stg", "namespace": "stg", "protect": protect}
        topics = [{"name": "audit", "partitions": 1, "replicas": 3}]
        up(engine, target(cluster=own, topics=topics))
        names = ("cluster-kafka", "cluster-pool", "namespaces-stg", "topics-audit", "secrets-stg/rt-inv-dev-user")
        assert {name: engine.asked(name).protect for name in names} == dict.fromkeys(names, protect)
        assert not engine.asked("mm2-mirror").protect


def test_a_namespace_that_exists_already_is_not_made() -> None:
    engine = Engine()
    up(engine, cluster(createNamespace=False))
    assert "v1:Namespace" not in engine.kinds()


def test_each_platform_is_asked_in_its_own_api_version() -> None:
    for platform, version in (
        (PLATFORM, "kafka.strimzi.io/v1"),
        ({"type": "strimzi", "version": "0.51.0"}, "kafka.strimzi.io/v1beta2"),
        (EVENT_STREAMS, "eventstreams.ibm.com/v1beta2"),
    ):
        key = "kafkaListeners" if platform is EVENT_STREAMS else "listeners"
        engine = Engine(status=status(INSIDE, key=key))
        up(engine, {**target(), "platform": platform})
        custom = {
            inputs["apiVersion"]
            for inputs in engine.resources.values()
            if str(inputs.get("kind")).startswith(("Kafka", "Event"))
        }
        assert custom == {version}
