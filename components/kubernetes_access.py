"""What the program itself reads from Kubernetes, with the provider's access: to explain waits, to guard Secrets.

Owns reaching the API server. Changes nothing there. Does not own what is declared, which goes through the provider.
The client is imported only where something is read: that takes as long as half a preview.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import yaml
from pulumi.runtime.settings import get_monitor

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
