"""What Kubernetes would tell Prometheus about pods, told of processes: names, labels and ports of all that exports.

A process that is down stays, as a pod does that restarts: so an alert sees it. Pods have the names and labels that
Strimzi gives them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import layout
from .files import read_json
from .kubernetes_api import KAFKA, LABEL, MIRROR
from .own_metrics import PATH, path_of

PORT, PORT_NUMBER = "tcp-prometheus", 9404
OPERATOR, OPERATOR_PORT, OPERATOR_PORT_NUMBER = "strimzi-cluster-operator", "http", 8080
META = "__meta_kubernetes"
_DOMAIN = LABEL.partition("/")[0]
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_]")


@dataclass(frozen=True)
class Pod:
    """A process that exports metrics, as a pod with one container and one port; it really listens at `address`."""

    namespace: str
    name: str
    labels: dict[str, str]
    container: str
    address: str
    port: str = PORT
    port_number: int = PORT_NUMBER
    path: str = PATH

    def target_group(self) -> dict[str, Any]:
        """An entry of a file of targets, with the labels of Prometheus' own discovery of pods."""
        labels = {
            "__metrics_path__": self.path,
            f"{META}_namespace": self.namespace,
            f"{META}_pod_name": self.name,
            f"{META}_pod_phase": "Running",
            f"{META}_pod_ready": "true",
            f"{META}_pod_ip": "127.0.0.1",
            f"{META}_pod_container_name": self.container,
            f"{META}_pod_container_init": "false",
            f"{META}_pod_container_port_name": self.port,
            f"{META}_pod_container_port_number": str(self.port_number),
            f"{META}_pod_container_port_protocol": "TCP",
        }
        for name, value in self.labels.items():
            labels[f"{META}_pod_label_{sanitized(name)}"] = value
            labels[f"{META}_pod_labelpresent_{sanitized(name)}"] = "true"
        return {"targets": [self.address], "labels": labels}


def brokers(clusters: Path) -> list[Pod]:
    """All brokers with an exporter, from the operator's folder of clusters."""
    found = []
    for file in sorted(clusters.glob("*/*/layout.json")):
        namespace, cluster = file.parent.parent.name, file.parent.name
        plan = layout.load(file.parent, namespace, cluster)
        for node in plan.nodes if plan else ():
            if layout.METRICS in node.ports:
                labels = _labels(KAFKA.kind, cluster, f"{cluster}-kafka", "kafka")
                labels |= {f"{_DOMAIN}/pool-name": node.pool, f"{_DOMAIN}/broker-role": "true"}
                address = f"127.0.0.1:{node.ports[layout.METRICS]}"
                found.append(Pod(namespace, plan.pod(node), labels, "kafka", address))  # type: ignore[union-attr]  # nodes come of it
    return found


def workers(mirrors: Path) -> list[Pod]:
    """All workers with an exporter, from the operator's folder of mirrors."""
    found = []
    for file in sorted(mirrors.glob("*/*/layout.json")):
        namespace, mirror, memory = file.parent.parent.name, file.parent.name, read_json(file)
        component = f"{mirror}-mirrormaker2"
        for replica in range(memory.get("exporting", 0)):
            labels = _labels(MIRROR.kind, mirror, component, "kafka-mirror-maker-2")
            address = f"127.0.0.1:{memory['metrics_ports'][str(replica)]}"
            found.append(Pod(namespace, f"{component}-{replica}", labels, component, address))
    return found


def operators(own: Iterable[str], for_all: Iterable[str], port: int) -> list[Pod]:
    """The operator as a pod of each namespace that it works in (`own`), and of those that it is installed in alone."""
    own = set(own)
    paths = {**dict.fromkeys(for_all, PATH), **{namespace: path_of(namespace) for namespace in own}}
    labels = {"name": OPERATOR, f"{_DOMAIN}/kind": "cluster-operator"}
    address = f"127.0.0.1:{port}"
    return [
        Pod(namespace, f"{OPERATOR}-0", labels, OPERATOR, address, OPERATOR_PORT, OPERATOR_PORT_NUMBER, path)
        for namespace, path in sorted(paths.items())
    ]


def sanitized(name: str) -> str:
    """A label of Kubernetes as a part of a label's name of Prometheus."""
    return _NOT_IN_A_NAME.sub("_", name)


def _labels(kind: str, cluster: str, component: str, component_type: str) -> dict[str, str]:
    return {
        LABEL: cluster,
        f"{_DOMAIN}/kind": kind,
        f"{_DOMAIN}/name": component,
        f"{_DOMAIN}/component-type": component_type,
        "app.kubernetes.io/managed-by": OPERATOR,
    }
