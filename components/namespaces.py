"""The Kubernetes namespaces of a stack. Owns the namespaces; does not own what is in them."""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import Namespace


@dataclass(frozen=True, kw_only=True)
class NamespacesArgs:
    """Names of the namespaces, and whether Pulumi may delete them."""

    names: tuple[str, ...]
    protect: bool


class Namespaces(pulumi.ComponentResource):
    """Namespaces by name."""

    by_name: dict[str, Namespace]
    """The resources, to depend on."""

    def __init__(self, name: str, args: NamespacesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create each namespace."""
        super().__init__("rt-inventory:kubernetes:Namespaces", name, None, opts)
        child = pulumi.ResourceOptions(parent=self, protect=args.protect)
        self.by_name = {
            entry: Namespace(f"{name}-{entry}", metadata={"name": entry}, opts=child)
            for entry in dict.fromkeys(args.names)
        }
        self.register_outputs({"names": list(self.by_name)})
