"""Kinds that every Kubernetes cluster serves, declared by their type tokens.

Owns how their properties reach the engine: under the names of the Kubernetes API. The engine, the provider and the
state know a resource by its token and its properties, and these are what the SDK's generated classes register. Those
classes describe every field of every kind: their import takes a sixth of the program's run.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, ClassVar

import pulumi

_SECRET_FIELDS = ("data", "stringData")
Properties = dict[str, Any]


@cache
def provider_version() -> str:
    """Return the version of Pulumi's Kubernetes provider that resources ask for: that of the installed package."""
    return version("pulumi-kubernetes")


class BuiltinKind(pulumi.CustomResource):
    """An object of a built-in kind."""

    TYPE: ClassVar[str]
    """Group, version and kind as the type token has them."""

    metadata: pulumi.Output[Mapping[str, Any]]
    """As the API server has it."""

    def __init__(
        self, resource_name: str, *, metadata: Mapping[str, Any], opts: pulumi.ResourceOptions, **content: Any
    ) -> None:
        """Register the object. `content` is what lies beside `metadata`, under the API's names."""
        group_version, _, kind = self.TYPE.rpartition(":")
        identity = {"apiVersion": group_version.removeprefix("core/"), "kind": kind}
        self._register(resource_name, {**identity, "metadata": metadata, **content}, opts)

    def _register(self, resource_name: str, properties: Properties, opts: pulumi.ResourceOptions) -> None:
        own = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(version=provider_version()))
        super().__init__(f"kubernetes:{self.TYPE}", resource_name, properties, own)


class Secret(BuiltinKind):
    """A Secret. The state holds its values encrypted, whatever they were given as."""

    TYPE = "core/v1:Secret"

    data: pulumi.Output[Mapping[str, str] | None]
    """As the API server has it, in base64."""

    @classmethod
    def get(cls, resource_name: str, place: pulumi.Input[str], opts: pulumi.ResourceOptions) -> "Secret":
        """Read the Secret that is there as `namespace/name`."""
        found = cls.__new__(cls)
        properties: Properties = dict.fromkeys(("apiVersion", "kind", "metadata", "type", *_SECRET_FIELDS))
        known = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(id=place))
        found._register(resource_name, properties, known)
        return found

    def _register(self, resource_name: str, properties: Properties, opts: pulumi.ResourceOptions) -> None:
        values = {name: properties[name] for name in _SECRET_FIELDS if properties.get(name) is not None}
        encrypted = {name: pulumi.Output.secret(value) for name, value in values.items()}
        secret = pulumi.ResourceOptions(additional_secret_outputs=list(_SECRET_FIELDS))
        super()._register(resource_name, {**properties, **encrypted}, pulumi.ResourceOptions.merge(opts, secret))


class Namespace(BuiltinKind):
    """A namespace."""

    TYPE = "core/v1:Namespace"


class ConfigMap(BuiltinKind):
    """Values that are no secret."""

    TYPE = "core/v1:ConfigMap"


class ServiceAccount(BuiltinKind):
    """What pods act as."""

    TYPE = "core/v1:ServiceAccount"


class Deployment(BuiltinKind):
    """Pods that run without an end."""

    TYPE = "apps/v1:Deployment"


class Job(BuiltinKind):
    """A pod that runs to its end."""

    TYPE = "batch/v1:Job"


class CronJob(BuiltinKind):
    """A Job at given times."""

    TYPE = "batch/v1:CronJob"


class NetworkPolicy(BuiltinKind):
    """Who reaches pods."""

    TYPE = "networking.k8s.io/v1:NetworkPolicy"


class Role(BuiltinKind):
    """Rights in a namespace."""

    TYPE = "rbac.authorization.k8s.io/v1:Role"


class RoleBinding(BuiltinKind):
    """Who has the rights of a Role."""

    TYPE = "rbac.authorization.k8s.io/v1:RoleBinding"
