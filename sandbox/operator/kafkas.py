"""Kafka and its KafkaNodePools: broker processes, the order of their restarts, listeners in the status."""

import hashlib
import logging
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox import pki, processes
from sandbox.operator import kafka_nodes
from sandbox.operator.java_processes import properties
from sandbox.operator.kafka_nodes import Layout, Node
from sandbox.state import private_folder, write_private

from . import NotReadyError, admin, certificates, java_processes, metrics_config, with_conditions
from .java_processes import ProcessSupervisor, last_error_line
from .kubernetes_api import KAFKA, LABEL, NODE_POOL, Kubernetes, Object
from .metrics_config import Exporter, Metrics
from .network import Proxies
from .reconcile import AGAIN_S, CLIENTS_CA, CLUSTER_CA, OperatorMetrics, Outcome

logger = logging.getLogger(__name__)

OPERATOR_VERSION = "1.2.0"
ROLL_DEADLINE_S = 90.0
FORMAT_DEADLINE_S = 60.0


@dataclass
class Kafkas:
    """Reconciler of Kafka; writes the status of the node pools too."""

    kubernetes: Kubernetes
    clusters: admin.Clusters
    supervisor: ProcessSupervisor
    java: java_processes.Jvm
    metrics: OperatorMetrics
    jmx_exporter: Path
    folder: Path
    logs: Path
    network: Proxies | None = None
    resource = KAFKA
    finalizer: str | None = "sandbox.strimzi.io/processes"

    def reconcile(self, resource: Object) -> Outcome:
        """Run the cluster's brokers as in its spec; see `Reconciler`."""
        namespace, name = resource["metadata"]["namespace"], resource["metadata"]["name"]
        spec = resource["spec"]["kafka"]
        version = java_processes.kafka_version(self.java.kafka_libs)
        kafka_nodes.check_spec(name, spec, version)
        pools = self.kubernetes.objects(NODE_POOL, namespace, f"{LABEL}={name}")
        try:
            metrics = metrics_config.read(self.kubernetes, resource, spec)
            home = self.home(namespace, name)
            plan = kafka_nodes.plan(
                *(home, namespace, name, pools, spec["listeners"]),
                metrics=metrics is not None,
                network=self.network is not None and self.network.are_wanted(),
            )
            _write_rules(plan, metrics)
            health = self._secure_and_run(plan, resource)
            if left := self._keep_network(plan):
                raise NotReadyError("NetworkNotReady", f"Kafka {name}: {'; '.join(left)}.", retry_s=1)
        except NotReadyError:
            self._pool_status(pools, None)
            raise
        self._pool_status(pools, plan)
        ca = (plan.folder / "ca.crt").read_text(encoding="utf-8")
        status = _status(plan, spec, ca, version)
        missing = sorted({node.id for node in plan.nodes} - health.brokers)
        if missing:
            raise self._down(plan, missing, status)
        ignored = kafka_nodes.ignored_options(spec)
        warnings = kafka_nodes.listener_warnings(name, spec["listeners"])
        if ignored:
            words = f"Kafka {name}: {', '.join(ignored)} in spec.kafka.config: managed by the operator."
            warnings.append(("IgnoredOptions", words))
        done = {"operatorLastSuccessfulVersion": OPERATOR_VERSION}
        return Outcome(status | done, again_s=AGAIN_S, warnings=tuple(warnings))

    def remove(self, namespace: str, name: str, resource: Object | None) -> None:
        """Stop the brokers and remove their data."""
        self.clusters.forget(namespace, name)
        if self.network:
            self.network.remove(namespace, name)
        prefix = f"kafka.{namespace}.{name}."
        for process in self.supervisor.processes.names():
            if process.startswith(prefix):
                # The data is removed next, so a clean shutdown would be time spent for nothing.
                self.supervisor.stop(process, deadline_s=3.0)
        shutil.rmtree(self.home(namespace, name), ignore_errors=True)

    def home(self, namespace: str, name: str) -> Path:
        """Folder of one cluster."""
        return self.folder / namespace / name

    def stored(self) -> list[tuple[str, str]]:
        """Namespace and name of every cluster that has files here."""
        return sorted((path.parent.parent.name, path.parent.name) for path in self.folder.glob("*/*/layout.json"))

    def _secure_and_run(self, plan: Layout, resource: Object) -> admin.Health:
        """Authorities and certificates as they should be, and brokers that run with them.

        A renewed authority keeps its key, so one roll onto new certificates is enough: old and new trust each other.
        A replaced key takes three rolls, as with Strimzi: trust both, show certificates of the new one, trust only it.
        The brokers reach each other at every moment of them.
        """
        cluster = certificates.reconcile_authority(self.kubernetes, resource, certificates.CLUSTER_CA)
        clients = certificates.reconcile_authority(self.kubernetes, resource, certificates.CLIENTS_CA)
        for kind, authority in ((CLUSTER_CA, cluster), (CLIENTS_CA, clients)):
            end = pki.ends_at(authority.current.certificate)
            self.metrics.certificate_ends(plan.namespace, plan.cluster, kind, end)
        spec = resource["spec"]["kafka"]
        certificates.write_trust(plan, cluster, clients)
        certificates.issue_certificates(plan, cluster, accepted=cluster)
        health = self._run(plan, spec)
        everyone = {node.id for node in plan.nodes}
        if cluster.former and health.brokers >= everyone:
            only_new = certificates.Authority(cluster.current)
            certificates.issue_certificates(plan, cluster, accepted=only_new)
            self._run(plan, spec)
            certificates.forget_former_keys(self.kubernetes, resource, certificates.CLUSTER_CA)
            certificates.write_trust(plan, only_new, clients)
            health = self._run(plan, spec)
        if health.brokers >= everyone:
            certificates.record_clients_ca(plan, clients)
        return health

    def _run(self, plan: Layout, spec: dict[str, Any]) -> admin.Health:
        """Start what does not run; restart, one after the other, what runs with an older configuration."""
        outdated = []
        for node in plan.nodes:
            write_private(
                plan.home(node) / "server.properties", properties(kafka_nodes.server_properties(plan, node, spec))
            )
            name = plan.process(node)
            if not self.supervisor.processes.alive(name):
                self._start(plan, node)
            elif _digest(plan, node) != _started(plan, node):
                outdated.append(node)
        health = self.clusters.health(plan)
        for node in outdated:
            logger.info("%s: restart with its new configuration", plan.process(node))
            self.supervisor.stop(plan.process(node))
            self._start(plan, node)
            self._keep_network(plan)
            health = self._wait_until_back(plan)
        return health

    def _keep_network(self, plan: Layout) -> list[str]:
        """Proxies that cannot be made yet, with the reason."""
        return self.network.keep(plan) if self.network else []

    def _start(self, plan: Layout, node: Node) -> None:
        name = plan.process(node)
        if self.supervisor.processes.held(name) or self.supervisor.wait_s(name) > 0:
            return
        for listener, port in node.bound.items():
            if not processes.is_free_port(port):
                raise NotReadyError(
                    "PortTaken",
                    f"Kafka {plan.cluster}: listener {listener} of broker {node.id} needs the port 127.0.0.1:{port}, "
                    "which another process uses. Stop that process; the broker starts by itself then.",
                    retry_s=2,
                )
        self._format(plan, node)
        home = plan.home(node)
        command = self.java.command(
            "kafka.Kafka", str(home / "server.properties"), heap_mib=java_processes.BROKER_HEAP_MIB
        )
        rules = home / metrics_config.FILE
        if rules.exists():
            port = node.ports[kafka_nodes.METRICS]
            command.insert(1, metrics_config.argument(self.jmx_exporter, port, rules))
            logger.info("%s: metrics at http://127.0.0.1:%d/metrics", name, port)
        logger.info("%s: start", name)
        write_private(home / "started", _digest(plan, node))
        self.supervisor.start(name, command, process_environment(), self.logs / f"{name}.log")

    def _format(self, plan: Layout, node: Node) -> None:
        """Prepare the node's data folder for KRaft, once."""
        home = plan.home(node)
        if (home / "data" / "meta.properties").exists():
            return
        private_folder(home / "data")
        arguments = ["format", "-t", plan.cluster_id, "-c", str(home / "server.properties"), "--ignore-formatted"]
        command = self.java.command("kafka.tools.StorageTool", *arguments, heap_mib=java_processes.TOOL_HEAP_MIB)
        done = subprocess.run(
            command, env=process_environment(), capture_output=True, text=True, timeout=FORMAT_DEADLINE_S, check=False
        )
        if done.returncode:
            words = (done.stderr or done.stdout).strip().splitlines()
            raise NotReadyError(
                "StorageFormatFailed", f"Kafka {plan.cluster}: broker {node.id}: {words[-1] if words else 'no output'}"
            )

    def _wait_until_back(self, plan: Layout) -> admin.Health:
        end = time.monotonic() + ROLL_DEADLINE_S
        everyone = {node.id for node in plan.nodes}
        while time.monotonic() < end:
            health = self.clusters.health(plan)
            if health.brokers >= everyone and health.in_sync:
                return health
            time.sleep(0.5)
        raise NotReadyError(
            "RollingRestartStuck",
            f"Kafka {plan.cluster}: not all brokers and replicas were back {ROLL_DEADLINE_S:.0f} s after a restart. "
            "The other brokers keep their old configuration until they are.",
        )

    def _down(self, plan: Layout, missing: list[int], status: dict[str, Any]) -> NotReadyError:
        words, reason = [], "Creating"
        for node in plan.nodes:
            name = plan.process(node)
            if node.id not in missing:
                continue
            if self.supervisor.processes.held(name):
                reason = "BrokerHeld"
                words.append(f"broker {node.id} is held stopped (venv/bin/python -m sandbox start {name} releases it)")
            elif self.supervisor.deaths(name) > 1:
                reason = "BrokerFailing"
                problem = last_error_line(self.logs / f"{name}.log")
                words.append(
                    f"broker {node.id} ends soon after its start: {problem} (venv/bin/python -m sandbox logs {name})"
                )
            else:
                words.append(f"broker {node.id} is starting")
        known = dict(status) if reason != "Creating" else {}
        return NotReadyError(reason, f"Kafka {plan.cluster}: {'; '.join(words)}.", retry_s=0.5, status=known)

    def _pool_status(self, pools: list[Object], plan: Layout | None) -> None:
        for pool in pools:
            name = pool["metadata"]["name"]
            fields: dict[str, Any] = {"roles": pool["spec"]["roles"]}
            if plan:
                ids = [node.id for node in plan.nodes if node.pool == name]
                selector = f"strimzi.io/cluster={plan.cluster},strimzi.io/name={plan.cluster}-kafka"
                fields |= {
                    "clusterId": plan.cluster_id,
                    "nodeIds": ids,
                    "replicas": len(ids),
                    "labelSelector": f"{selector},strimzi.io/kind=Kafka,strimzi.io/pool-name={name}",
                }
            # Strimzi writes no condition Ready of a pool: it is in the status of the Kafka.
            self.kubernetes.set_status(NODE_POOL, pool, with_conditions(pool, fields, []))


