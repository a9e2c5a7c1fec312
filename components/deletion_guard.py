"""What a `pulumi destroy` of a protected stack meets first.

Pulumi deletes what depends on others before these others, and refuses a protected resource only when it comes to it:
the mirror and the Secret of the clients, which are not protected, would be gone by then. The guard depends on
everything, so it comes first, and while it is protected nothing is deleted. Owns no resource in any cluster. Does not
protect the resources themselves: an `up` may remove a mirror.
"""

from collections.abc import Iterable

import pulumi

NAME = "whole-stack"


class DeletionGuard(pulumi.ComponentResource):
    """A resource of Pulumi's state alone, protected like the cluster."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        """Register it; what it depends on and whether it is protected stand in the options."""
        super().__init__("rt-inventory:pulumi:DeletionGuard", name, None, opts)
        self.register_outputs({})


def guard_against_deletion(resources: Iterable[pulumi.Resource | None], *, protect: bool) -> DeletionGuard:
    """Return the guard of all resources of a stack.

    It is there without protection too: Pulumi lifts the protection of a resource only while the program has it.
    """
    everything = [resource for resource in resources if resource is not None]
    return DeletionGuard(NAME, pulumi.ResourceOptions(depends_on=everything, protect=protect))
