"""EventStreams clusters, users with single operations, and the mirror as operators know it from IBM's tutorial."""

from typing import Any

import pytest

from components.dialects import MirrorClusterSpec, cluster_spec, dialect, event_streams
from settings.platform import Platform
from settings.users import Acl

from ...support.component_settings import LICENSE, cluster, mirror, mirror_spec, side, user
from ...support.component_settings import event_streams as release

OLD, NEW = release("11.0.0"), release("12.0.0")


def spec(platform: Platform, **settings: Any) -> dict[str, Any]:
    """The EventStreams resource's spec."""
    (only,) = event_streams.cluster(cluster(**settings), platform.kafka_version, platform)
    assert (only.kind, only.name) == ("EventStreams", "kafka-us")
    return only.spec


def test_a_release_with_zookeeper_has_its_nodes_in_the_kafka_part() -> None:
    disk = {"type": "persistent-claim", "sizeGib": 5}
    claim = {"type": "persistent-claim", "size": "5Gi", "deleteClaim": False}
    found = spec(OLD, brokers=5, storage=disk, resources={"limits": {"cpu": 2}})
    overrides = found.pop("strimziOverrides")
    assert found == {"version": "11.0.0", "license": LICENSE}
    assert set(overrides) == {"kafka", "zookeeper", "entityOperator"}
    kafka = overrides["kafka"]
    assert {key: kafka[key] for key in ("replicas", "storage", "resources")} == {
        "replicas": 5,
        "storage": claim,
        "resources": {"limits": {"cpu": 2}},
    }
    assert "version" not in kafka  # the release has one
    assert overrides["zookeeper"] == {"replicas": 3, "storage": claim, "resources": {"limits": {"cpu": 2}}}
    assert spec(OLD, brokers=1)["strimziOverrides"]["zookeeper"]["replicas"] == 1


def test_zookeeper_has_the_brokers_resources_unless_others_are_given() -> None:
    own = {"limits": {"cpu": 1}}
    for resources in ({"limits": {"cpu": 2}}, {}):
        overrides = {"strimziOverrides": {"zookeeper": {"resources": own}}}
        found = spec(OLD, resources=resources, specOverrides=overrides)["strimziOverrides"]
        assert found["zookeeper"]["resources"] == own
        assert found["kafka"].get("resources", {}) == resources


def test_a_release_with_node_pools_has_them_inside() -> None:
    overrides = spec(NEW, version="4.0.0")["strimziOverrides"]
    both = ["controller", "broker"]
    assert overrides["nodePools"] == [{"name": "dual", "replicas": 3, "roles": both, "storage": {"type": "ephemeral"}}]
    assert overrides["kafka"]["version"] == "4.0.0"
    assert "zookeeper" not in overrides
    assert not {"replicas", "storage"} & set(overrides["kafka"])


def test_the_license_is_written_as_it_was_accepted() -> None:
    terms = {"accept": True, "id": "L-ABCD", "use": "CloudPakForIntegrationProduction"}
    assert spec(release(license=terms))["license"] == {
        "accept": True,
        "license": "L-ABCD",
        "use": "CloudPakForIntegrationProduction",
    }
    assert spec(release(license={"accept": True}))["license"] == {"accept": True}


def test_brokers_hosts_are_written_out_where_the_release_has_no_template() -> None:
    listeners = [{"name": "external", "port": 9094, "type": "route", "hostTemplate": "b-{nodeId}.example.com"}]
    old = spec(OLD, brokers=2, listeners=listeners)["strimziOverrides"]["kafka"]["listeners"][0]
    new = spec(NEW, brokers=2, listeners=listeners)["strimziOverrides"]["kafka"]["listeners"][0]
    assert old["configuration"] == {
        "brokers": [{"broker": 0, "host": "b-0.example.com"}, {"broker": 1, "host": "b-1.example.com"}]
    }
    assert new["configuration"] == {"hostTemplate": "b-{nodeId}.example.com"}


def test_what_brokers_advertise_to_clients_is_written_out_where_the_release_has_no_template() -> None:
    listeners = [{"name": "external", "port": 9094, "type": "loadbalancer", "hostTemplate": "b-{nodeId}.example.com"}]
    old = spec(OLD, brokers=2, listeners=listeners)["strimziOverrides"]["kafka"]["listeners"][0]
    assert old["configuration"] == {
        "brokers": [
            {"broker": 0, "advertisedHost": "b-0.example.com"},
            {"broker": 1, "advertisedHost": "b-1.example.com"},
        ]
    }


def test_users_and_topics_name_their_cluster_by_ibms_label() -> None:
    assert dialect(OLD).LABEL == "eventstreams.ibm.com/cluster"
    assert {dialect(each).LABEL for each in (Platform(), Platform(version="0.51.0"))} == {"strimzi.io/cluster"}


