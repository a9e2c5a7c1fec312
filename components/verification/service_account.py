"""The ServiceAccount of pods of the verification, and the rights that it is bound to.

Does not know which rights those are.
"""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_kubernetes.core.v1 import ServiceAccount
from pulumi_kubernetes.rbac.v1 import Role, RoleBinding

from components.verification.pods import Rule
from settings.stack import Stack

_RBAC = "rbac.authorization.k8s.io"
# OpenShift lets a pod have the image's user only by this constraint, which still keeps root out.
_NON_ROOT = "system:openshift:scc:nonroot-v2"


class Account:
    """An account that may do nothing until it is granted something; `made` has it and all that grants it rights."""

    def __init__(
        self, name: str, metadata: Mapping[str, Any], parent: pulumi.Resource, *, token: bool | None = None
    ) -> None:
        """Make the account; `token` is whether its pods get a token of it, without it as Kubernetes decides."""
        self._name, self._metadata, self._child = name, metadata, pulumi.ResourceOptions(parent=parent)
        account = ServiceAccount(
            f"{name}-account", metadata=metadata, automount_service_account_token=token, opts=self._child
        )
        self.made: list[pulumi.Resource] = [account]
        self._account = account

    def grant(self, what: str, namespace: str, rules: list[Rule]) -> None:
        """Grant rights in a namespace by a Role of its own."""
        own = {**self._metadata, "name": f"{self._metadata['name']}-{what}", "namespace": namespace}
        role = Role(f"{self._name}-{what}-role", metadata=own, rules=rules, opts=self._child)
        self._bind(what, "Role", own["name"], namespace, role)

    def allow_image_user(self, settings: Stack) -> None:
        """Let its pods have the image's user where the platform asks for a right to it."""
        if settings.platform.distribution == "openshift":
            self._bind("nonroot", "ClusterRole", _NON_ROOT, self._metadata["namespace"])

    def _bind(self, what: str, kind: str, role: str, namespace: str, *needs: pulumi.Resource) -> None:
        own = {**self._metadata, "name": f"{self._metadata['name']}-{what}", "namespace": namespace}
        subject = {key: self._metadata[key] for key in ("name", "namespace")}
        self.made.append(
            RoleBinding(
                f"{self._name}-{what}",
                metadata=own,
                role_ref={"apiGroup": _RBAC, "kind": kind, "name": role},
                subjects=[{"kind": "ServiceAccount", **subject}],
                opts=pulumi.ResourceOptions.merge(
                    self._child, pulumi.ResourceOptions(depends_on=[self._account, *needs])
                ),
            )
        )
