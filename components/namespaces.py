"""The Kubernetes namespaces of a stack. Owns the namespaces; does not own what is in them."""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import Namespace

from settings.stack import Stack


@dataclass(frozen=True, kw_only=True)
class NamespacesArgs:
    """The settings: which namespaces, and whether Pulumi may delete them."""

    settings: Stack


class Namespaces(pulumi.ComponentResource):
    """Namespaces by name."""

    by_name: dict[str, Namespace]
    """The resources, to depend on."""

    def __init__(self, name: str, args: NamespacesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create each namespace."""
        super().__init__("rt-inventory:kubernetes:Namespaces", name, None, opts)
        child = pulumi.ResourceOptions(parent=self, protect=args.settings.cluster.protect)
        self.by_name = {
            entry: Namespace(f"{name}-{entry}", metadata={"name": entry}, opts=child)
            for entry in args.settings.namespaces
        }
        self.register_outputs({"names": list(self.by_name)})
