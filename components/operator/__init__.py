"""How the operator gets in: the component for the way that the settings choose."""

import pulumi

from components.operator.release import OperatorRelease, OperatorReleaseArgs
from components.operator.subscription import OperatorSubscription, OperatorSubscriptionArgs
from settings.stack import Stack


def install_operator(settings: Stack, opts: pulumi.ResourceOptions) -> pulumi.ComponentResource:
    """Return the operator's installation: from its release, or by OLM; the latter is empty if it is there already."""
    if settings.operator.install == "yaml":
        return OperatorRelease("operator-release", OperatorReleaseArgs(settings=settings), opts)
    return OperatorSubscription("operator", OperatorSubscriptionArgs(settings=settings), opts)
