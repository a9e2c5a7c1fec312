"""Custom resources of kafka.strimzi.io/v1 as they are rendered from settings."""

from pathlib import Path

from components.dialects import Side, strimzi_v1
from settings.files import load
from settings.model import Resources
from settings.topics import Topic
from settings.users import Acl, User

ROOT = Path(__file__).parent.parent.parent
DEV, STG = load(ROOT / "Pulumi.dev.yaml"), load(ROOT / "Pulumi.stg.yaml")
HTTPS = {"ssl.endpoint.identification.algorithm": "https"}
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def side(stage: str, alias: str) -> Side:
    return Side(
        alias=alias,
        bootstrap_servers=f"{stage}:9093",
        user=f"rt-inv-{stage}-user",
        password_secret=f"rt-inv-{stage}-user",
        ca_secret=f"rt-inventory-{stage}-cluster-ca-cert",
    )


def rendered_side(stage: str, alias: str) -> dict[str, object]:
    return {
        "alias": alias,
        "bootstrapServers": f"{stage}:9093",
        "tls": {
            "trustedCertificates": [{"secretName": f"rt-inventory-{stage}-cluster-ca-cert", "certificate": "ca.crt"}]
        },
        "authentication": {
            "type": "scram-sha-512",
            "username": f"rt-inv-{stage}-user",
            "passwordSecret": {"secretName": f"rt-inv-{stage}-user", "password": "password"},
        },
    }


def test_a_cluster_listens_with_tls_and_scram_and_authorizes() -> None:
    assert strimzi_v1.kafka(STG.cluster) == {
        "kafka": {
            "version": "4.3.1",
            "listeners": [
                {
                    "name": "tls",
                    "port": 9093,
                    "type": "internal",
                    "tls": True,
                    "authentication": {"type": "scram-sha-512"},
                }
            ],
            "authorization": {"type": "simple"},
            "config": {
                "default.replication.factor": 3,
                "offsets.topic.replication.factor": 3,
                "transaction.state.log.replication.factor": 3,
                "min.insync.replicas": 2,
                "transaction.state.log.min.isr": 2,
                "auto.create.topics.enable": False,
            },
        },
        "entityOperator": {"topicOperator": {}, "userOperator": {}},
    }


def test_nodes_are_broker_and_controller() -> None:
    assert strimzi_v1.node_pool(DEV.cluster) == {
        "replicas": 1,
        "roles": ["controller", "broker"],
        "storage": {"type": "ephemeral"},
    }


def test_persistent_storage_has_a_size_and_a_class() -> None:
    storage = DEV.cluster.storage.model_copy(
        update={"type": "persistent-claim", "size_gib": 100, "storage_class": "fast", "delete_claim": True}
    )
    cluster = DEV.cluster.model_copy(
        update={"storage": storage, "resources": Resources(requests={"memory": "2Gi"}, limits={})}
    )
    pool = strimzi_v1.node_pool(cluster)
    assert pool["storage"] == {"type": "persistent-claim", "size": "100Gi", "deleteClaim": True, "class": "fast"}
    assert pool["resources"] == {"requests": {"memory": "2Gi"}}


def test_each_name_of_a_right_becomes_one_rule() -> None:
    acls = (
        Acl(type="topic", names=("a", "b"), operations=("Read", "Describe")),
        Acl(type="topic", names=("mm2-",), match="prefix", operations=("Write",)),
        Acl(type="cluster", operations=("Describe",)),
    )
    authorization = strimzi_v1.user(User(name="u", acls=acls))["authorization"]
    common = {"type": "allow", "host": "*"}
    literal = {"type": "topic", "patternType": "literal"}
    assert authorization["acls"] == [
        {**common, "resource": {**literal, "name": "a"}, "operations": ["Read", "Describe"]},
        {**common, "resource": {**literal, "name": "b"}, "operations": ["Read", "Describe"]},
        {**common, "resource": {"type": "topic", "name": "mm2-", "patternType": "prefix"}, "operations": ["Write"]},
        {**common, "resource": {"type": "cluster"}, "operations": ["Describe"]},
    ]


def test_a_user_without_rights_has_no_authorization() -> None:
    assert set(strimzi_v1.user(User(name="u"))) == {"authentication"}


def test_a_topic_says_its_kafka_name_only_where_kubernetes_cannot() -> None:
    plain = strimzi_v1.topic(Topic(name="items.inventory", partitions=3, replicas=1))
    assert plain == {"partitions": 3, "replicas": 1}
    renamed = strimzi_v1.topic(Topic(name="My_Items", partitions=3, replicas=1, config={"retention.ms": 1000}))
    assert renamed == {"partitions": 3, "replicas": 1, "topicName": "My_Items", "config": {"retention.ms": 1000}}


def test_the_shipped_mirror_is_rendered_as_promised() -> None:
    spec = strimzi_v1.mirror(STG.mirrors[0], "4.3.1", side("dev", "es-src"), side("stg", "es-tgt"))
    shared = {"replication.policy.class": IDENTITY, "offset-syncs.topic.location": "target"}
    assert spec == {
        "version": "4.3.1",
        "replicas": 1,
        "target": {
            **rendered_side("stg", "es-tgt"),
            "groupId": "mm2",
            "configStorageTopic": "mm2-configs",
            "offsetStorageTopic": "mm2-offsets",
            "statusStorageTopic": "mm2-status",
            "config": {
                **HTTPS,
                "config.storage.replication.factor": 3,
                "offset.storage.replication.factor": 3,
                "status.storage.replication.factor": 3,
                "offset.flush.interval.ms": 5000,
            },
        },
        "mirrors": [
            {
                "source": {**rendered_side("dev", "es-src"), "config": HTTPS},
                "sourceConnector": {
                    "tasksMax": 1,
                    "config": {
                        **shared,
                        "replication.factor": 3,
                        "offset-syncs.topic.replication.factor": 3,
                        "sync.topic.acls.enabled": False,
                        "refresh.topics.interval.seconds": 10,
                    },
                },
                "checkpointConnector": {
                    "tasksMax": 1,
                    "config": {
                        **shared,
                        "checkpoints.topic.replication.factor": 3,
                        "refresh.groups.interval.seconds": 5,
                        "emit.checkpoints.enabled": True,
                        "emit.checkpoints.interval.seconds": 5,
                        "sync.group.offsets.enabled": True,
                        "sync.group.offsets.interval.seconds": 5,
                    },
                },
                "topicsPattern": r"items|items\.inventory|store\.inventory",
                "topicsExcludePattern": r"mm2.*\.internal|.*\.replica|__.*",
                "groupsPattern": ".*",
                "groupsExcludePattern": "console-consumer-.*|connect-.*|__.*",
            }
        ],
    }


def test_a_prefixed_mirror_uses_the_default_policy_and_free_keys_are_added() -> None:
    mirror = STG.mirrors[0].model_copy(
        update={
            "naming": "prefixed",
            "topics_exclude": (),
            "source_connector_config": {"offset.lag.max": 0},
            "worker_config": {"producer.compression.type": "zstd"},
        }
    )
    spec = strimzi_v1.mirror(mirror, "4.3.1", side("dev", "a"), side("stg", "b"))
    config = spec["mirrors"][0]["sourceConnector"]["config"]
    assert config["replication.policy.class"] == "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
    assert config["offset.lag.max"] == 0
    assert spec["target"]["config"]["producer.compression.type"] == "zstd"
    assert "topicsExcludePattern" not in spec["mirrors"][0]