def _status(plan: Layout, spec: dict[str, Any], ca: str, version: str) -> dict[str, Any]:
    served = []
    for entry in spec["listeners"]:
        key = kafka_nodes.listener_key(entry["name"], entry["port"])
        state = {
            "name": entry["name"],
            "addresses": [{"host": "127.0.0.1", "port": node.ports[key]} for node in plan.nodes],
            "bootstrapServers": plan.addresses(key),
        }
        served.append(state | ({"certificates": [ca]} if entry.get("tls") else {}))
    return {
        "clusterId": plan.cluster_id,
        "kafkaVersion": version,
        "kafkaNodePools": [{"name": pool} for pool in sorted({node.pool for node in plan.nodes})],
        "listeners": served,
    }


def _write_rules(plan: Layout, metrics: Metrics) -> None:
    """The rules of the brokers' exporter as files; without a file a broker starts without an exporter."""
    for node in plan.nodes:
        path = plan.home(node) / metrics_config.FILE
        if isinstance(metrics, Exporter):
            write_private(path, metrics.rules)
        else:
            path.unlink(missing_ok=True)


def _digest(plan: Layout, node: Node) -> str:
    digest = hashlib.sha256()
    for content in certificates.files_read_at_start(plan, node):
        digest.update(content)
    return digest.hexdigest()


def _started(plan: Layout, node: Node) -> str:
    path = plan.home(node) / "started"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def process_environment() -> dict[str, str]:
    """What a Java process needs of the environment, and nothing that may contain a secret."""
    return {key: os.environ[key] for key in ("PATH", "HOME", "LANG", "TZ", "TMPDIR") if key in os.environ}
