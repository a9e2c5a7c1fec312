"""The operator's installation from a folder of its release's YAML files.

Owns the watched namespaces in the Deployment's environment and the role bindings in each of them. Custom resource
definitions are applied and never deleted: with one of them every cluster of its kind would go.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pulumi
import yaml

from components.endpoint import beside_the_stack_file
from settings.stack import Stack

# The release holds a RoleBinding per role; each is made in every watched namespace, or for all of them at once.
ROLE_BINDINGS = (
    "strimzi-cluster-operator",
    "strimzi-cluster-operator-watched",
    "strimzi-cluster-operator-entity-operator-delegation",
)
WATCHED, ALL = "STRIMZI_NAMESPACE", "*"
_FORCE = "pulumi.com/patchForce"
_DEFINITION = "CustomResourceDefinition"
_CLUSTER_WIDE = (_DEFINITION, "ClusterRole", "ClusterRoleBinding", "Namespace")
Body = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class OperatorReleaseArgs:
    """The settings: where the release lies and which namespaces it watches."""

    settings: Stack


class OperatorRelease(pulumi.ComponentResource):
    """An operator that was installed from its release."""

    def __init__(self, name: str, args: OperatorReleaseArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Apply the release; the Deployment is waited for."""
        super().__init__("rt-inventory:kubernetes:OperatorRelease", name, None, opts)
        operator, home = args.settings.operator, args.settings.cluster.namespace
        if operator.folder is not None:
            bodies = read(beside_the_stack_file(operator.folder))
            before: list[pulumi.Resource] = []
            for body in placed(bodies, operator.home(home), operator.watched(home)):
                after = list(before) if body["kind"] == "Deployment" else []
                before.append(_Object(name, body, self, after))
        self.register_outputs({})


class _Object(pulumi.CustomResource):
    """Any Kubernetes object as it is."""

    def __init__(self, name: str, body: Body, parent: pulumi.Resource, after: list[pulumi.Resource]) -> None:
        group = body["apiVersion"] if "/" in body["apiVersion"] else f"core/{body['apiVersion']}"
        metadata = body["metadata"]
        place = f"{metadata['namespace']}-" if "namespace" in metadata else ""
        opts = pulumi.ResourceOptions(parent=parent, depends_on=after, version=version("pulumi-kubernetes"))
        full = f"{name}-{body['kind'].lower()}-{place}{metadata['name']}"
        if body["kind"] == _DEFINITION:
            # The API server fills in what the file leaves out, so a definition would differ at every `up`. It is
            # compared by its content instead: another content is another resource, applied over the old one's fields.
            body = {
                **body,
                "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), _FORCE: "true"}},
            }
            content = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:8]
            full = f"{full}-{content}"
            opts = pulumi.ResourceOptions.merge(
                opts, pulumi.ResourceOptions(retain_on_delete=True, ignore_changes=["spec", "metadata", "status"])
            )
        super().__init__(f"kubernetes:{group}:{body['kind']}", full, body, opts)


def read(folder: Path) -> list[Body]:
    """Return the objects of a folder's YAML files in the order of their names; raises RunError without a Deployment."""
    try:
        files = [path for path in sorted(folder.glob("*")) if path.suffix in (".yaml", ".yml")]
        bodies = [body for path in files for body in yaml.safe_load_all(path.read_text(encoding="utf-8")) if body]
    except (OSError, yaml.YAMLError) as error:
        raise pulumi.RunError(f"operator: folder must hold readable YAML (got {folder}: {error}).") from None
    if any(not isinstance(body, dict) or not {"apiVersion", "kind", "metadata"} <= body.keys() for body in bodies):
        raise pulumi.RunError(
            f"operator: folder must hold Kubernetes objects only (got others in {folder}). Remove them."
        )
    if not any(body.get("kind") == "Deployment" for body in bodies):
        raise pulumi.RunError(
            f"operator: folder must hold the operator's release with its Deployment (got {folder} with "
            f"{len(bodies)} objects). It is the folder install/cluster-operator of the release."
        )
    return bodies


def placed(bodies: list[Body], namespace: str, watched: tuple[str, ...]) -> Iterator[Body]:
    """Yield the objects as they are installed: in the operator's namespace, watching the given ones (none: all)."""
    for body in bodies:
        kind, name = body["kind"], body["metadata"]["name"]
        if kind == "RoleBinding" and name in ROLE_BINDINGS:
            yield from _bindings(body, namespace, watched)
            continue
        result = body if kind in _CLUSTER_WIDE else _in(body, namespace)
        if "subjects" in body:
            result = {**result, "subjects": [_subject(subject, namespace) for subject in body["subjects"]]}
        yield _watching(result, namespace, watched) if kind == "Deployment" else result


def _bindings(body: Body, namespace: str, watched: tuple[str, ...]) -> Iterator[Body]:
    body = {**body, "subjects": [_subject(subject, namespace) for subject in body["subjects"]]}
    if not watched:
        name = body["metadata"]["name"]
        # The release has a ClusterRoleBinding of this name already.
        name = f"{name}-namespaced" if name == ROLE_BINDINGS[0] else name
        metadata = {key: value for key, value in body["metadata"].items() if key != "namespace"}
        yield {**body, "kind": "ClusterRoleBinding", "metadata": {**metadata, "name": name}}
    for each in watched:
        yield _in(body, each)


def _in(body: Body, namespace: str) -> Body:
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}}


def _subject(subject: Body, namespace: str) -> Body:
    return {**subject, "namespace": namespace} if subject.get("kind") == "ServiceAccount" else subject


def _watching(deployment: Body, namespace: str, watched: tuple[str, ...]) -> Body:
    """The Deployment with the namespaces in its environment."""
    template = deployment["spec"]["template"]
    # By the downward API the release watches its own namespace; a list is written out.
    value = ALL if not watched else ",".join(watched)
    containers = [
        {
            **container,
            "env": [
                {"name": WATCHED, "value": value} if entry["name"] == WATCHED else entry
                for entry in container.get("env", [])
            ],
        }
        for container in template["spec"]["containers"]
    ]
    spec = {**deployment["spec"], "template": {**template, "spec": {**template["spec"], "containers": containers}}}
    return {**_in(deployment, namespace), "spec": spec}
