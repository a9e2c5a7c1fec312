"""The few calls of the operator to the API server, answered from memory."""

from typing import Any

from sandbox.operator.kubernetes_api import StoredSecret


class MemoryKubernetes:
    """Secrets and ConfigMaps by name, as `Kubernetes` reads and writes them; everything is in one namespace."""

    def __init__(self, **secrets: dict[str, str]) -> None:
        self.secrets = {name.replace("_", "-"): StoredSecret(values, {}) for name, values in secrets.items()}
        self.config_maps: dict[str, dict[str, str]] = {}

    def config_map(self, namespace: str, name: str) -> dict[str, str] | None:
        return self.config_maps.get(name)

    def write_config_map(self, owner: Any, name: str, values: dict[str, str]) -> None:
        self.config_maps.setdefault(name, {}).update(values)

    def remove_annotations(self, current: Any, names: tuple[str, ...]) -> None:
        for name in names:
            current["metadata"]["annotations"].pop(name, None)

    def secret(self, namespace: str, name: str) -> dict[str, str] | None:
        found = self.secrets.get(name)
        return dict(found.values) if found else None

    def stored_secret(self, namespace: str, name: str) -> StoredSecret | None:
        return self.secrets.get(name)

    def secret_now(self, namespace: str, name: str) -> StoredSecret | None:
        return self.stored_secret(namespace, name)

    def write_secret(
        self, owner: Any, name: str, values: dict[str, str], labels: Any, annotations: dict[str, str] | None = None
    ) -> bool:
        if name in self.secrets and self.secrets[name].values == values:
            return False
        self.secrets[name] = StoredSecret(values, annotations or {})
        return True

    def annotate(self, name: str, annotation: str) -> None:
        self.secrets[name].annotations[annotation] = "true"
