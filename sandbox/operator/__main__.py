"""The operator as a process: `python -m sandbox.operator --state DIR --liveness-port N` reconciles until SIGTERM.

Assembles reconcilers, work queue and kopf's watches over one sandbox's state folder. Every event of a watch only puts
the resources that it may concern on the work queue.
"""

import argparse
import itertools
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kopf

from sandbox import processes
from sandbox.monitoring import MonitoringFiles
from sandbox.network import PROCESS as NETWORK
from sandbox.network import NetworkFiles
from sandbox.operator import admin, java_processes
from sandbox.operator.admin import ClusterLookup
from sandbox.operator.java_processes import ProcessRegistry, ProcessSupervisor
from sandbox.operator.kafka_nodes import load
from sandbox.operator.kafkas import Kafkas
from sandbox.operator.kubernetes_api import (
    CATALOG,
    INSTALL_PLAN,
    KAFKA,
    LABEL,
    MIRROR,
    NODE_POOL,
    OPERATOR_GROUP,
    SUBSCRIPTION,
    TOPIC,
    USER,
    Kubernetes,
    Resource,
    SecretCache,
)
from sandbox.operator.mirrors import Mirrors
from sandbox.operator.monitoring import Monitoring, Programs
from sandbox.operator.network import Proxies
from sandbox.operator.olm import Catalogs, OperatorGroups, Subscriptions
from sandbox.operator.reconcile import Dispatcher, Key, OperatorMetrics, Reconciler, Reconciliation, serve_metrics
from sandbox.operator.topics import Topics
from sandbox.operator.users import Users
from sandbox.operator.workers import WorkerTools
from sandbox.processes import Processes
from sandbox.state import SandboxState, private_folder
from sandbox.toolchain import ToolchainError, locate

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class OperatorContext:
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
    toxiproxy: Path
    processes: ProcessRegistry


def run(context: OperatorContext, liveness_port: int) -> None:
    """Reconcile until SIGTERM or SIGINT, which kopf handles; brokers and workers go on running afterwards."""
    seen = SecretCache()
    kubernetes = Kubernetes(context.kubeconfig, seen)
    clusters_folder = private_folder(context.folder / "clusters")
    mirrors_folder = private_folder(context.folder / "mirrors")
    java = java_processes.shared_jvm(
        context.java,
        context.kafka_libs,
        context.kafka_versions,
        clusters_folder,
        context.class_archives,
    )
    supervisor = ProcessSupervisor(context.processes)
    clusters = admin.Clusters()
    lookup = ClusterLookup(kubernetes, clusters, clusters_folder)
    own_metrics = OperatorMetrics()
    exporter, logs = context.jmx_exporter, context.logs
    network = Proxies(supervisor, context.toxiproxy, NetworkFiles(context.folder / "network"), logs / f"{NETWORK}.log")
    kafkas = Kafkas(kubernetes, clusters, supervisor, java, own_metrics, exporter, clusters_folder, logs, network)
    worker_tools = WorkerTools(supervisor, java, exporter, context.metrics_reporter, mirrors_folder, logs)
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
        supervisor=supervisor,
        programs=context.monitoring,
        files=MonitoringFiles(context.folder / "monitoring"),
        clusters=clusters_folder,
        mirrors=mirrors_folder,
        logs=context.logs,
        own_port=serve_metrics(own_metrics),
    )
    # What is here from an earlier run may have been deleted while no operator watched.
    for namespace, name in kafkas.stored():
        if plan := load(kafkas.home(namespace, name), namespace, name):
            processes.reserve_ports([port for node in plan.nodes for port in node.ports.values()])
        dispatcher.add(Key(KAFKA.kind, namespace, name))
    for namespace, name in mirrors.stored():
        dispatcher.add(Key(MIRROR.kind, namespace, name))
    registry = kopf.OperatorRegistry()
    register_handlers(registry, dispatcher, seen)
    os.environ["KUBECONFIG"] = str(context.kubeconfig)
    kopf.on.login(registry=registry)(_login)
    dispatcher.start()
    monitoring.start()
    try:
        kopf.run(
            registry=registry,
            settings=kopf_settings(),
            clusterwide=True,
            standalone=True,
            liveness_endpoint=f"http://127.0.0.1:{liveness_port}/healthz",
        )
    finally:
        monitoring.stop()
        dispatcher.stop()


def _login(**keywords: Any) -> kopf.ConnectionInfo | None:
    return kopf.login_with_kubeconfig(**keywords)


OWN = (KAFKA, USER, TOPIC, MIRROR, SUBSCRIPTION, OPERATOR_GROUP, CATALOG)
READS_SECRETS = (MIRROR,)
READS_CONFIG_MAPS = (KAFKA, MIRROR)
KIND = "strimzi.io/kind"


