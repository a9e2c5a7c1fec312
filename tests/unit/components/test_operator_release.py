"""An operator from a folder of its release: where each object goes, what it watches, and what is never deleted."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from components.operator import ROLE_BINDINGS, placed, read

from ...support.pulumi_engine import Engine, target, up

RELEASE = Path(__file__).parent / "release"
BINDINGS = ("RoleBinding", "ClusterRoleBinding")
LEADER = "strimzi-cluster-operator-leader-election"


def install(engine: Engine, **operator: Any) -> None:
    """Run a stack whose operator comes from the release beside this file."""
    settings = target(operator={"install": "yaml", "folder": "release", **operator}, mirrors=[])
    up(engine, settings, root=RELEASE.parent)


def bindings(engine: Engine) -> set[tuple[str, str, str, str]]:
    """Kind, namespace, name and role of every binding; all are for the one account in the operator's namespace."""
    found = set()
    for (kind, _), inputs in engine.resources.items():
        if kind.split(":")[-1] in BINDINGS:
            metadata = inputs["metadata"]
            place = metadata.get("namespace", "")
            found.add((inputs["kind"], place, metadata["name"], inputs["roleRef"]["name"]))
    return found


def watched(engine: Engine) -> dict[str, Any]:
    """The environment of the operator's container."""
    (container,) = engine.one("v1:Deployment")["spec"]["template"]["spec"]["containers"]
    return {entry["name"]: {key: each for key, each in entry.items() if key != "name"} for entry in container["env"]}


ROLES = {
    "strimzi-cluster-operator": "strimzi-cluster-operator-namespaced",
    "strimzi-cluster-operator-watched": "strimzi-cluster-operator-watched",
    "strimzi-cluster-operator-entity-operator-delegation": "strimzi-entity-operator",
}
GLOBAL = ("ClusterRoleBinding", "", "strimzi-cluster-operator", "strimzi-cluster-operator-global")


def test_by_itself_it_watches_the_namespace_that_it_is_in() -> None:
    engine = Engine()
    install(engine)
    assert watched(engine) == {
        "STRIMZI_NAMESPACE": {"value": "stg"},
        "STRIMZI_FULL_RECONCILIATION_INTERVAL_MS": {"value": "120000"},
    }
    own = {("RoleBinding", "stg", name, role) for name, role in ROLES.items()}
    assert bindings(engine) == {*own, GLOBAL, ("RoleBinding", "stg", LEADER, LEADER)}


def test_the_three_bindings_are_made_in_each_watched_namespace_and_leader_election_only_at_home() -> None:
    engine = Engine()
    install(engine, namespace="operators", watchedNamespaces=["stg", "mirrors"])
    assert watched(engine)["STRIMZI_NAMESPACE"] == {"value": "stg,mirrors"}
    each = {("RoleBinding", place, name, role) for place in ("stg", "mirrors") for name, role in ROLES.items()}
    assert bindings(engine) == {*each, GLOBAL, ("RoleBinding", "operators", LEADER, LEADER)}


def test_for_all_namespaces_the_three_bindings_are_cluster_wide_under_names_of_their_own() -> None:
    engine = Engine()
    install(engine, allNamespaces=True)
    assert watched(engine)["STRIMZI_NAMESPACE"] == {"value": "*"}
    names = {
        "strimzi-cluster-operator-namespaced": "strimzi-cluster-operator-namespaced",
        "strimzi-cluster-operator-watched": "strimzi-cluster-operator-watched",
        "strimzi-cluster-operator-entity-operator-delegation": "strimzi-entity-operator",
    }
    every = {("ClusterRoleBinding", "", name, role) for name, role in names.items()}
    assert bindings(engine) == {*every, GLOBAL, ("RoleBinding", "stg", LEADER, LEADER)}


