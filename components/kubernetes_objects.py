"""The namespaces of a stack, and the security contexts of the pods that it runs.

Owns the namespaces; does not own what is in them.
"""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import Namespace

from components.dialects import Spec
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


def pod_security_context(user: int) -> Spec:
    """Security context of a pod that runs as an image's user."""
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security_context() -> Spec:
    """Security context of each of its containers."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
