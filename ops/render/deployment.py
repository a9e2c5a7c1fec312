"""A dedicated mirror as a Deployment with its ConfigMap, for a cluster without an operator.

Owns the two manifests. The image is that of `images/mirror`. The Secret with passwords, certificates and keys is only
named here; somebody else makes it.
"""

from dataclasses import dataclass
from typing import Any

import yaml

from ops.render.client_endpoints import Secrets
from settings.mirrors import Mirror

Manifest = dict[str, Any]
FILE = "mm2.properties"
_CONFIG = "/opt/mirror/config"
_METRICS_PORT = 9404
_STARTS_WITHIN_S = 120
_HEADER = "# Written by `python -m ops render --as deployment`; change the stack file, not this one.\n"


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What a dedicated mirror in pods needs. `secret_keys` are the files that its properties refer to."""

    mirror: Mirror
    namespace: str
    image: str
    secret: str
    secret_keys: tuple[str, ...]
    secrets: Secrets
    properties: str

    @property
    def name(self) -> str:
        """Name of both objects. The operator's objects of the same mirror have others."""
        return name_of(self.mirror)

    def manifests(self) -> list[Manifest]:
        """Return the ConfigMap with the properties, and the Deployment."""
        labels = {"app.kubernetes.io/name": self.name}
        metadata = {"name": self.name, "namespace": self.namespace, "labels": labels}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {FILE: self.properties}}
        spec = {
            # One process: several could not reach each other's REST interface by the names of their pods.
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": self._pod()},
        }
        return [config, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}]

    def _pod(self) -> Manifest:
        volumes: list[Manifest] = [
            {"name": "config", "configMap": {"name": self.name}},
            {"name": "tmp", "emptyDir": {}},
        ]
        mounts: list[Manifest] = [
            {"name": "config", "mountPath": _CONFIG, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  # a volume of the pod's own
        ]
        if self.secret_keys:
            # With a list of keys the pod waits and says which one is missing, instead of being refused by a broker.
            items = [{"key": key, "path": key} for key in self.secret_keys]
            volumes.append({"name": "secrets", "secret": {"secretName": self.secret, "items": items}})
            mounts.append({"name": "secrets", "mountPath": str(self.secrets.folder), "readOnly": True})
        return {
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "terminationGracePeriodSeconds": 60,
            "containers": [{**self._container(), "volumeMounts": mounts}],
            "volumes": volumes,
        }

    def _container(self) -> Manifest:
        # The metrics agent answers as long as the process lives; MirrorMaker ends it when a worker cannot start.
        health = {"httpGet": {"path": "/-/healthy", "port": "metrics"}, "periodSeconds": 10}
        # Kafka's scripts write logs below their own folder, which is read-only.
        environment = {"LOG_DIR": "/tmp/logs"}  # noqa: S108  # a volume of the pod's own
        heap = [f"-X{key}{value}" for key, value in (("ms", self.mirror.jvm.xms), ("mx", self.mirror.jvm.xmx)) if value]
        if heap:
            environment["KAFKA_HEAP_OPTS"] = " ".join(heap)
        container: Manifest = {
            "name": "mirror",
            "image": self.image,
            "env": [{"name": name, "value": value} for name, value in environment.items()],
            "ports": [{"name": "metrics", "containerPort": _METRICS_PORT}],
            "startupProbe": {**health, "failureThreshold": _STARTS_WITHIN_S // 10},
            "readinessProbe": health,
            "livenessProbe": {**health, "failureThreshold": 6},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
        }
        resources = self.mirror.resources.rendered()
        return {**container, "resources": resources} if resources else container


def name_of(mirror: Mirror) -> str:
    """Return the name of the objects of a dedicated mirror."""
    return f"{mirror.name}-dedicated"


def text(manifests: list[Manifest]) -> str:
    """Return manifests as one YAML file."""
    pages = [yaml.dump(each, Dumper=_Dumper, sort_keys=False, width=120) for each in manifests]
    return _HEADER + "---\n".join(pages)


class _Dumper(yaml.SafeDumper):
    """Lines as lines, and no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        """Write what several objects share once for each."""
        return True


def _represent(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _represent)
