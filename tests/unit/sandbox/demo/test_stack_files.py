"""What the demo deploys in somebody's Kubernetes clusters, by what it finds there; and what it refuses."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.demo.kubernetes import (
    NAMESPACES,
    OLM,
    ROUTES,
    DemoRefusedError,
    KubernetesCluster,
    Operator,
    node_address,
    operators,
    stack_files,
)
from sandbox.state import PROJECT
from sandbox.toolchain import pins
from settings import NAMESPACE, parse
from settings.stack import Stack

RELEASE = Path("/releases/strimzi")
SHIPPED = {
    stack: yaml.safe_load((PROJECT / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8")) for stack in NAMESPACES
}
KIND = KubernetesCluster(
    context="kind-kind",
    identity="uid-of-kind",
    namespaces=frozenset({"default", "kube-system"}),
    groups=frozenset({"apps"}),
    operators=(),
    node_address="172.18.0.2",
    is_kind=True,
)
OTHER = replace(KIND, context="there", identity="uid-of-another")
OPENSHIFT = replace(KIND, groups=frozenset({OLM, ROUTES}), is_kind=False, context="ocp", identity="uid-of-openshift")
MANAGED = replace(OPENSHIFT, groups=frozenset({OLM}), context="managed")
FOR_ALL = Operator("strimzi", "strimzi-cluster-operator", ())
FOR_ONE = Operator("team", "strimzi-cluster-operator", ("team-kafka",))


def written(
    dev: KubernetesCluster, stg: KubernetesCluster, release: Path | None = None, expose: str | None = None
) -> dict[str, Stack]:
    """The settings of both stacks, which the product accepts."""
    files = stack_files(SHIPPED, {"dev": dev, "stg": stg}, release, expose)
    values = {stack: raw(file["config"]) for stack, file in files.items()}
    contexts = {stack: file["config"]["kubernetes:context"] for stack, file in files.items()}
    assert contexts == {"dev": dev.context, "stg": stg.context}
    return {stack: parse(values[stack], stack, values, contexts=contexts) for stack in values}


def raw(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a stack file by key, without the namespace."""
    prefix = f"{NAMESPACE}:"
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}


@pytest.mark.parametrize("clusters", [(KIND, KIND), (KIND, OTHER), (OPENSHIFT, MANAGED)], ids=["one", "two", "olm"])
def test_what_is_made_is_small_and_pulumi_may_delete_it(clusters: tuple[KubernetesCluster, KubernetesCluster]) -> None:
    release = RELEASE if clusters[0].is_kind else None
    for stack, settings in written(*clusters, release).items():
        assert settings.namespaces == (NAMESPACES[stack],)
        assert (settings.cluster.brokers, settings.cluster.protect) == (1, False)
        assert settings.cluster.storage.type == "ephemeral"
        assert all(mirror.replication_factor == 1 for mirror in settings.mirrors)


def test_the_shipped_stack_files_are_not_changed() -> None:
    before = {stack: yaml.safe_dump(file) for stack, file in SHIPPED.items()}
    written(KIND, KIND, RELEASE)
    assert {stack: yaml.safe_dump(file) for stack, file in SHIPPED.items()} == before


def test_in_one_cluster_the_source_installs_the_release_for_both() -> None:
    found = written(KIND, replace(KIND, context="same-cluster"), RELEASE)
    dev, stg = (found[stack].operator for stack in ("dev", "stg"))
    assert (dev.install, dev.folder, dev.all_namespaces) == ("yaml", str(RELEASE), True)
    assert stg.install == "none"


def test_in_two_clusters_each_stack_installs_the_release_for_itself() -> None:
    for settings in written(KIND, OTHER, RELEASE).values():
        operator = settings.operator
        assert (operator.install, operator.folder, operator.all_namespaces) == ("yaml", str(RELEASE), False)


@pytest.mark.parametrize("release", [None, RELEASE])
def test_an_operator_for_all_namespaces_is_used(release: Path | None) -> None:
    there = replace(KIND, operators=(FOR_ONE, FOR_ALL))
    assert {settings.operator.install for settings in written(there, there, release).values()} == {"none"}


def test_without_a_release_olm_installs_it() -> None:
    assert {settings.operator.install for settings in written(MANAGED, MANAGED).values()} == {"olm"}


def test_a_cluster_without_any_way_to_strimzi_is_refused() -> None:
    with pytest.raises(DemoRefusedError, match=r"context kind-kind: must have Strimzi's operator.*make strimzi"):
        written(KIND, KIND)


def test_a_release_beside_somebodys_operator_is_refused() -> None:
    there = replace(KIND, operators=(FOR_ONE,))
    with pytest.raises(DemoRefusedError, match="got Deployment team/strimzi-cluster-operator, which watches team-kaf"):
        written(there, there, RELEASE)


