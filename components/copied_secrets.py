"""Secrets that mirrors refer to and that are not in their namespace: copies under the names that they have at home.

A copy that several mirrors use is made once, and two clusters never share one. Owns the copies; does not own what they
are copied from.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pulumi

from components.flows import Flow
from components.owned_secrets import OwnedSecret
from settings.stack import Stack

_OLD_PARENT = "urn:pulumi:{stack}::{project}::rt-inventory:kafka:MirrorMaker2::{mirror}"


@dataclass
class Copy:
    """Data of one copied Secret, and the mirror that asked for it first."""

    mirror: str
    data: dict[str, pulumi.Input[str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CopiedSecretsArgs:
    """The flows whose Secrets are copied; the settings say whether Pulumi may delete the copies."""

    settings: Stack
    flows: Sequence[Flow]


class CopiedSecrets(pulumi.ComponentResource):
    """Copies that exist."""

    def __init__(self, name: str, args: CopiedSecretsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create each copy."""
        super().__init__("rt-inventory:kubernetes:CopiedSecrets", name, None, opts)
        found = copies(args.flows)
        for (namespace, secret), copy in found.items():
            # Earlier each mirror owned its copies.
            parent = _OLD_PARENT.format(stack=pulumi.get_stack(), project=pulumi.get_project(), mirror=copy.mirror)
            OwnedSecret(
                f"{name}-{namespace}/{secret}",
                metadata={"name": secret, "namespace": namespace},
                string_data=copy.data,
                opts=pulumi.ResourceOptions(
                    parent=self,
                    protect=args.settings.cluster.protect,
                    aliases=[pulumi.Alias(name=f"{copy.mirror}-{secret}", parent=parent)],
                ),
            )
        self.register_outputs({"names": sorted(f"{namespace}/{secret}" for namespace, secret in found)})


def copies(flows: Iterable[Flow]) -> dict[tuple[str, str], Copy]:
    """Return what the flows' namespaces lack, by namespace and name.

    Raises RunError if a name would stand for Secrets of two clusters: one's mirror would log in with the other's.
    """
    found: dict[tuple[str, str], Copy] = {}
    owners: dict[tuple[str, str], str] = {}
    for flow in flows:
        for end in (flow.source, flow.target):
            for secret in end.secret_names:
                owner = owners.setdefault((flow.namespace, secret), end.owner)
                if owner != end.owner:
                    raise pulumi.RunError(
                        f"mirror {flow.mirror.name}: Secret {secret} in namespace {flow.namespace} must belong to one "
                        f"cluster (got {owner} and {end.owner}). Give the user, or the cluster, of one another name."
                    )
            for secret, data in end.secrets_for(flow.namespace).items():
                found.setdefault((flow.namespace, secret), Copy(flow.mirror.name)).data |= data
    return found
