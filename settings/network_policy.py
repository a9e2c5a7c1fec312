"""Who may connect to a listener inside Kubernetes: the peers of a NetworkPolicy, in Kubernetes' own words."""

from typing import Annotated, Any, Literal

from pydantic import Field

from settings.model import Model, plain
from settings.names import Annotations, none


class LabelRequirement(Model):
    """One requirement on a label."""

    key: str
    """Name of the label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label is compared with the values."""
    values: tuple[str, ...] = ()
    """Values for `In` and `NotIn`."""


class LabelSelector(Model):
    """Objects by their labels. Without any requirement it selects all."""

    match_labels: Annotations = Field(default_factory=none)
    """Labels and the values that they must have."""
    match_expressions: tuple[LabelRequirement, ...] = ()
    """Requirements that must all be met."""


class IpBlock(Model):
    """A range of addresses."""

    cidr: str
    """The range, such as `10.0.0.0/8`."""
    excluded: Annotated[tuple[str, ...], Field(alias="except")] = ()
    """Ranges within it that may not connect."""


class NetworkPolicyPeer(Model):
    """Pods, by their labels and their namespace's, or a range of addresses.

    `podSelector` alone selects pods in the cluster's namespace; with `namespaceSelector`, pods in those namespaces.
    """

    pod_selector: LabelSelector | None = None
    """Labels of the pods."""
    namespace_selector: LabelSelector | None = None
    """Labels of their namespaces."""
    ip_block: IpBlock | None = None
    """A range of addresses, instead of selectors."""

    def rendered(self) -> dict[str, Any]:
        """Return the peer as Kubernetes has it."""
        found: dict[str, Any] = plain(self.model_dump(by_alias=True, exclude_none=True, exclude_unset=True))
        return found
