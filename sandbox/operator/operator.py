"""The assembled operator: reconcilers, work queue and kopf, over one sandbox's state folder."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kopf

from sandbox.monitoring_files import MonitoringFiles

from . import admin, handlers, jvm, ports
from .catalogs import Catalogs, OperatorGroups
from .cluster_lookup import ClusterLookup
from .dispatch import Dispatcher, Key
from .files import private_folder
from .kafkas import Kafkas
from .kubernetes_api import KAFKA, MIRROR, Kubernetes
from .layout import load
from .mirrors import Mirrors
from .monitoring import Monitoring, Programs
from .olm import Subscriptions
from .own_metrics import OwnMetrics, serve
from .reconcile import Reconciler, Reconciliation
from .seen_secrets import SeenSecrets
from .supervision import Keeper, Supervisor
from .topics import Topics
from .users import Users
from .workers import WorkerTools

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Surroundings:
    """Where the operator lives: its folders, its credentials, the tools and the process registry."""

    folder: Path
    logs: Path
    kubeconfig: Path
    java: Path
    kafka_libs: Path
    kafka_versions: Mapping[str, Path]
    class_archives: Path
    jmx_exporter: Path
    metrics_reporter: Path
    monitoring: Programs
    processes: Supervisor


def run(surroundings: Surroundings, liveness_port: int) -> None:
    """Reconcile until SIGTERM or SIGINT, which kopf handles; brokers and workers go on running afterwards."""
    seen = SeenSecrets()
    kubernetes = Kubernetes(surroundings.kubeconfig, seen)
    clusters_folder = private_folder(surroundings.folder / "clusters")
    mirrors_folder = private_folder(surroundings.folder / "mirrors")
    java = jvm.shared_jvm(
        surroundings.java,
        surroundings.kafka_libs,
        surroundings.kafka_versions,
        clusters_folder,
        surroundings.class_archives,
    )
    keeper = Keeper(surroundings.processes)
    clusters = admin.Clusters()
    lookup = ClusterLookup(kubernetes, clusters, clusters_folder)
    own_metrics = OwnMetrics()
    exporter, logs = surroundings.jmx_exporter, surroundings.logs
    kafkas = Kafkas(kubernetes, clusters, keeper, java, own_metrics, exporter, clusters_folder, logs)
    worker_tools = WorkerTools(keeper, java, exporter, surroundings.metrics_reporter, mirrors_folder, logs)
    mirrors = Mirrors(kubernetes, worker_tools)
    reconcilers: list[Reconciler] = [
        kafkas,
        Users(kubernetes, lookup),
        Topics(lookup),
        mirrors,
        Subscriptions(kubernetes),
        OperatorGroups(kubernetes),
        Catalogs(),
    ]
    dispatcher = Dispatcher(Reconciliation(kubernetes, reconcilers, own_metrics))
    monitoring = Monitoring(
        kubernetes=kubernetes,
        keeper=keeper,
        programs=surroundings.monitoring,
        files=MonitoringFiles(surroundings.folder / "monitoring"),
        clusters=clusters_folder,
        mirrors=mirrors_folder,
        logs=surroundings.logs,
        own_port=serve(own_metrics),
    )
    # What is here from an earlier run may have been deleted while no operator watched.
    for namespace, name in kafkas.stored():
        if plan := load(kafkas.home(namespace, name), namespace, name):
            ports.reserve([port for node in plan.nodes for port in node.ports.values()])
        dispatcher.add(Key(KAFKA.kind, namespace, name))
    for namespace, name in mirrors.stored():
        dispatcher.add(Key(MIRROR.kind, namespace, name))
    registry = kopf.OperatorRegistry()
    handlers.register(registry, dispatcher, seen)
    os.environ["KUBECONFIG"] = str(surroundings.kubeconfig)
    kopf.on.login(registry=registry)(_login)
    dispatcher.start()
    monitoring.start()
    try:
        kopf.run(
            registry=registry,
            settings=handlers.settings(),
            clusterwide=True,
            standalone=True,
            liveness_endpoint=f"http://127.0.0.1:{liveness_port}/healthz",
        )
    finally:
        monitoring.stop()
        dispatcher.stop()


def _login(**keywords: Any) -> kopf.ConnectionInfo | None:
    return kopf.login_with_kubeconfig(**keywords)
