"""Each rule of a stack file: a good file passes, one mistake is reported with its key and what must be otherwise."""

from typing import Any, get_args

import pytest

from settings import SettingsError, parse
from settings.platform import ApiVersion, Platform

from ...support.stack_values import SOURCE, TARGET, Values, with_value

ACL = {"type": "topic", "names": ["items"], "operations": ["Read"]}
TOPIC = {"name": "items", "partitions": 1, "replicas": 1}
MIRROR = TARGET["mirrors"][0]
PLATFORMS = ", ".join(get_args(Platform.model_fields["type"].annotation))
API_VERSIONS = ", ".join(get_args(ApiVersion))


def problems(values: Values, stack: str | None = "stg") -> list[tuple[str, str]]:
    """Keys and messages of everything that is wrong."""
    with pytest.raises(SettingsError) as error:
        parse(values, stack)
    return [(problem.key, problem.message) for problem in error.value.problems]


@pytest.mark.parametrize("values", [SOURCE, TARGET])
def test_a_good_file_is_accepted(values: Values) -> None:
    assert parse(values, "stg").cluster.name == values["cluster"]["name"]


@pytest.mark.parametrize(
    ("path", "value", "key", "reported"),
    [
        ("cluster", None, "cluster", "cluster must be given"),
        ("cluster", 3, "cluster", "must be a mapping (got 3)"),
        ("clusters", {}, "clusters", "must be a known key (got clusters, allowed platform, operator, cluster"),
        (
            "platform/type",
            "kafka",
            "platform.type",
            f"must be one of the allowed values (got 'kafka', allowed {PLATFORMS}).",
        ),
        (
            "platform/apiVersion",
            "v1beta1",
            "platform.apiVersion",
            f"allowed {API_VERSIONS})",
        ),
        (
            "operator/chanel",
            "stable",
            "operator.chanel",
            "must be a known key (got chanel, docs/settings.md lists the allowed ones). Did you mean channel?",
        ),
        ("operator/readySeconds", 0, "operator.readySeconds", "must be >= 1 (got 0, allowed 1..86400)"),
        ("operator/readySeconds", 86401, "operator.readySeconds", "must be <= 86400 (got 86401, allowed 1..86400)"),
        ("operator/approval", "Manual", "operator.startingCsv", "must be given with approval Manual"),
        ("cluster/name", None, "cluster.name", "name must be given"),
        ("cluster/name", "My_Cluster", "cluster.name", "must be a name for Kubernetes"),
        ("cluster/namespace", "-x", "cluster.namespace", "must be a name for Kubernetes"),
        ("cluster/namespace", "x" * 64, "cluster.namespace", "at most 63 characters"),
        ("cluster/brokers", "3", "cluster.brokers", "must be a whole number (got '3')"),
        ("cluster/brokers", 1.5, "cluster.brokers", "must be a whole number"),
        ("cluster/brokers", True, "cluster.brokers", "must be a whole number"),
        ("cluster/brokers", 0, "cluster.brokers", "must be >= 1 (got 0)"),
        ("cluster/version", "4.3", "cluster.version", "must be a version of three numbers"),
        ("cluster/protect", "yes", "cluster.protect", "must be true or false (got 'yes')"),
        ("cluster/storage/type", "persistent-claim", "cluster.storage.sizeGib", "must be given with persistent-claim"),
        ("cluster/storage/storageClass", "fast", "cluster.storage.storageClass", "must not be given with ephemeral"),
        ("cluster/config", {"x": [1]}, "cluster.config.x", "must be text, a number, true or false (got a list of 1)"),
        (
            "cluster/config",
            {"listeners": "PLAINTEXT://:9092"},
            "cluster.config[listeners]",
            "must not be set in config (the operator manages it)",
        ),
        (
            "cluster/config",
            {"offsets.topic.replication.factor": 4},
            "cluster.config[offsets.topic.replication.factor]",
            "must be <= brokers (got 4, allowed 1..3)",
        ),
        (
            "cluster/config",
            {"share.coordinator.state.topic.replication.factor": 4},
            "cluster.config[share.coordinator.state.topic.replication.factor]",
            "must be <= brokers (got 4, allowed 1..3)",
        ),
        (
            "cluster/config",
            {"share.coordinator.state.topic.min.isr": 3},
            "cluster.config[share.coordinator.state.topic.min.isr]",
            "must be < share.coordinator.state.topic.replication.factor (got 3, ",
        ),
        (
            "cluster/config",
            {"min.insync.replicas": 3},
            "cluster.config[min.insync.replicas]",
            "must be < default.replication.factor (got 3, default.replication.factor 3). One broker restart",
        ),
        (
            "cluster/config",
            {"min.insync.replicas": "two"},
            "cluster.config[min.insync.replicas]",
            "must be a whole number >= 1 (got 'two')",
        ),
        ("users", {}, "users", "users must be a list"),
        ("users/+", {"name": "writer"}, "users[1].name", "must be unique (got it in users[0] too)"),
        ("users/0/passwordLength", 8, "users[0].passwordLength", "must be >= 16 (got 8, allowed 16..128)"),
        (
            "users/0/authentication",
            "oauth",
            "users[0].authentication",
            "allowed scram-sha-512, scram-sha-256, tls, plain",
        ),
        ("users/0/acls", [{**ACL, "type": "queue"}], "users[0].acls[0].type", "must be one of the allowed values"),
        ("users/0/acls", [{**ACL, "operations": ["Raed"]}], "users[0].acls[0].operations[0]", "got 'Raed'"),
        ("users/0/acls", [{**ACL, "operations": []}], "users[0].acls[0].operations", "must have at least 1 entry"),
        (
            "users/0/acls",
            [{**ACL, "type": "group", "operations": ["Write"]}],
            "users[0].acls[0].operations",
            "must exist for a group (got Write, allowed Read, Delete, Describe",
        ),
        ("users/0/acls", [{**ACL, "names": []}], "users[0].acls[0].names", "must have at least one entry"),
        (
            "users/0/acls",
            [{"type": "cluster", "names": ["x"], "operations": ["Describe"]}],
            "users[0].acls[0].names",
            "must not be given for the cluster (got x)",
        ),
        (
            "users/0/acls",
            [{**ACL, "names": ["*"], "match": "prefix"}],
            "users[0].acls[0].match",
            "must be literal for the name '*'",
        ),
        ("topics/0", "audit", "topics[0]", "must be a mapping (got 'audit')"),
        ("topics/0/name", "a/b", "topics[0].name", "must be a name for Kafka"),
        ("topics/0/name", "..", "topics[0].name", "must be a name for Kafka"),
        ("topics/0/name", "_audit", "topics[0].name", "must make a name for Kubernetes (got '-audit')"),
        ("topics/0/partitions", 0, "topics[0].partitions", "must be >= 1 (got 0)"),
        (
            "topics/0/replicas",
            4,
            "topics[0].replicas",
            "topic audit: replicas must be <= brokers of passive (got 4, allowed 1..3)",
        ),
        (
            "topics/0/config",
            {"min.insync.replicas": 3},
            "topics[0].config[min.insync.replicas]",
            "min.insync.replicas must be < replicas (got 3, replicas 3)",
        ),
        (
            "topics/0/replicas",
            2,
            "topics[0].config[min.insync.replicas]",
            "min.insync.replicas must be < replicas (got 2, replicas 2)",
        ),
        (
            "topics/0/config",
            {"min.insync.replicas": 0},
            "topics[0].config[min.insync.replicas]",
            "must be a whole number >= 1 (got 0)",
        ),
        ("topics/+", {"name": "audit", "partitions": 1, "replicas": 3}, "topics[1].name", "must be unique"),
        (
            "topics/+",
            {"name": "Audit", "partitions": 1, "replicas": 3},
            "topics[1].name",
            "must differ from audit by more than case",
        ),
        ("mirrors/0/name", None, "mirrors[0].name", "name must be given"),
        ("mirrors/0/source/stack", "stg", "mirrors[0].source.stack", "must be another stack (got stg"),
        ("mirrors/0/source/alias", "es-tgt", "mirrors[0].target.alias", "must differ from source.alias"),
        (
            "mirrors/0/target/user",
            "nobody",
            "mirrors[0].target.user",
            "must be one of this stack's users (got nobody, allowed writer)",
        ),
        ("mirrors/0/topics", [], "mirrors[0].topics", "must have at least 1 entry"),
        ("mirrors/0/topics", "items", "mirrors[0].topics", "must be a list (got 'items')"),
        (
            "mirrors/0/topics/0",
            "items(",
            "mirrors[0].topics[0]",
            "must be a regular expression of Java (got 'items(': missing ), unterm",
        ),
        ("mirrors/0/topics/0", "", "mirrors[0].topics[0]", "must be a regular expression (got nothing)"),
        (
            "mirrors/0/topics/0",
            r"\X",
            "mirrors[0].topics[0]",
            r"must be a regular expression that can be verified (got '\X': \X cannot be translated). Write it",
        ),
        ("mirrors/0/topics/0", " items", "mirrors[0].topics[0]", "MirrorMaker cuts off blanks at both ends"),
        (
            "mirrors/0/groups",
            ["(?i)app", "shop"],
            "mirrors[0].groups",
            "must be expressions of which each stands alone (got '(?i)app': its flag counts for the entries behind it",
        ),
        ("mirrors/0/topics/0", "a,b", "mirrors[0].topics[0]", "must hold no comma"),
        ("mirrors/0/topicsExclude", ["*"], "mirrors[0].topicsExclude[0]", "must be a regular expression"),
        ("mirrors/0/naming", "same", "mirrors[0].naming", "allowed identity, prefixed"),
        ("mirrors/0/replicas", 0, "mirrors[0].replicas", "must be >= 1"),
        ("mirrors/0/refreshTopicsSeconds", "10s", "mirrors[0].refreshTopicsSeconds", "must be a whole number"),
        ("mirrors/0/replicationFactor", 4, "mirrors[0].replicationFactor", "must be <= brokers of the target passive"),
        (
            "mirrors/0/replicationFactor",
            2,
            "mirrors[0].replicationFactor",
            "must be > min.insync.replicas of the target",
        ),
        (
            "mirrors/0/sourceConnectorConfig",
            {"replication.factor": 1},
            "mirrors[0].sourceConnectorConfig[replication.factor]",
            "must not be set in sourceConnectorConfig (replicationFactor decides it)",
        ),
        ("mirrors/0/workerConfig", {"group.id": "x"}, "mirrors[0].workerConfig[group.id]", "must not be set"),
        ("mirrors/0/offsetStorageTopic", "mm2-configs", "mirrors[0].offsetStorageTopic", "must be its own"),
        ("mirrors/+", MIRROR, "mirrors[1].name", "must be unique"),
        ("mirrors/+", {**MIRROR, "name": "b", "groupId": "mm2"}, "mirrors[1].groupId", "must be its own (got mm2, as"),
        ("verification/when", "sometimes", "verification.when", "allowed on-change, always, never"),
        ("verification/allowUnknown", ["records"], "verification.allowUnknown[0]", "got 'records'"),
        ("verification/allowUnknown", ["latency"], "verification.allowUnknown[0]", "must be one of the allowed values"),
        (
            "verification/allowUnknown",
            ["groups_synced", "groups_synced"],
            "verification.allowUnknown",
            "must name a check once",
        ),
        ("verification/state", "gs://bucket/prefix", "verification.state", "must be a folder, a file:// or an s3://"),
        ("verification/state", "s3://key:hidden@bucket", "verification.state", "got a password in an address"),
        ("verification/state", "s3://", "verification.state", "must be a folder, a file:// or an s3://"),
        ("verification/state", " ", "verification.state", "must be a folder, a file:// or an s3://"),
        ("verification/duplicatesMax", -1, "verification.duplicatesMax", "must be >= 0 (got -1)"),
        (
            "verification",
            {"mirrorWaitSeconds": 900},
            "verification.mirrorWaitSeconds",
            "must be < deadlineSeconds (got 900, deadlineSeconds 900)",
        ),
    ],
)
def test_one_mistake_is_reported_with_its_key(path: str, value: Any, key: str, reported: str) -> None:
    found = problems(with_value(TARGET, path, value))
    assert key in dict(found), found
    assert any(reported in message for where, message in found if where == key), found


