"""Every setting of a mirror reaches the resource in each API version, in its place and under its name."""

from typing import Any

import pytest

from components.dialects.mirror_spec import KAFKA_POLICIES, STRIMZI_IDENTITY
from settings.mirrors import Mirror
from settings.platform import Platform

from ...support.component_settings import (
    HTTPS,
    V1,
    V1BETA2,
    checkpoint_config,
    event_streams,
    mirror,
    mirror_spec,
    rendered_side,
    side,
    source_cluster,
    source_config,
    target_cluster,
    worker_config,
)

NEWEST = event_streams("12.0.0")
PLATFORMS = pytest.mark.parametrize("platform", [V1, V1BETA2, NEWEST], ids=["v1", "v1beta2", "event-streams"])
EXPORTER = {"type": "jmxPrometheusExporter", "configMap": "metrics", "key": "connect.yml"}
RESOURCES = {"requests": {"cpu": 1, "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
# What a mirror's own group and topics are called stands elsewhere, see the dialects' tests.
NAMED = ("group_id", "config_storage_topic", "offset_storage_topic", "status_storage_topic")
# Decides what the program does, or stands outside of the spec; for annotations see test_annotations.py.
NOT_WRITTEN = (
    "annotations",
    "name", "namespace", "source", "target", "reverse", "version", "internal_topics", "accept_rereplication",
    "ready_seconds", "counts_from", "active", "standby", "clients", "accept_switch", "failback",
)  # fmt: skip
AT_WORKERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "resources": ({"resources": RESOURCES}, {"resources": RESOURCES}),
    "jvm": ({"jvm": {"xms": "512m", "xmx": "2g"}}, {"jvmOptions": {"-Xms": "512m", "-Xmx": "2g"}}),
    "rack": ({"rack": {"topologyKey": "zone"}}, {"rack": {"topologyKey": "zone"}}),
    "metrics": (
        {"metrics": EXPORTER},
        {
            "metricsConfig": {
                "type": "jmxPrometheusExporter",
                "valueFrom": {"configMapKeyRef": {"name": "metrics", "key": "connect.yml"}},
            }
        },
    ),
    "spec_overrides": ({"specOverrides": {"image": "workers:1"}}, {"image": "workers:1"}),
    "log_level": ({"logLevel": "WARN"}, {"logging": {"type": "inline", "loggers": {"rootLogger.level": "WARN"}}}),
}
AT_FLOW: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "topics": ({"topics": ["other"]}, {"topicsPattern": "other"}),
    "topics_exclude": ({"topicsExclude": ["other"]}, {"topicsExcludePattern": "other"}),
    "groups": ({"groups": ["other"]}, {"groupsPattern": "other"}),
    "groups_exclude": ({"groupsExclude": ["other"]}, {"groupsExcludePattern": "other"}),
}
IN_WORKER_CONFIG: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "flush_offsets_seconds": ({"flushOffsetsSeconds": 5}, {"offset.flush.interval.ms": 5000}),
    "scaling": (
        {"scaling": {"through": "hpa", "maxReplicas": 2, "lagRecords": 1}},
        {"scheduled.rebalance.max.delay.ms": 30_000},
    ),
    "worker_config": ({"workerConfig": {"producer.linger.ms": 5}}, {"producer.linger.ms": 5}),
}
IN_SOURCE_CLUSTER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "source_config": ({"sourceConfig": {"client.rack": "a"}}, {"client.rack": "a"}),
}
IN_SOURCE_CONNECTOR: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "offset_lag_max": ({"offsetLagMax": 0}, {"offset.lag.max": 0}),
    "sync_topic_acls": ({"syncTopicAcls": True}, {"sync.topic.acls.enabled": True}),
    "sync_topic_configs": ({"syncTopicConfigs": False}, {"sync.topic.configs.enabled": False}),
    "sync_topic_configs_seconds": (
        {"syncTopicConfigsSeconds": 30},
        {"sync.topic.configs.interval.seconds": 30},
    ),
    "config_properties_exclude": (
        {"configPropertiesExclude": ["retention.ms", "follower.*"]},
        {"config.properties.exclude": "retention.ms,follower.*"},
    ),
    "refresh_topics_seconds": ({"refreshTopicsSeconds": 10}, {"refresh.topics.interval.seconds": 10}),
    "producer": ({"producer": {"batch.size": 1000}}, {"producer.override.batch.size": 1000}),
    "consumer": ({"consumer": {"fetch.min.bytes": 1}}, {"consumer.fetch.min.bytes": 1}),
    "source_connector_config": (
        {"sourceConnectorConfig": {"add.source.alias.to.metrics": True}},
        {"add.source.alias.to.metrics": True},
    ),
}
IN_CHECKPOINT_CONNECTOR: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "emit_checkpoints": ({"emitCheckpoints": False}, {"emit.checkpoints.enabled": False}),
    "sync_group_offsets": ({"syncGroupOffsets": False}, {"sync.group.offsets.enabled": False}),
    "exact_offsets": ({"exactOffsets": {"image": "follower:1.0.0"}}, {"sync.group.offsets.enabled": False}),
    "refresh_groups_seconds": ({"refreshGroupsSeconds": 7}, {"refresh.groups.interval.seconds": 7}),
    "emit_checkpoints_seconds": ({"emitCheckpointsSeconds": 8}, {"emit.checkpoints.interval.seconds": 8}),
    "sync_group_offsets_seconds": ({"syncGroupOffsetsSeconds": 9}, {"sync.group.offsets.interval.seconds": 9}),
    "checkpoint_connector_config": (
        {"checkpointConnectorConfig": {"consumer.fetch.min.bytes": 1}},
        {"consumer.fetch.min.bytes": 1},
    ),
}
# Settings that appear in several places; each has a test of its own below, `failed_over` in test_failed_over.py.
IN_SEVERAL = (
    "replicas", "naming", "separator", "source_tasks_max", "checkpoint_tasks_max", "state", "auto_restart",
    "heartbeats", "exactly_once", "replication_factor", "offset_syncs_location", "heartbeat_connector_config",
    "config_defaults", "failed_over",
)  # fmt: skip
PLACES = {
    "workers": (AT_WORKERS, lambda spec: spec),
    "flow": (AT_FLOW, lambda spec: spec["mirrors"][0]),
    "worker config": (IN_WORKER_CONFIG, worker_config),
    "source cluster": (IN_SOURCE_CLUSTER, lambda spec: source_cluster(spec)["config"]),
    "source connector": (IN_SOURCE_CONNECTOR, source_config),
    "checkpoint connector": (IN_CHECKPOINT_CONNECTOR, checkpoint_config),
}
EACH = [
    pytest.param(place, settings, written, id=name)
    for table, place in PLACES.values()
    for name, (settings, written) in table.items()
]


