"""The operator's installation: from a folder of its release's YAML files, or by OLM.

Of a release, owns the watched namespaces in the Deployment's environment and the role bindings in each of them. Custom
resource definitions are applied and never deleted: with one of them every cluster of its kind would go. By OLM, owns
the catalog, the OperatorGroup, the Subscription, and the wait for the installed ClusterServiceVersion. Does not own OLM
itself, or an approval by hand.
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

from components.custom_resource import INSTALLED, CustomResource, Wait
from components.dialects import Manifest
from components.endpoint import beside_the_stack_file
from settings.platform import TAKES_OVER, Operator, Package
from settings.stack import Stack

# The release holds a RoleBinding per role; each is made in every watched namespace, or for all of them at once.
ROLE_BINDINGS = (
    "strimzi-cluster-operator",
    "strimzi-cluster-operator-watched",
    "strimzi-cluster-operator-entity-operator-delegation",
)
WATCHED, ALL = "STRIMZI_NAMESPACE", "*"
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
                "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **TAKES_OVER}},
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


_CORE, _ALPHA = "operators.coreos.com/v1", "operators.coreos.com/v1alpha1"


@dataclass(frozen=True, kw_only=True)
class OperatorSubscriptionArgs:
    """The settings: how the operator is installed, and for which namespaces."""

    settings: Stack


class OperatorSubscription(pulumi.ComponentResource):
    """An operator that OLM installed; nothing if the settings say otherwise."""

    installed_csv: pulumi.Output[str | None]
    """Name of the installed ClusterServiceVersion; None if the operator is not this stack's."""

    def __init__(self, name: str, args: OperatorSubscriptionArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Subscribe and wait until the operator is installed."""
        super().__init__("rt-inventory:olm:OperatorSubscription", name, None, opts)
        self.installed_csv = pulumi.Output.from_input(None)
        if args.settings.operator.install == "olm":
            self.installed_csv = self._subscribe(name, args.settings)
        self.register_outputs({"installedCsv": self.installed_csv})

    def _subscribe(self, name: str, settings: Stack) -> pulumi.Output[str | None]:
        operator, home = settings.operator, settings.cluster.namespace
        namespace, package = operator.home(home), operator.subscription(settings.platform)
        needs = [
            CustomResource(
                f"{name}-group",
                api_version=_CORE,
                manifest=Manifest(kind="OperatorGroup", name=namespace, spec=_group(operator.watched(home))),
                namespace=namespace,
                opts=pulumi.ResourceOptions(parent=self),
            )
        ]
        if operator.catalog is not None:
            needs.append(
                CustomResource(
                    f"{name}-catalog",
                    api_version=_ALPHA,
                    manifest=Manifest(kind="CatalogSource", name=package.source, spec=_catalog(operator)),
                    namespace=package.source_namespace,
                    opts=pulumi.ResourceOptions(parent=self),
                )
            )
        subscription = CustomResource(
            f"{name}-subscription",
            api_version=_ALPHA,
            manifest=Manifest(kind="Subscription", name=package.name, spec=_subscription(operator, package)),
            namespace=namespace,
            wait=Wait(
                for_=_installed(operator),
                words=f"Subscription {package.name} in {namespace}: operator installed",
                seconds=operator.ready_seconds,
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=needs),
        )
        return subscription.status.apply(lambda status: (status or {}).get("installedCSV"))


def _installed(operator: Operator) -> tuple[str, ...]:
    """A pinned version is there even while the channel has a newer one, of which OLM reports `UpgradePending`."""
    return (
        INSTALLED if operator.starting_csv is None else (f"jsonpath={{.status.installedCSV}}={operator.starting_csv}",)
    )


def _group(watched: tuple[str, ...]) -> dict[str, Any]:
    """An OperatorGroup without target namespaces selects all."""
    return {"targetNamespaces": list(watched)} if watched else {}


def _catalog(operator: Operator) -> dict[str, Any]:
    catalog = operator.catalog
    if catalog is None:
        return {}
    return {
        "sourceType": "grpc",
        "image": catalog.image,
        "displayName": catalog.display_name,
        "publisher": catalog.publisher,
        "updateStrategy": {"registryPoll": {"interval": f"{catalog.poll_minutes}m"}},
    }


def _subscription(operator: Operator, package: Package) -> dict[str, Any]:
    spec = {
        "name": package.name,
        "channel": package.channel,
        "source": package.source,
        "sourceNamespace": package.source_namespace,
        "installPlanApproval": operator.approval,
    }
    return spec if operator.starting_csv is None else {**spec, "startingCSV": operator.starting_csv}


def install_operator(settings: Stack, opts: pulumi.ResourceOptions) -> pulumi.ComponentResource:
    """Return the operator's installation: from its release, or by OLM; the latter is empty if it is there already."""
    if settings.operator.install == "yaml":
        return OperatorRelease("operator-release", OperatorReleaseArgs(settings=settings), opts)
    return OperatorSubscription("operator", OperatorSubscriptionArgs(settings=settings), opts)