def test_one_mistake_is_reported_once() -> None:
    assert len(problems(with_value(TARGET, "mirrors/0/topics/0", "items("))) == 1
    assert len(problems(with_value(TARGET, "topics/0/replicas", 4))) == 1


def test_three_mistakes_are_reported_at_once() -> None:
    values = with_value(SOURCE, "topics/1/replicas", 3)
    values = with_value(values, "users/0/name", "Reader")
    values = with_value(values, "cluster/storge", "fast")
    assert [key for key, _ in problems(values)] == ["cluster.storge", "users[0].name", "topics[1].replicas"]


def test_a_problem_is_written_with_the_namespace_and_the_path() -> None:
    with pytest.raises(SettingsError) as error:
        parse(with_value(SOURCE, "topics/1/replicas", 3))
    assert str(error.value).startswith("rt-inventory:topics[1].replicas: topic store.inventory: replicas must be")


@pytest.mark.parametrize("pattern", ["items.*", "a.b", r"a\.b", "[a.b]c", "x.+", "x.{1}y", "a|b", r"\.", ".*"])
def test_a_pattern_that_says_what_it_means_is_accepted(pattern: str) -> None:
    assert parse(with_value(TARGET, "mirrors/0/topics/0", pattern)).mirrors[0].topics[0] == pattern


def test_a_single_replica_may_be_all_that_is_in_sync() -> None:
    assert parse(with_value(SOURCE, "topics/0/config", {"min.insync.replicas": 1}))
    found = problems(with_value(SOURCE, "topics/0/config", {"min.insync.replicas": 2}), "dev")
    assert "must be 1 (got 2, replicas 1)" in found[0][1]
