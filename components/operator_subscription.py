"""The operator's installation by OLM: OperatorGroup and Subscription in the namespace that it watches.

Owns the wait for the installed ClusterServiceVersion. Does not own the catalog, OLM itself, or an approval by hand.
"""

from dataclasses import dataclass
from typing import Any

import pulumi

from components.custom_resource import INSTALLED, CustomResource, Wait
from settings.operator import Operator


@dataclass(frozen=True, kw_only=True)
class OperatorSubscriptionArgs:
    """How the operator is installed, and where."""

    operator: Operator
    namespace: str


class OperatorSubscription(pulumi.ComponentResource):
    """An operator that is installed and watches one namespace; nothing if the settings say it is there already."""

    installed_csv: pulumi.Output[str | None]
    """Name of the installed ClusterServiceVersion; None if the operator is not this stack's."""

    def __init__(self, name: str, args: OperatorSubscriptionArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Subscribe and wait until the operator is installed."""
        super().__init__("rt-inventory:olm:OperatorSubscription", name, None, opts)
        self.installed_csv = pulumi.Output.from_input(None)
        if args.operator.install == "olm":
            self.installed_csv = self._subscribe(name, args)
        self.register_outputs({"installedCsv": self.installed_csv})

    def _subscribe(self, name: str, args: OperatorSubscriptionArgs) -> pulumi.Output[str | None]:
        operator, namespace = args.operator, args.namespace
        group = CustomResource(
            f"{name}-group",
            api_version="operators.coreos.com/v1",
            kind="OperatorGroup",
            metadata={"name": namespace, "namespace": namespace},
            spec={"targetNamespaces": [namespace]},
            opts=pulumi.ResourceOptions(parent=self),
        )
        subscription = CustomResource(
            f"{name}-subscription",
            api_version="operators.coreos.com/v1alpha1",
            kind="Subscription",
            metadata={"name": operator.package, "namespace": namespace},
            spec=_spec(operator),
            wait=Wait(
                for_=INSTALLED,
                words=f"Subscription {operator.package} in {namespace}: operator installed",
                seconds=operator.ready_seconds,
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[group]),
        )
        return subscription.status.apply(lambda status: (status or {}).get("installedCSV"))


def _spec(operator: Operator) -> dict[str, Any]:
    spec = {
        "name": operator.package,
        "channel": operator.channel,
        "source": operator.source,
        "sourceNamespace": operator.source_namespace,
        "installPlanApproval": operator.approval,
    }
    return spec if operator.starting_csv is None else {**spec, "startingCSV": operator.starting_csv}
