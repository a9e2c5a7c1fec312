"""The operator's installation by OLM: catalog, OperatorGroup and Subscription.

Owns the wait for the installed ClusterServiceVersion. Does not own OLM itself, or an approval by hand.
"""

from dataclasses import dataclass
from typing import Any

import pulumi

from components.custom_resource import INSTALLED, CustomResource, Wait
from components.dialects import Manifest
from settings.platform import Operator, Package
from settings.stack import Stack

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
