"""What comes after what. Makes no resource."""

import pulumi


def after(*others: pulumi.Resource) -> pulumi.ResourceOptions:
    """Return options of a component that needs others to be ready."""
    return pulumi.ResourceOptions(depends_on=list(others))
