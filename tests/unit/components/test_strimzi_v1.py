"""Clusters, users, topics and mirrors of kafka.strimzi.io/v1 as they are rendered from settings."""

from typing import Any

import pytest

from components.dialects import cluster_spec, strimzi_v1
from settings.acl_sets import acls
from settings.topics import Topic
from settings.users import Acl

from ...support.component_settings import HTTPS, V1, cluster, mirror, mirror_spec, rendered_side, user

POLICY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
DERIVED = {
    "default.replication.factor": 3,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "min.insync.replicas": 2,
    "transaction.state.log.min.isr": 2,
    "auto.create.topics.enable": False,
}


def kafka(**settings: Any) -> dict[str, Any]:
    """The brokers' part of the Kafka resource."""
    *_, main = strimzi_v1.cluster(cluster(**settings), "4.3.1", V1)
    found: dict[str, Any] = main.spec["kafka"]
    return found


def pools(**settings: Any) -> list[dict[str, Any]]:
    """Specs of the node pools."""
    *found, _ = strimzi_v1.cluster(cluster(**settings), "4.3.1", V1)
    return [pool.spec for pool in found]


def test_a_plain_cluster_is_one_pool_of_both_roles_and_a_kafka_that_names_nothing_else() -> None:
    pool, main = strimzi_v1.cluster(cluster(), "4.3.1", V1)
    assert (pool.kind, pool.name, dict(pool.labels)) == ("KafkaNodePool", "dual", {"strimzi.io/cluster": "kafka-us"})
    assert pool.spec == {"replicas": 3, "roles": ["controller", "broker"], "storage": {"type": "ephemeral"}}
    assert (main.kind, main.name, dict(main.labels), dict(main.annotations)) == ("Kafka", "kafka-us", {}, {})
    scram = {"type": "scram-sha-512"}
    assert main.spec == {
        "kafka": {
            "version": "4.3.1",
            "listeners": [{"name": "tls", "port": 9093, "type": "internal", "tls": True, "authentication": scram}],
            "authorization": {"type": "simple"},
            "config": DERIVED,
        },
        "entityOperator": {"topicOperator": {}, "userOperator": {}},
    }


LISTENER = {"name": "one", "port": 9094}
RENDERED = {"name": "one", "port": 9094, "type": "internal", "tls": True, "authentication": {"type": "scram-sha-512"}}
TEMPLATE = "broker-{nodeId}.example.com"
SELECTED = {
    "namespaceSelector": {},
    "podSelector": {
        "matchLabels": {"strimzi.io/cluster": "mm2"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["one"]}],
    },
}
NO_LOGIN = {key: value for key, value in RENDERED.items() if key != "authentication"}


