"""Secrets of which the stack alone knows the values: passwords that it made, copies, what applications read.

Owns what an `up` does about a value that somebody changed by hand: it sets it back and names who changed it. A Secret
with other values that has the name already, of another stack too, is never overwritten. Does not own custom resources:
a change of theirs by hand stays a conflict, which a person decides.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pulumi
from pulumi_kubernetes.core.v1 import Secret

from components.kubernetes_access import KubernetesAccess, UnreadableError, per_program

_TAKE_BACK = {"pulumi.com/patchForce": "true"}
_OURS = "pulumi-kubernetes"  # each resource has a field manager of its own that begins so
_VALUES = ("f:data", "f:stringData")


class OwnedSecret(Secret):
    """A Secret whose values every `up` sets as declared, whoever else set them."""

    def __init__(
        self,
        resource_name: str,
        *,
        metadata: Mapping[str, Any],
        opts: pulumi.ResourceOptions,
        **content: Any,
    ) -> None:
        """Declare it. It is refused while a Secret of somebody else has its name."""
        guard = per_program(_Guard)
        hooks = pulumi.ResourceHookBinding(before_create=[guard.create_hook], before_update=[guard.update_hook])
        super().__init__(
            resource_name,
            metadata={**metadata, "annotations": _TAKE_BACK},
            opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(hooks=hooks)),
            **content,
        )


def setters(fields: Any) -> dict[str, str]:
    """Return who set values of a Secret, by the managed fields of its metadata, and when."""
    return {
        str(each.manager): each.time.isoformat(timespec="seconds") if each.time else "an unknown time"
        for each in fields or []
        if any(part in (each.fields_v1 or {}) for part in _VALUES)
    }


@dataclass
class _Guard:
    """One hook each for all Secrets of a program."""

    access: KubernetesAccess | None = None

    @cached_property
    def create_hook(self) -> pulumi.ResourceHook:
        """The hook before a Secret is made."""
        return pulumi.ResourceHook("keep-others-secret", self.before_create)

    @cached_property
    def update_hook(self) -> pulumi.ResourceHook:
        """The hook before a Secret is changed."""
        return pulumi.ResourceHook("name-who-changed-secret", self.before_update)

    async def before_create(self, args: pulumi.ResourceHookArgs) -> None:
        """Refuse to take over a Secret with other values: its password may be in use.

        One with the same values is what an update has made that ended before it could write its state.
        """
        namespace, name = _place(args)
        if self.access is None:
            return
        try:
            found = self.access.secret(namespace, name)
        except UnreadableError as error:
            raise pulumi.RunError(
                f"Secret {namespace}/{name}: must be readable before it is made, so that none of somebody else is "
                f"overwritten ({error}). Check kubernetes:context, and the right to get Secrets in {namespace}."
            ) from None
        if found is None or not found.data or found.data == await _wanted(args):
            return
        raise pulumi.RunError(
            f"Secret {namespace}/{name}: must not exist yet with other values (got values set by "
            f"{_named(setters(found.metadata.managed_fields)) or 'somebody unknown'}). They are kept. If another stack "
            "made it, give the user another name or namespace; to log in with it name it in the settings "
            "(users[].secret); else delete it, then run `pulumi up` again."
        )

    def before_update(self, args: pulumi.ResourceHookArgs) -> None:
        """Name who changed values that this update sets back."""
        namespace, name = _place(args)
        if self.access is None:
            return
        try:
            found = self.access.secret(namespace, name)
        except UnreadableError:
            return
        managers = setters(found.metadata.managed_fields) if found is not None else {}
        others = {manager: moment for manager, moment in managers.items() if not manager.startswith(_OURS)}
        if others:
            pulumi.log.warn(
                f"Secret {namespace}/{name}: values were set by {_named(others)}, and this update sets them back to "
                "the stack's. To change a password, raise users[].passwordGeneration."
            )


def _place(args: pulumi.ResourceHookArgs) -> tuple[str, str]:
    metadata = (args.new_inputs or {}).get("metadata") or {}
    return str(metadata.get("namespace")), str(metadata.get("name"))


async def _wanted(args: pulumi.ResourceHookArgs) -> dict[str, str]:
    """Return the data of the Secret that is to be made, in base 64 as the API server has it."""
    inputs = args.new_inputs or {}
    given: Any = await pulumi.Output.all(inputs.get("data") or {}, inputs.get("stringData") or {}).future()
    encoded, plain = given
    return {**encoded, **{key: b64encode(str(value).encode()).decode() for key, value in plain.items()}}


def _named(found: Mapping[str, str]) -> str:
    return ", ".join(f"{manager} at {moment}" for manager, moment in sorted(found.items()))


def guard_secrets(access: KubernetesAccess) -> None:
    """Let the guard of this program's Secrets read the Secrets that exist."""
    per_program(_Guard).access = access