def register_handlers(registry: kopf.OperatorRegistry, dispatcher: Dispatcher, seen: SecretCache) -> None:
    """Add the handlers of all kinds to kopf's registry."""
    for resource in OWN:
        _on_event(registry, resource, _itself(dispatcher, resource))
    _on_event(registry, NODE_POOL, _labelled_cluster(dispatcher))
    for resource in (OPERATOR_GROUP, INSTALL_PLAN):
        _on_event(registry, resource, _namespace(dispatcher, (SUBSCRIPTION,)))
    kopf.on.event("v1", "secrets", registry=registry)(_secrets(dispatcher, seen))
    # The user operator watches the Secrets that it wrote itself, and no others.
    kopf.on.event("v1", "secrets", registry=registry, labels={LABEL: kopf.PRESENT, KIND: USER.kind})(
        _of_the_same_name(dispatcher, USER)
    )
    # An annotation on an authority's Secret asks the cluster for something.
    kopf.on.event("v1", "secrets", registry=registry, labels={LABEL: kopf.PRESENT, KIND: KAFKA.kind})(
        _labelled_cluster(dispatcher)
    )
    kopf.on.event("v1", "configmaps", registry=registry)(_namespace(dispatcher, READS_CONFIG_MAPS))


class EndlessBackoffs(Iterable[float]):
    """Seconds between the tries of one request, as long as the API server is away or not ready yet.

    One that has just started refuses every user (403) until it has read its roles.
    """

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((0.2, 0.5, 1.0), itertools.repeat(2.0))


# kopf may hang when it stops by itself: one watch that fails ends the operator, which cancels the other watches and at
# the same time the tasks that pause them. A watch whose request is under way takes that for a pause, and goes on.
ENDS_WITHIN_S = 5.0


def kopf_settings() -> kopf.OperatorSettings:
    """kopf's settings: no events posted, nothing stored on the resources, watches that reconnect soon and for ever.

    An operator whose watch is refused all the same ends, as one in a pod would, which a kubelet starts again.
    """
    result = kopf.OperatorSettings()
    result.posting.enabled = False
    result.watching.server_timeout = 300
    result.watching.client_timeout = 330
    result.watching.reconnect_backoff = 0.5
    result.networking.error_backoffs = EndlessBackoffs()
    result.process.ultimate_exiting_timeout = ENDS_WITHIN_S
    return result


def _secrets(dispatcher: Dispatcher, seen: SecretCache) -> Any:
    enqueue = _namespace(dispatcher, READS_SECRETS)

    async def note(event: Mapping[str, Any], namespace: str | None, name: str | None, **_: Any) -> None:
        if event.get("type") == "DELETED":
            seen.forget(str(namespace), str(name))
        else:
            seen.put(event["object"])
        await enqueue(namespace)

    return note


def _on_event(registry: kopf.OperatorRegistry, resource: Resource, handler: Any) -> None:
    kopf.on.event(resource.group, resource.version, resource.plural, registry=registry)(handler)


def _itself(dispatcher: Dispatcher, resource: Resource) -> Any:
    async def enqueue(namespace: str | None, name: str | None, **_: Any) -> None:
        if namespace and name:
            dispatcher.add(Key(resource.kind, namespace, name))

    return enqueue


def _of_the_same_name(dispatcher: Dispatcher, resource: Resource) -> Any:
    """An object that belongs to a resource of its own name; a label alone makes nobody a resource."""

    async def enqueue(namespace: str | None, name: str | None, **_: Any) -> None:
        for key in dispatcher.known(resource.kind, namespace):
            if key.name == name:
                dispatcher.add(key)

    return enqueue


def _labelled_cluster(dispatcher: Dispatcher) -> Any:
    async def enqueue(namespace: str | None, labels: Mapping[str, str], **_: Any) -> None:
        if namespace and LABEL in labels:
            dispatcher.add(Key(KAFKA.kind, namespace, labels[LABEL]))

    return enqueue


def _namespace(dispatcher: Dispatcher, resources: tuple[Resource, ...]) -> Any:
    async def enqueue(namespace: str | None, **_: Any) -> None:
        for resource in resources:
            for key in dispatcher.known(resource.kind, namespace):
                dispatcher.add(key)

    return enqueue


def main() -> int:
    """Exit code: 0 after a signal, 2 if the tools are missing."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.operator", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="the sandbox's state folder")
    parser.add_argument("--liveness-port", type=int, required=True, help="loopback port that answers /healthz")
    options = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    for noisy in ("kopf", "httpx", "asyncio", "aiohttp"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        tools = locate()
    except ToolchainError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    state = SandboxState(options.state)
    context = OperatorContext(
        folder=state.path,
        logs=state.logs,
        kubeconfig=state.operator_kubeconfig,
        java=tools.java,
        kafka_libs=tools.kafka_libs,
        kafka_versions=tools.kafka_versions,
        class_archives=tools.kafka_classes,
        jmx_exporter=tools.jmx_exporter,
        metrics_reporter=tools.metrics_reporter,
        monitoring=Programs(tools.prometheus, tools.promtool, tools.alertmanager, tools.amtool),
        toxiproxy=tools.toxiproxy,
        processes=Processes(state),
    )
    run(context, options.liveness_port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