@pytest.mark.parametrize(
    "operator",
    [{}, {"namespace": "operators", "watchedNamespaces": ["stg"]}, {"namespace": "operators", "allNamespaces": True}],
)
def test_every_object_is_in_the_operators_namespace_or_in_none(operator: dict[str, Any]) -> None:
    engine = Engine()
    install(engine, **operator)
    home = operator.get("namespace", "stg")
    for (_, name), inputs in engine.resources.items():
        if not name.startswith("operator-release-"):
            continue
        place = inputs["metadata"].get("namespace")
        if inputs["kind"] in ("ServiceAccount", "ConfigMap", "Deployment"):
            assert place == home, name
        if inputs["kind"] in ("ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"):
            assert place is None, name
        assert {subject["namespace"] for subject in inputs.get("subjects", [])} <= {home}, name


def test_a_definition_is_never_deleted_and_is_compared_by_its_content() -> None:
    engine = Engine()
    install(engine)
    (name,) = (name for kind, name in engine.resources if kind.endswith("CustomResourceDefinition"))
    request = engine.asked(name)
    assert request.retainOnDelete
    assert list(request.ignoreChanges) == ["spec", "metadata", "status"]
    assert engine.asked("operator-release-deployment-stg-strimzi-cluster-operator").retainOnDelete is False
    # Another content is another resource, which must be allowed to take the fields of the old one.
    assert request.object["metadata"]["annotations"]["pulumi.com/patchForce"] == "true"


def test_another_content_of_a_definition_is_another_resource(tmp_path: Path) -> None:
    names = []
    for text in ("served: true", "served: false"):
        folder = tmp_path / text.split(": ")[1]
        folder.mkdir()
        for path in RELEASE.glob("*.yaml"):
            (folder / path.name).write_text(path.read_text().replace("served: true", text))
        engine = Engine()
        install(engine, folder=str(folder))
        names += [name for kind, name in engine.resources if kind.endswith("CustomResourceDefinition")]
    assert len(set(names)) == 2


def test_the_deployment_comes_after_everything_that_it_needs_and_the_cluster_after_it() -> None:
    engine = Engine()
    install(engine)
    name = "operator-release-deployment-stg-strimzi-cluster-operator"
    needed = {urn.rsplit("::", 1)[-1] for urn in engine.asked(name).dependencies}
    others = {each for _, each in engine.resources if each.startswith("operator-release-")} - {name}
    assert others == {each for each in needed if each.startswith("operator-release-")}
    assert name in {urn.rsplit("::", 1)[-1] for urn in engine.asked("cluster").dependencies}


def test_an_object_after_the_deployment_does_not_make_it_wait_for_itself(tmp_path: Path) -> None:
    for path in RELEASE.glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "070-ConfigMap.yaml").write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "last"}})
    )
    engine = Engine()
    install(engine, folder=str(tmp_path))
    needed = {
        urn.rsplit("::", 1)[-1]
        for urn in engine.asked("operator-release-deployment-stg-strimzi-cluster-operator").dependencies
    }
    assert "operator-release-configmap-stg-last" not in needed
    assert "operator-release-deployment-stg-strimzi-cluster-operator" not in needed


def test_the_release_itself_is_not_changed_by_placing_it() -> None:
    bodies = read(RELEASE)
    list(placed(bodies, "operators", ("a", "b")))
    assert bodies == read(RELEASE)
    assert {body["metadata"]["name"] for body in bodies if body["kind"] == "RoleBinding"} == {*ROLE_BINDINGS, LEADER}


@pytest.mark.parametrize(
    ("files", "reported"),
    [
        ({}, r"must hold the operator's release with its Deployment .* with 0 objects.*install/cluster-operator"),
        ({"a.yaml": "kind: ["}, "must hold readable YAML"),
        ({"a.yaml": "- not an object"}, "must hold Kubernetes objects only"),
        ({"a.yaml": "kind: ServiceAccount"}, "must hold Kubernetes objects only"),
        ({"a.txt": "kind: Deployment"}, "must hold the operator's release .* with 0 objects"),
    ],
)
def test_a_folder_that_is_no_release_is_reported(tmp_path: Path, files: dict[str, str], reported: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(pulumi.RunError, match=f"operator: folder {reported}"):
        read(tmp_path)