def test_each_setting_of_a_mirror_is_either_tested_here_or_known_not_to_be_written() -> None:
    reported = [name for table, _ in PLACES.values() for name in table]
    assert sorted([*reported, *IN_SEVERAL, *NAMED, *NOT_WRITTEN]) == sorted(Mirror.model_fields)


@PLATFORMS
@pytest.mark.parametrize(("place", "settings", "written"), EACH)
def test_a_setting_changes_its_own_keys_and_no_others(
    platform: Platform, place: Any, settings: dict[str, Any], written: dict[str, Any]
) -> None:
    plain, changed = mirror_spec(platform, mirror()), mirror_spec(platform, mirror(**settings))
    assert place(changed) == {**place(plain), **written}
    place(changed).clear()
    place(plain).clear()
    assert changed == plain


@PLATFORMS
def test_an_empty_list_leaves_no_pattern(platform: Platform) -> None:
    flow = mirror_spec(platform, mirror(topicsExclude=[], groupsExclude=[]))["mirrors"][0]
    assert not {"topicsExcludePattern", "groupsExcludePattern"} & set(flow)


@PLATFORMS
def test_one_side_of_the_heap_is_enough(platform: Platform) -> None:
    assert mirror_spec(platform, mirror(jvm={"xmx": "1g"}))["jvmOptions"] == {"-Xmx": "1g"}