@pytest.mark.parametrize(("version", "lists"), [("11.0.0", False), ("11.1.0", False), ("11.2.0", True)])
def test_rights_of_old_releases_have_one_operation_each(version: str, lists: bool) -> None:
    rights = [Acl(type="topic", names=("a", "b"), operations=("Read", "Describe"))]
    written = cluster_spec.user(user(), rights, release(version))["authorization"]["acls"]
    one, other = ({"type": "topic", "patternType": "literal", "name": name} for name in ("a", "b"))
    common = {"type": "allow", "host": "*"}
    operations = {"operations": ["Read", "Describe"]}
    if lists:
        expected = [{**common, "resource": each, **operations} for each in (one, other)]
    else:
        expected = [
            {**common, "resource": one, "operation": "Read"},
            {**common, "resource": one, "operation": "Describe"},
            {**common, "resource": other, "operation": "Read"},
            {**common, "resource": other, "operation": "Describe"},
        ]
    assert written == expected


def test_the_mirror_of_ibms_tutorial_is_exactly_this() -> None:
    source, target = (
        side(
            alias,
            username=f"rt-inv-{stage}-user",
            secret=f"rt-inv-{stage}-user",
        )
        for alias, stage in (("es-src", "dev"), ("es-tgt", "stg"))
    )
    source = _trusting(source, "rt-inventory-dev-cluster-ca-cert")
    target = _trusting(target, "rt-inventory-stg-cluster-ca-cert")
    usual = "mirrormaker2-cluster"  # what the operator takes when nothing is written
    settings = mirror(
        source={"stack": "dev", "alias": "es-src", "user": "rt-inv-dev-user"},
        target={"alias": "es-tgt", "user": "rt-inv-stg-user"},
        topics=["items", "store.inventory", "items.inventory"],
        topicsExclude=[".apicurio"],
        groups=[".*"],
        groupsExclude=[],
        separator="",
        offsetSyncsLocation="source",
        refreshTopicsSeconds=10,
        refreshGroupsSeconds=5,
        emitCheckpointsSeconds=5,
        syncGroupOffsetsSeconds=5,
        sourceConfig=dict.fromkeys(
            [f"{kind}.storage.replication.factor" for kind in ("config", "offset", "status")], 1
        ),
        logLevel="INFO",
        groupId=usual,
        configStorageTopic=f"{usual}-configs",
        offsetStorageTopic=f"{usual}-offsets",
        statusStorageTopic=f"{usual}-status",
    )
    identity = {
        "replication.policy.class": "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
        "replication.policy.separator": "",
    }
    assert mirror_spec(OLD, settings, version="3.0.1", source=source, target=target) == {
        "version": "3.0.1",
        "replicas": 1,
        "connectCluster": "es-tgt",
        "logging": {"type": "inline", "loggers": {"connect.root.logger.level": "INFO"}},
        "template": {
            "pod": {
                "metadata": {
                    "annotations": {
                        "eventstreams.production.type": "CloudPakForIntegrationNonProduction",
                        "productID": "2a79e49111f44ec3acd89608e56138f5",
                        "productName": "IBM Event Streams for Non Production",
                        "productVersion": "11.0.0",
                        "productMetric": "VIRTUAL_PROCESSOR_CORE",
                        "productChargedContainers": "mm2-mirrormaker2",
                        "productCloudpakRatio": "2:1",
                        "cloudpakId": "c8b82d189e7545f0892db9ef2731b90d",
                        "cloudpakName": "IBM Cloud Pak for Integration",
                        "cloudpakVersion": "2022.1.1",
                    }
                }
            }
        },
        "clusters": [_end("es-src", "dev", 1), _end("es-tgt", "stg", 3)],
        "mirrors": [
            {
                "sourceCluster": "es-src",
                "targetCluster": "es-tgt",
                "sourceConnector": {
                    "tasksMax": 1,
                    "config": {
                        **identity,
                        "replication.factor": 3,
                        "sync.topic.acls.enabled": False,
                        "offset-syncs.topic.replication.factor": 3,
                        "refresh.topics.interval.seconds": 10,
                    },
                },
                "checkpointConnector": {
                    "tasksMax": 1,
                    "config": {
                        **identity,
                        "checkpoints.topic.replication.factor": 3,
                        "refresh.groups.interval.seconds": 5,
                        "emit.checkpoints.enabled": True,
                        "sync.group.offsets.enabled": True,
                        "sync.group.offsets.interval.seconds": 5,
                        "emit.checkpoints.interval.seconds": 5,
                    },
                },
                "topicsPattern": "items,store.inventory,items.inventory",
                "topicsExcludePattern": ".apicurio",
                "groupsPattern": ".*",
            }
        ],
    }


