"""The rule on the clusters that a mirror names."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.mirror.connect_cluster import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror

WITH_CLUSTERS = [kit.V1BETA2, kit.EVENT_STREAMS]


def violation() -> list[kit.Sample]:
    return broken_mirror("mm-connect", lambda mirror: mirror.spec.update(connectCluster="es-src"), kit.V1BETA2)


def unknown_alias(where: str, got: str) -> str:
    return (
        f"mirror mm2: {where} must be the alias of one of clusters (got {got}, allowed es-src, es-tgt). "
        "The operator refuses the resource."
    )


def elsewhere(index: int, got: str, allowed: str) -> str:
    return (
        f"mirror mm2: mirrors[{index}].targetCluster must be connectCluster (got {got}, allowed {allowed}). "
        "The workers write to the cluster that they belong to: give each target a resource of its own."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_workers_at_the_target_pass(shape: str) -> None:
    assert kit.judge(POLICY, kit.mirror(shape)) == []


@pytest.mark.parametrize("shape", WITH_CLUSTERS)
def test_workers_at_the_source_are_reported(shape: str) -> None:
    mirror = kit.mirror(shape)
    mirror.spec["connectCluster"] = "es-src"
    assert kit.judge(POLICY, mirror) == [elsewhere(0, "es-tgt", "es-src")]


@pytest.mark.parametrize("shape", WITH_CLUSTERS)
def test_of_two_mirrors_the_one_that_goes_back_is_reported(shape: str) -> None:
    mirror = kit.mirror(shape)
    mirror.spec["mirrors"].append({"sourceCluster": "es-tgt", "targetCluster": "es-src", "sourceConnector": {}})
    assert kit.judge(POLICY, mirror) == [elsewhere(1, "es-src", "es-tgt")]


@pytest.mark.parametrize("shape", WITH_CLUSTERS)
def test_a_source_that_is_no_cluster_is_reported(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.flow(mirror)["sourceCluster"] = "es-old"
    assert kit.judge(POLICY, mirror) == [unknown_alias("mirrors[0].sourceCluster", "es-old")]


@pytest.mark.parametrize("shape", WITH_CLUSTERS)
def test_a_target_that_is_no_cluster_is_reported_with_the_place_of_the_workers(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.flow(mirror)["targetCluster"] = "es-new"
    assert kit.judge(POLICY, mirror) == [
        unknown_alias("mirrors[0].targetCluster", "es-new"),
        elsewhere(0, "es-new", "es-tgt"),
    ]


@pytest.mark.parametrize("shape", WITH_CLUSTERS)
def test_workers_at_no_cluster_are_reported(shape: str) -> None:
    mirror = kit.mirror(shape)
    mirror.spec["connectCluster"] = kit.flow(mirror)["targetCluster"] = "es-new"
    assert kit.judge(POLICY, mirror) == [
        unknown_alias("connectCluster", "es-new"),
        unknown_alias("mirrors[0].targetCluster", "es-new"),
    ]


def test_without_clusters_no_alias_is_allowed() -> None:
    mirror = kit.mirror(kit.V1BETA2)
    del mirror.spec["clusters"]
    assert all("allowed none" in found for found in kit.judge(POLICY, mirror))
    assert len(kit.judge(POLICY, mirror)) == 3


def test_the_fields_are_none_of_v1() -> None:
    mirror = kit.mirror(kit.V1)
    mirror.spec["connectCluster"] = "es-src"
    kit.flow(mirror)["targetCluster"] = "es-tgt"
    assert kit.judge(POLICY, mirror) == []


def test_a_name_that_is_not_given_is_not_judged() -> None:
    mirror = kit.mirror(kit.V1BETA2)
    del mirror.spec["connectCluster"], kit.flow(mirror)["targetCluster"]
    assert kit.judge(POLICY, mirror) == []


def test_another_type_is_ignored() -> None:
    mirror = kit.mirror(kit.V1BETA2)
    mirror.spec["connectCluster"] = "es-src"
    assert kit.judge(POLICY, kit.Sample("kubernetes:kafka.strimzi.io/v1beta2:KafkaConnect", mirror.props)) == []


def test_one_unknown_alias_hides_no_other() -> None:
    mirror = kit.mirror(kit.V1BETA2)
    kit.flow(mirror)["sourceCluster"] = UNKNOWN_STRING_VALUE
    mirror.spec["connectCluster"] = "es-src"
    assert kit.judge(POLICY, mirror) == [elsewhere(0, "es-tgt", "es-src")]


def test_an_unknown_cluster_leaves_aliases_to_the_update() -> None:
    mirror = kit.mirror(kit.V1BETA2)
    kit.target(mirror)["alias"] = UNKNOWN_STRING_VALUE
    assert kit.judge(POLICY, mirror) == []