@PLATFORMS
def test_the_replication_factor_is_that_of_every_topic_that_the_mirror_makes(platform: Platform) -> None:
    spec = mirror_spec(platform, mirror(replicationFactor=2))
    factors = {
        key: value
        for config in (worker_config(spec), source_config(spec), checkpoint_config(spec))
        for key, value in config.items()
        if key.endswith("replication.factor")
    }
    assert factors == dict.fromkeys(
        (
            "config.storage.replication.factor",
            "offset.storage.replication.factor",
            "status.storage.replication.factor",
            "replication.factor",
            "offset-syncs.topic.replication.factor",
            "checkpoints.topic.replication.factor",
        ),
        2,
    )


@PLATFORMS
def test_several_workers_take_over_the_tasks_of_one_that_left_within_half_a_minute(platform: Platform) -> None:
    delay = "scheduled.rebalance.max.delay.ms"
    for workers, known in ((1, None), (2, 30_000), (3, 30_000)):
        spec = mirror_spec(platform, mirror(replicas=workers))
        assert (spec["replicas"], worker_config(spec).get(delay)) == (workers, known)
    own = mirror_spec(platform, mirror(replicas=2, workerConfig={delay: 60_000}))
    assert worker_config(own)[delay] == 60_000


@PLATFORMS
def test_tasks_are_counted_by_connector(platform: Platform) -> None:
    flow = mirror_spec(platform, mirror(sourceTasksMax=4, checkpointTasksMax=2))["mirrors"][0]
    assert (flow["sourceConnector"]["tasksMax"], flow["checkpointConnector"]["tasksMax"]) == (4, 2)


@PLATFORMS
@pytest.mark.parametrize("state", ["paused", "stopped"])
def test_a_state_is_that_of_every_connector_and_running_is_not_written(platform: Platform, state: str) -> None:
    flow, running = (mirror_spec(platform, mirror(state=each))["mirrors"][0] for each in (state, "running"))
    for kind in ("sourceConnector", "checkpointConnector"):
        assert flow[kind]["state"] == state
        assert set(running[kind]) - {"listOffsets", "alterOffsets"} == {"tasksMax", "config"}


@PLATFORMS
def test_the_source_connectors_offsets_have_a_config_map(platform: Platform) -> None:
    flow = mirror_spec(platform, mirror())["mirrors"][0]
    place = {"name": "mm2-connector-offsets"}
    assert flow["sourceConnector"]["listOffsets"] == {"toConfigMap": place}
    assert flow["sourceConnector"]["alterOffsets"] == {"fromConfigMap": place}
    assert not {"listOffsets", "alterOffsets"} & set(flow["checkpointConnector"])


def test_a_release_that_cannot_alter_offsets_names_no_config_map() -> None:
    flow = mirror_spec(event_streams("11.5.0"), mirror())["mirrors"][0]
    assert set(flow["sourceConnector"]) == {"tasksMax", "config"}


def test_where_connectors_have_no_state_they_are_paused() -> None:
    flow = mirror_spec(event_streams("11.2.0"), mirror(state="paused"))["mirrors"][0]
    assert flow["sourceConnector"]["pause"] is True
    assert "state" not in flow["sourceConnector"]
    assert mirror_spec(event_streams("11.3.0"), mirror(state="paused"))["mirrors"][0]["sourceConnector"]["state"] == (
        "paused"
    )