def test_a_namespace_that_exists_is_refused() -> None:
    there = replace(KIND, namespaces=KIND.namespaces | {NAMESPACES["stg"]})
    with pytest.raises(DemoRefusedError, match=f"namespace {NAMESPACES['stg']}: must not exist in context kind-kind"):
        written(KIND, there, RELEASE)


def test_brokers_are_exposed_as_the_cluster_can() -> None:
    kind = written(KIND, KIND, RELEASE)["dev"].cluster.expose
    assert kind is not None
    assert (kind.type, kind.host) == ("nodeport", "172.18.0.2")
    found = written(OPENSHIFT, MANAGED)
    assert [each.cluster.expose and each.cluster.expose.type for each in found.values()] == ["route", "loadbalancer"]
    asked = written(MANAGED, MANAGED, expose="nodeport")["stg"].cluster.expose
    assert asked is not None
    assert asked.host == MANAGED.node_address


def test_node_ports_need_a_node() -> None:
    with pytest.raises(DemoRefusedError, match=r"must have a node that is ready.*EXPOSE=loadbalancer"):
        written(replace(MANAGED, node_address=None), MANAGED, expose="nodeport")


def node(ready: str, **addresses: str) -> dict[str, Any]:
    listed = [{"type": kind, "address": address} for kind, address in addresses.items()]
    return {"status": {"conditions": [{"type": "Ready", "status": ready}], "addresses": listed}}


def test_the_address_is_of_a_node_that_is_ready_and_external_if_it_has_one() -> None:
    inside, outside = node("True", InternalIP="10.0.0.2"), node("True", InternalIP="10.0.0.3", ExternalIP="203.0.113.3")
    assert node_address([node("False", InternalIP="10.0.0.1"), inside, outside]) == "10.0.0.2"
    assert node_address([outside]) == "203.0.113.3"
    assert node_address([]) is None


@pytest.mark.parametrize(
    ("variable", "watched"),
    [
        ({"value": "*"}, ()),
        ({"value": "a, b"}, ("a", "b")),
        ({"valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}, ("home",)),
        ({"valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}}}, ("x", "y")),
    ],
)
def test_an_operator_is_known_by_the_namespaces_that_it_watches(variable: Any, watched: tuple[str, ...]) -> None:
    container = {"env": [{"name": "STRIMZI_NAMESPACE", **variable}]}
    template = {"metadata": {"annotations": {"olm.targetNamespaces": "x,y"}}, "spec": {"containers": [container]}}
    ours = {"metadata": {"namespace": "home", "name": "operator"}, "spec": {"template": template}}
    other = {"metadata": {"namespace": "home", "name": "web"}, "spec": {"template": {"spec": {"containers": [{}]}}}}
    assert operators([other, ours]) == (Operator("home", "operator", watched),)


def test_make_downloads_the_release_of_the_version_that_is_pinned(tmp_path: Path) -> None:
    published = tmp_path / "releases" / pins.STRIMZI / f"strimzi-cluster-operator-{pins.STRIMZI}.yaml"
    published.parent.mkdir(parents=True)
    published.write_text("kind: Deployment\n", encoding="utf-8")
    target, folder = "strimzi", tmp_path / "here"
    command = [
        "make",
        target,
        f"PY={sys.executable}",
        f"STRIMZI={folder}",
        f"STRIMZI_RELEASES=file://{tmp_path}/releases",
    ]
    result = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert [path.read_text(encoding="utf-8") for path in folder.glob("*.yaml")] == ["kind: Deployment\n"]


def test_the_key_of_somebody_elses_state_is_left_behind() -> None:
    own = {"encryptionsalt": "v1:abc:def", "secretsprovider": "awskms://key", "encryptedkey": "abc"}
    shipped = {stack: {**document, **own} for stack, document in SHIPPED.items()}
    for document in stack_files(shipped, {"dev": KIND, "stg": KIND}, RELEASE, None).values():
        assert document.keys() == {"config"}


def test_an_encrypted_value_is_refused_because_the_demo_has_another_key() -> None:
    cluster = {**SHIPPED["stg"]["config"][f"{NAMESPACE}:cluster"], "notes": [{"secure": "v1:abc"}]}
    config = {**SHIPPED["stg"]["config"], f"{NAMESPACE}:cluster": cluster}
    with pytest.raises(DemoRefusedError, match="rt-inventory:cluster must have no encrypted value"):
        stack_files({**SHIPPED, "stg": {"config": config}}, {"dev": KIND, "stg": KIND}, RELEASE, None)
