"""Objects of Kubernetes itself: namespaces, Secrets, pods' security contexts, and how the program reads what exists.

Owns reaching the API server with the provider's access: it reads to explain waits and to guard Secrets, and changes
nothing there. What is declared goes through the provider. The client is imported only where something is read: that
takes as long as half a preview.

A Secret is a password that the stack made, a copy, or what applications read. An `up` sets back a value that somebody
changed by hand, and names who changed it. A Secret with other values that has the name already, of another stack too,
is never overwritten. A custom resource that was changed by hand stays a conflict, which a person decides.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import pulumi
import yaml
from pulumi.runtime.settings import get_monitor
from pulumi_kubernetes.core.v1 import Namespace, Secret

from components.dialects import Spec
from settings.platform import TAKES_OVER
from settings.stack import Stack

if TYPE_CHECKING:
    from kubernetes import client

_WITHIN_S = 5  # the client ignores a number that is not whole
_NOT_FOUND = 404
Object = Mapping[str, Any]
T = TypeVar("T")
# By the program's monitor: rendering runs several programs in one process.
_per_program: WeakKeyDictionary[Any, dict[type, Any]] = WeakKeyDictionary()


def per_program(kind: type[T]) -> T:
    """Return the one object of a class that belongs to the running program; it is made when it is first asked for."""
    made = _per_program.setdefault(get_monitor(), {})
    if kind not in made:
        made[kind] = kind()
    found: T = made[kind]
    return found


class UnreadableError(Exception):
    """The object could not be read; the message says why and holds no secret."""


@dataclass(frozen=True, kw_only=True)
class KubernetesAccess:
    """The provider's configuration: a context of the kubeconfig, and a kubeconfig's path or text. None: as kubectl.

    `repr` is not made of it: a kubeconfig may hold a token.
    """

    context: str | None = None
    kubeconfig: str | None = None

    def __repr__(self) -> str:
        """Name the context only."""
        return f"KubernetesAccess(context={self.context!r})"

    def custom_resource(self, api_version: str, kind: str, namespace: str, name: str) -> Object | None:
        """Return a custom resource, None if there is none; raises UnreadableError."""
        from kubernetes import client

        group, _, version = api_version.rpartition("/")
        # Every kind here forms its plural like this; EventStreams is one already.
        plural = kind.lower().removesuffix("s") + "s"
        found: Object | None = self._asked(
            lambda api: client.CustomObjectsApi(api).get_namespaced_custom_object(
                group, version, namespace, plural, name, _request_timeout=_WITHIN_S
            )
        )
        return found

    def secret(self, namespace: str, name: str) -> "client.V1Secret | None":
        """Return a Secret, None if there is none; raises UnreadableError."""
        from kubernetes import client

        found: client.V1Secret | None = self._asked(
            lambda api: client.CoreV1Api(api).read_namespaced_secret(name, namespace, _request_timeout=_WITHIN_S)
        )
        return found

    def _asked(self, ask: Any) -> Any:
        import urllib3
        from kubernetes.client.rest import ApiException
        from kubernetes.config import ConfigException

        try:
            with self._client() as api:
                return ask(api)
        except ApiException as error:
            if error.status == _NOT_FOUND:
                return None
            raise UnreadableError(f"the API server answers {error.status}") from None
        except (ConfigException, urllib3.exceptions.HTTPError, OSError, ValueError, yaml.YAMLError) as error:
            # Only its type: an error of a kubeconfig may quote it.
            raise UnreadableError(f"the API server cannot be asked, {type(error).__name__}") from None

    def _client(self) -> "client.ApiClient":
        from kubernetes import client, config
        from kubernetes.config import ConfigException

        known = client.Configuration()
        named = self.kubeconfig
        document = yaml.safe_load(named) if named else None
        if isinstance(document, dict):
            config.load_kube_config_from_dict(document, context=self.context, client_configuration=known)
        else:
            try:
                config.load_kube_config(config_file=named, context=self.context, client_configuration=known)
            except ConfigException:
                config.load_incluster_config(client_configuration=known)
        known.retries = False
        return client.ApiClient(known)


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
        """Declare it. It is refused while a Secret with other values has its name."""
        guard = per_program(_Guard)
        hooks = pulumi.ResourceHookBinding(before_create=[guard.create_hook], before_update=[guard.update_hook])
        super().__init__(
            resource_name,
            metadata={**metadata, "annotations": TAKES_OVER},
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