@PLATFORMS
def test_connectors_restart_by_themselves_with_or_without_an_end(platform: Platform) -> None:
    for settings, written in (
        ({}, {"enabled": True}),
        ({"maxRestarts": 10}, {"enabled": True, "maxRestarts": 10}),
        ({"enabled": False}, {"enabled": False}),
    ):
        flow = mirror_spec(platform, mirror(autoRestart=settings))["mirrors"][0]
        assert flow["sourceConnector"]["autoRestart"] == flow["checkpointConnector"]["autoRestart"] == written


@PLATFORMS
def test_exactly_once_asks_workers_connector_and_consumer(platform: Platform) -> None:
    plain, exact = mirror_spec(platform, mirror()), mirror_spec(platform, mirror(exactlyOnce=True))
    assert worker_config(exact) == {**worker_config(plain), "exactly.once.source.support": "enabled"}
    assert source_config(exact) == {
        **source_config(plain),
        "exactly.once.support": "required",
        "consumer.isolation.level": "read_committed",
    }
    assert checkpoint_config(exact) == checkpoint_config(plain)


@PLATFORMS
@pytest.mark.parametrize(
    ("naming", "policy"),
    [
        ("identity", "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"),
        ("prefixed", "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"),
    ],
)
def test_all_connectors_have_the_policy_of_the_naming(platform: Platform, naming: str, policy: str) -> None:
    spec = mirror_spec(platform, mirror(naming=naming))
    assert source_config(spec)["replication.policy.class"] == policy
    assert checkpoint_config(spec)["replication.policy.class"] == policy


@pytest.mark.parametrize(
    ("platform", "policy"),
    [
        (event_streams("11.0.0"), STRIMZI_IDENTITY),
        (event_streams("11.1.0"), KAFKA_POLICIES["identity"]),
        (Platform(version="0.45.0"), KAFKA_POLICIES["identity"]),
    ],
)
def test_only_the_oldest_releases_have_the_operators_own_identity_policy(platform: Platform, policy: str) -> None:
    assert source_config(mirror_spec(platform, mirror()))["replication.policy.class"] == policy
    prefixed = source_config(mirror_spec(platform, mirror(naming="prefixed")))
    assert prefixed["replication.policy.class"] == KAFKA_POLICIES["prefixed"]


@PLATFORMS
@pytest.mark.parametrize("separator", ["", "_", "-"])
def test_a_separator_other_than_the_usual_is_written_for_both_connectors(platform: Platform, separator: str) -> None:
    spec, plain = mirror_spec(platform, mirror(separator=separator)), mirror_spec(platform, mirror())
    for config in (source_config, checkpoint_config):
        assert config(spec)["replication.policy.separator"] == separator
        assert "replication.policy.separator" not in config(plain)


@PLATFORMS
def test_offset_syncs_on_the_source_are_mirror_makers_default_and_not_written(platform: Platform) -> None:
    there, here = (mirror_spec(platform, mirror(offsetSyncsLocation=each)) for each in ("source", "target"))
    for config in (source_config, checkpoint_config):
        assert "offset-syncs.topic.location" not in config(there)
        assert config(here)["offset-syncs.topic.location"] == "target"


@PLATFORMS
def test_a_free_key_wins_over_what_the_settings_would_write(platform: Platform) -> None:
    relaxed = {"ssl.endpoint.identification.algorithm": ""}
    spec = mirror_spec(
        platform,
        mirror(
            workerConfig=relaxed,
            sourceConfig=relaxed,
            consumer={"fetch.min.bytes": 1},
            sourceConnectorConfig={"consumer.fetch.min.bytes": 2},
        ),
    )
    assert worker_config(spec)["ssl.endpoint.identification.algorithm"] == ""
    assert source_cluster(spec)["config"] == relaxed
    assert source_config(spec)["consumer.fetch.min.bytes"] == 2