def test_annotations_are_settings_and_others_can_be_added() -> None:
    own = {"productVersion": "11.0.1", "cloudpakVersion": "2023.2.1", "annotations": {"team": "sre", "level": 2}}
    platform = release(cloudPak=own)
    found = mirror_spec(platform, mirror(name="es"), version="3.0.1")["template"]["pod"]["metadata"]["annotations"]
    usual = mirror_spec(OLD, mirror(name="es"), version="3.0.1")["template"]["pod"]["metadata"]["annotations"]
    assert usual["productChargedContainers"] == "es-mirrormaker2"
    assert found == {
        **usual,
        "productVersion": "11.0.1",
        "cloudpakVersion": "2023.2.1",
        "team": "sre",
        "level": "2",  # Kubernetes takes text only
    }


PRODUCTION = {"accept": True, "use": "CloudPakForIntegrationProduction"}
ENTITLED = {"productId": "0123", "productName": "IBM Event Streams", "cloudpakRatio": "1:1"}


def counted(version: str, license: dict[str, Any], **cloud_pak: Any) -> dict[str, str]:  # noqa: A002  # the setting
    """The annotations of a mirror's pods under a license."""
    platform = release(version, license=license, cloudPak=cloud_pak)
    found: dict[str, str] = mirror_spec(platform, mirror())["template"]["pod"]["metadata"]["annotations"]
    return found


def test_a_mirror_is_counted_by_the_release_that_is_installed() -> None:
    found = counted("11.3", LICENSE)
    assert found["productVersion"] == "11.3.0"
    assert "cloudpakVersion" not in found  # IBM names none there


@pytest.mark.parametrize(
    ("license_id", "release_of_cloud_pak"), [("L-VTPK-22YZPK", "2023.4.1"), ("L-RJON-CD3JKX", "2022.2.1")]
)
def test_a_license_id_names_the_release_of_the_cloud_pak(license_id: str, release_of_cloud_pak: str) -> None:
    assert counted("11.3.0", {**LICENSE, "id": license_id})["cloudpakVersion"] == release_of_cloud_pak
    assert counted("11.0.0", {**LICENSE, "id": license_id})["cloudpakVersion"] == release_of_cloud_pak


def test_an_unknown_license_id_names_no_release_of_the_cloud_pak() -> None:
    assert "cloudpakVersion" not in counted("11.0.0", {**LICENSE, "id": "L-NEXT"})


def test_a_license_for_production_is_counted_as_that() -> None:
    found = counted("11.3.0", PRODUCTION, **ENTITLED)
    assert found == {
        "eventstreams.production.type": "CloudPakForIntegrationProduction",
        "productID": "0123",
        "productName": "IBM Event Streams",
        "productVersion": "11.3.0",
        "productMetric": "VIRTUAL_PROCESSOR_CORE",
        "productChargedContainers": "mm2-mirrormaker2",
        "productCloudpakRatio": "1:1",
        "cloudpakId": "c8b82d189e7545f0892db9ef2731b90d",
        "cloudpakName": "IBM Cloud Pak for Integration",
    }


def test_nothing_of_a_license_that_is_not_for_production_is_written_for_one_that_is() -> None:
    assert not {"productID", "productName", "productCloudpakRatio"} & set(counted("11.3.0", PRODUCTION))


def test_a_license_of_event_automation_has_no_cloud_pak() -> None:
    terms = {"accept": True, "use": "EventAutomationNonProduction"}
    found = counted("11.3.0", terms, productId="0123", productName="IBM Event Streams")
    assert found["eventstreams.production.type"] == "EventAutomationNonProduction"
    assert not [key for key in found if "cloudpak" in key.lower()]


def _trusting(end: MirrorClusterSpec, secret: str) -> MirrorClusterSpec:
    return MirrorClusterSpec(**{**vars(end), "ca_secret": (secret, "ca.crt")})


def _end(alias: str, stage: str, factor: int) -> dict[str, Any]:
    user_name = f"rt-inv-{stage}-user"
    return {
        "alias": alias,
        "bootstrapServers": f"{alias}:9093",
        "tls": {
            "trustedCertificates": [{"secretName": f"rt-inventory-{stage}-cluster-ca-cert", "certificate": "ca.crt"}]
        },
        "authentication": {
            "type": "scram-sha-512",
            "username": user_name,
            "passwordSecret": {"secretName": user_name, "password": "password"},
        },
        "config": {
            "ssl.endpoint.identification.algorithm": "https",
            "config.storage.replication.factor": factor,
            "offset.storage.replication.factor": factor,
            "status.storage.replication.factor": factor,
        },
    }