@pytest.mark.parametrize(
    ("settings", "rendered"),
    [
        ({}, RENDERED),
        ({"authentication": "tls"}, {**RENDERED, "authentication": {"type": "tls"}}),
        ({"authentication": "none"}, NO_LOGIN),
        ({"authentication": "none", "tls": False}, {**NO_LOGIN, "tls": False}),
        (
            {"type": "route", "host": "kafka.example.com", "hostTemplate": TEMPLATE},
            {
                **RENDERED,
                "type": "route",
                "configuration": {"bootstrap": {"host": "kafka.example.com"}, "hostTemplate": TEMPLATE},
            },
        ),
        ({"type": "route"}, {**RENDERED, "type": "route"}),
        (
            {"type": "ingress", "host": "kafka.example.com", "hostTemplate": TEMPLATE, "ingressClass": "nginx"},
            {
                **RENDERED,
                "type": "ingress",
                "configuration": {
                    "bootstrap": {"host": "kafka.example.com"},
                    "class": "nginx",
                    "hostTemplate": TEMPLATE,
                },
            },
        ),
        (
            {"type": "loadbalancer", "host": "kafka.example.com", "annotations": {"lb/internal": "true"}},
            {
                **RENDERED,
                "type": "loadbalancer",
                "configuration": {
                    "bootstrap": {"alternativeNames": ["kafka.example.com"], "annotations": {"lb/internal": "true"}}
                },
            },
        ),
        (
            {"type": "loadbalancer", "host": "kafka.example.com", "tls": False},
            {**RENDERED, "type": "loadbalancer", "tls": False},
        ),
        (
            {"type": "loadbalancer", "hostTemplate": TEMPLATE},
            {**RENDERED, "type": "loadbalancer", "configuration": {"advertisedHostTemplate": TEMPLATE}},
        ),
        (
            {"networkPolicyPeers": [SELECTED, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.9.0.0/16"]}}]},
            {
                **RENDERED,
                "networkPolicyPeers": [SELECTED, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.9.0.0/16"]}}],
            },
        ),
        (
            {"type": "nodeport", "host": "node.example.com", "nodePort": 31000},
            {
                **RENDERED,
                "type": "nodeport",
                "configuration": {"bootstrap": {"alternativeNames": ["node.example.com"], "nodePort": 31000}},
            },
        ),
    ],
)
def test_each_listener_has_exactly_what_its_type_needs(settings: dict[str, Any], rendered: dict[str, Any]) -> None:
    assert kafka(listeners=[{**LISTENER, **settings}])["listeners"] == [rendered]


def test_every_listener_is_written_in_order() -> None:
    listeners = [LISTENER, {"name": "two", "port": 9095, "type": "route"}]
    assert [each["name"] for each in kafka(listeners=listeners)["listeners"]] == ["one", "two"]


def test_authorization_names_super_users_and_can_be_left_out() -> None:
    assert kafka(superUsers=["CN=admin"])["authorization"] == {"type": "simple", "superUsers": ["CN=admin"]}
    assert "authorization" not in kafka(authorization="none")


def test_own_broker_configuration_wins_over_what_is_derived() -> None:
    config = kafka(config={"min.insync.replicas": 1, "log.retention.hours": 24})["config"]
    assert config == {**DERIVED, "min.insync.replicas": 1, "log.retention.hours": 24}


def test_without_defaults_only_own_broker_configuration_is_written() -> None:
    assert kafka(configDefaults=False)["config"] == {}
    assert kafka(configDefaults=False, config={"log.retention.hours": 24})["config"] == {"log.retention.hours": 24}


def test_rack_and_metrics_are_written_only_where_they_are_set() -> None:
    exporter = {"type": "jmxPrometheusExporter", "configMap": "metrics", "key": "kafka.yml"}
    found = kafka(rack={}, metrics=exporter)
    assert found["rack"] == {"topologyKey": "topology.kubernetes.io/zone"}
    reference = {"name": "metrics", "key": "kafka.yml"}
    assert found["metricsConfig"] == {"type": exporter["type"], "valueFrom": {"configMapKeyRef": reference}}
    reporter = kafka(metrics={"type": "strimziMetricsReporter", "allowList": ["kafka_server.*"]})["metricsConfig"]
    assert reporter == {"type": "strimziMetricsReporter", "values": {"allowList": ["kafka_server.*"]}}
    everything = kafka(metrics={"type": "strimziMetricsReporter"}, configDefaults=False)["metricsConfig"]
    assert everything == {"type": "strimziMetricsReporter"}
    assert not {"rack", "metricsConfig"} & set(kafka())


def test_each_pool_has_its_own_roles_storage_and_resources_or_the_clusters() -> None:
    disk = {"type": "persistent-claim", "sizeGib": 100, "storageClass": "fast", "deleteClaim": True}
    volumes = [{"id": 0, "sizeGib": 10}, {"id": 1, "sizeGib": 20, "storageClass": "slow", "deleteClaim": True}]
    small = {"requests": {"memory": "2Gi"}}
    found = pools(
        storage=disk,
        resources=small,
        nodePools=[
            {"name": "controller", "roles": ["controller"], "replicas": 3, "storage": {"type": "ephemeral"}},
            {"name": "broker", "roles": ["broker"], "replicas": 5, "resources": {"limits": {"cpu": 2}}},
            {"name": "jbod", "roles": ["broker"], "replicas": 2, "storage": {"type": "jbod", "volumes": volumes}},
        ],
    )
    claim = {"type": "persistent-claim", "size": "100Gi", "deleteClaim": True, "class": "fast"}
    one = {"id": 0, "type": "persistent-claim", "size": "10Gi", "deleteClaim": False}
    two = {"id": 1, "type": "persistent-claim", "size": "20Gi", "deleteClaim": True, "class": "slow"}
    assert found == [
        {"replicas": 3, "roles": ["controller"], "storage": {"type": "ephemeral"}, "resources": small},
        {"replicas": 5, "roles": ["broker"], "storage": claim, "resources": {"limits": {"cpu": 2}}},
        {"replicas": 2, "roles": ["broker"], "storage": {"type": "jbod", "volumes": [one, two]}, "resources": small},
    ]


def test_a_generated_password_is_referred_to_in_the_stacks_own_secret() -> None:
    reference = {"name": "app-credentials", "key": "password"}
    password = {"valueFrom": {"secretKeyRef": reference}}
    assert cluster_spec.user(user(), (), V1) == {"authentication": {"type": "scram-sha-512", "password": password}}


def test_an_existing_password_is_referred_to_where_it_is() -> None:
    spec = cluster_spec.user(user(secret={"name": "from-vault", "passwordKey": "pw"}), (), V1)
    reference = {"name": "from-vault", "key": "pw"}
    assert spec["authentication"]["password"] == {"valueFrom": {"secretKeyRef": reference}}


def test_a_password_of_the_operators_is_left_to_it() -> None:
    spec = cluster_spec.user(user(generatedBy="operator"), (), V1)
    assert spec == {"authentication": {"type": "scram-sha-512"}}


def test_a_certificate_is_left_to_the_operator() -> None:
    assert cluster_spec.user(user(authentication="tls"), (), V1) == {"authentication": {"type": "tls"}}


def test_each_name_of_a_right_becomes_one_rule_with_all_its_operations() -> None:
    rights = (
        Acl(type="topic", names=("a", "b"), operations=("Read", "Describe"), host="10.0.0.1"),
        Acl(type="topic", names=("mm2-",), match="prefix", operations=("Write",)),
        Acl(type="cluster", operations=("Describe",)),
    )
    topic = {"type": "topic", "patternType": "literal"}
    assert cluster_spec.user(user(), rights, V1)["authorization"] == {
        "type": "simple",
        "acls": [
            {
                "type": "allow",
                "host": "10.0.0.1",
                "resource": {**topic, "name": "a"},
                "operations": ["Read", "Describe"],
            },
            {
                "type": "allow",
                "host": "10.0.0.1",
                "resource": {**topic, "name": "b"},
                "operations": ["Read", "Describe"],
            },
            {
                "type": "allow",
                "host": "*",
                "resource": {"type": "topic", "name": "mm2-", "patternType": "prefix"},
                "operations": ["Write"],
            },
            {"type": "allow", "host": "*", "resource": {"type": "cluster"}, "operations": ["Describe"]},
        ],
    }


def test_a_ready_made_set_of_rights_is_written_like_listed_ones() -> None:
    settings = user(aclSets=[{"set": "producer", "topics": ["a"]}])
    written = cluster_spec.user(settings, acls(settings, {}, "4.3.1"), V1)["authorization"]["acls"]
    resource = {"type": "topic", "name": "a", "patternType": "literal"}
    assert written == [{"type": "allow", "host": "*", "resource": resource, "operations": ["Write", "Describe"]}]


def test_a_topic_says_its_kafka_name_only_where_kubernetes_cannot() -> None:
    plain = cluster_spec.topic(Topic(name="items.inventory", partitions=3, replicas=1))
    assert plain == {"partitions": 3, "replicas": 1}
    renamed = cluster_spec.topic(Topic(name="My_Items", partitions=3, replicas=1, config={"retention.ms": 1000}))
    assert renamed == {"partitions": 3, "replicas": 1, "topicName": "My_Items", "config": {"retention.ms": 1000}}


def test_a_mirror_with_nothing_but_its_ends_and_topics_says_nothing_else() -> None:
    assert mirror_spec(V1, mirror()) == {
        "version": "4.3.1",
        "replicas": 1,
        "target": {
            **rendered_side("eu"),
            "groupId": "mm2",
            "configStorageTopic": "mm2-configs",
            "offsetStorageTopic": "mm2-offsets",
            "statusStorageTopic": "mm2-status",
            "config": {
                **HTTPS,
                "config.storage.replication.factor": 3,
                "offset.storage.replication.factor": 3,
                "status.storage.replication.factor": 3,
            },
        },
        "mirrors": [
            {
                "source": {**rendered_side("us"), "config": HTTPS},
                "sourceConnector": {
                    "tasksMax": 1,
                    "config": {
                        **POLICY,
                        "offset-syncs.topic.location": "target",
                        "replication.factor": 3,
                        "offset-syncs.topic.replication.factor": 3,
                        "sync.topic.acls.enabled": False,
                        "refresh.topics.interval.seconds": 600,
                    },
                    "listOffsets": {"toConfigMap": {"name": "mm2-connector-offsets"}},
                    "alterOffsets": {"fromConfigMap": {"name": "mm2-connector-offsets"}},
                },
                "checkpointConnector": {
                    "tasksMax": 1,
                    "config": {
                        **POLICY,
                        "offset-syncs.topic.location": "target",
                        "checkpoints.topic.replication.factor": 3,
                        "refresh.groups.interval.seconds": 600,
                        "emit.checkpoints.enabled": True,
                        "emit.checkpoints.interval.seconds": 60,
                        "sync.group.offsets.enabled": True,
                        "sync.group.offsets.interval.seconds": 60,
                    },
                },
                "topicsPattern": "items",
                "topicsExcludePattern": r"mm2.*\.internal|.*\.replica|__.*",
                "groupsPattern": ".*",
                "groupsExcludePattern": "console-consumer-.*|connect-.*|__.*",
            }
        ],
    }


def test_alternatives_are_joined_as_one_regular_expression() -> None:
    flow = mirror_spec(V1, mirror(topics=["a", r"b\..*"], groups=["x", "y"]))["mirrors"][0]
    assert (flow["topicsPattern"], flow["groupsPattern"]) == (r"a|b\..*", "x|y")