@pytest.mark.parametrize(
    ("version", "logger"),
    [("3.0.1", "connect.root.logger.level"), ("3.9.0", "connect.root.logger.level"), ("4.0.0", "rootLogger.level")],
)
def test_the_root_logger_is_called_as_in_the_workers_version_of_kafka(version: str, logger: str) -> None:
    spec = mirror_spec(V1BETA2, mirror(logLevel="DEBUG"), version=version)
    assert spec["version"] == version
    assert spec["logging"] == {"type": "inline", "loggers": {logger: "DEBUG"}}


@PLATFORMS
@pytest.mark.parametrize("kind", ["scram-sha-512", "scram-sha-256", "plain"])
def test_a_user_with_a_password_names_its_secret_and_key(platform: Platform, kind: str) -> None:
    end = side("us", authentication=kind, username="token", secret="cloud", password_key="apikey")
    assert source_cluster(mirror_spec(platform, mirror(), source=end))["authentication"] == {
        "type": kind,
        "username": "token",
        "passwordSecret": {"secretName": "cloud", "password": "apikey"},
    }


@PLATFORMS
def test_a_user_with_a_certificate_names_both_keys_of_its_secret(platform: Platform) -> None:
    end = side("eu", authentication="tls", secret="pair", certificate_key="tls.crt", private_key_key="tls.key")
    assert target_cluster(mirror_spec(platform, mirror(), target=end))["authentication"] == {
        "type": "tls",
        "certificateAndKey": {"secretName": "pair", "certificate": "tls.crt", "key": "tls.key"},
    }


@PLATFORMS
def test_a_public_authority_needs_tls_and_no_secret(platform: Platform) -> None:
    found = source_cluster(mirror_spec(platform, mirror(), source=side("us", ca=None)))
    assert found == {**rendered_side("us"), "tls": {"trustedCertificates": []}, "config": HTTPS}


@PLATFORMS
def test_without_tls_neither_trust_nor_host_names_are_checked(platform: Platform) -> None:
    source, target = side("us", ca=None, tls=False), side("eu", ca=None, tls=False)
    spec = mirror_spec(platform, mirror(), source=source, target=target)
    for end in (source_cluster(spec), target_cluster(spec)):
        assert "tls" not in end
        assert "ssl.endpoint.identification.algorithm" not in end["config"]


@PLATFORMS
def test_the_reader_of_a_source_at_a_distance_has_the_systems_buffer_unless_it_has_one_of_its_own(
    platform: Platform,
) -> None:
    far = {"source": {"stack": "dev", "alias": "us", "user": "reader", "latencyMs": 100}}
    near, there = mirror_spec(platform, mirror()), mirror_spec(platform, mirror(**far))
    assert source_config(there) == {**source_config(near), "consumer.receive.buffer.bytes": -1}
    own = {"consumer": {"receive.buffer.bytes": 4_194_304, "max.poll.records": 10}}
    assert source_config(mirror_spec(platform, mirror(**far, **own))) == {
        **source_config(near),
        "consumer.receive.buffer.bytes": 4_194_304,
        "consumer.max.poll.records": 10,
    }
    source_config(near).clear()
    source_config(there).clear()
    assert there == near


@PLATFORMS
def test_without_defaults_only_what_is_written_in_the_free_maps_comes_out(platform: Platform) -> None:
    maps = {"sourceConnectorConfig": {"replication.factor": 2}, "workerConfig": {"offset.flush.interval.ms": 1}}
    spec = mirror_spec(platform, mirror(configDefaults=False, refreshTopicsSeconds=10, **maps))
    flow = spec["mirrors"][0]
    assert flow["sourceConnector"] == {"config": maps["sourceConnectorConfig"]}
    assert flow["checkpointConnector"] == {}
    config = worker_config(spec)
    assert {key: value for key, value in config.items() if ".storage.topic" not in key and key != "group.id"} == (
        maps["workerConfig"]
    )
    said = mirror_spec(platform, mirror(configDefaults=False, sourceTasksMax=1))["mirrors"][0]["sourceConnector"]
    assert said == {"tasksMax": 1}
