"""Clusters and mirrors of kafka.strimzi.io/v1beta2, where they differ from v1."""

from typing import Any

import pytest

from components.dialects import strimzi_v1, strimzi_v1beta2
from settings.platform import Platform

from ...support.component_settings import (
    HTTPS,
    V1,
    V1BETA2,
    checkpoint_config,
    cluster,
    mirror,
    mirror_spec,
    rendered_side,
    source_config,
    worker_config,
)

OWN = {
    "group.id": "mm2",
    "config.storage.topic": "mm2-configs",
    "offset.storage.topic": "mm2-offsets",
    "status.storage.topic": "mm2-status",
}
FACTORS = {f"{kind}.storage.replication.factor": 3 for kind in ("config", "offset", "status")}


def test_a_cluster_differs_from_v1_in_nothing_but_the_annotations_of_the_last_release_with_zookeeper() -> None:
    for release, annotations in (
        ("0.45.0", {"strimzi.io/kraft": "enabled", "strimzi.io/node-pools": "enabled"}),
        ("0.46.0", {}),
        ("0.51.0", {}),
    ):
        *pools, kafka = strimzi_v1beta2.cluster(cluster(), "3.9.0", Platform(version=release))
        *usual, same = strimzi_v1.cluster(cluster(), "3.9.0", V1)
        assert dict(kafka.annotations) == annotations
        assert (pools, kafka.name, kafka.spec) == (usual, same.name, same.spec)


def test_a_mirror_lists_its_clusters_and_names_them_by_alias() -> None:
    spec, first = mirror_spec(V1BETA2, mirror()), mirror_spec(V1, mirror())
    flow = first["mirrors"][0]
    assert spec == {
        "version": "4.3.1",
        "replicas": 1,
        "connectCluster": "eu",
        "clusters": [
            {**rendered_side("us"), "config": HTTPS},
            {**rendered_side("eu"), "config": {**HTTPS, **FACTORS, **OWN}},
        ],
        "mirrors": [
            {
                "sourceCluster": "us",
                "targetCluster": "eu",
                **{key: value for key, value in flow.items() if key != "source"},
            }
        ],
    }


@pytest.mark.parametrize(
    ("setting", "key", "usual"),
    [
        ("groupId", "group.id", "mirrormaker2-cluster"),
        ("configStorageTopic", "config.storage.topic", "mirrormaker2-cluster-configs"),
        ("offsetStorageTopic", "offset.storage.topic", "mirrormaker2-cluster-offsets"),
        ("statusStorageTopic", "status.storage.topic", "mirrormaker2-cluster-status"),
    ],
)
def test_group_and_topics_are_written_unless_the_operator_would_call_them_so(
    setting: str, key: str, usual: str
) -> None:
    assert worker_config(mirror_spec(V1BETA2, mirror(**{setting: "other"}))) == {
        **HTTPS,
        **FACTORS,
        **OWN,
        key: "other",
    }
    without = {name: value for name, value in OWN.items() if name != key}
    assert worker_config(mirror_spec(V1BETA2, mirror(**{setting: usual}))) == {**HTTPS, **FACTORS, **without}


def test_v1_writes_group_and_topics_in_fields_of_their_own() -> None:
    names: dict[str, Any] = {
        "groupId": "g",
        "configStorageTopic": "c",
        "offsetStorageTopic": "o",
        "statusStorageTopic": "s",
    }
    target = mirror_spec(V1, mirror(**names))["target"]
    assert {key: target[key] for key in names} == names
    assert not set(OWN) & set(target["config"])


def test_heartbeats_are_a_connector_of_one_task_with_the_mirrors_policy() -> None:
    settings = mirror(
        heartbeats=True,
        naming="prefixed",
        separator="_",
        replicationFactor=2,
        state="paused",
        heartbeatConnectorConfig={"emit.heartbeats.interval.seconds": 5},
    )
    assert mirror_spec(V1BETA2, settings)["mirrors"][0]["heartbeatConnector"] == {
        "tasksMax": 1,
        "state": "paused",
        "config": {
            "replication.policy.class": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
            "replication.policy.separator": "_",
            "heartbeats.topic.replication.factor": 2,
            "emit.heartbeats.interval.seconds": 5,
        },
    }
    assert "heartbeatConnector" not in mirror_spec(V1BETA2, mirror())["mirrors"][0]


def test_connectors_are_configured_as_in_v1() -> None:
    settings = mirror(naming="prefixed", offsetLagMax=0, exactlyOnce=True)
    old, new = mirror_spec(V1BETA2, settings), mirror_spec(V1, settings)
    assert source_config(old) == source_config(new)
    assert checkpoint_config(old) == checkpoint_config(new)
