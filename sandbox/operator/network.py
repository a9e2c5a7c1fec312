"""The network between the sites: toxiproxy kept running once asked for, with a proxy for each exposed listener.

A proxy that is made gets the conditions that are asked for at that moment; later the command line changes them itself.
"""

import logging
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from sandbox import network, processes
from sandbox.network import Conditions, NetworkError, NetworkFiles, Proxy, Toxiproxy
from sandbox.operator import NotReadyError
from sandbox.operator.java_processes import ProcessSupervisor
from sandbox.operator.kafka_nodes import Layout
from sandbox.state import private_folder, read_json, write_json

logger = logging.getLogger(__name__)

ANSWERS_WITHIN_S = 10.0


@dataclass
class Proxies:
    """Toxiproxy and what it has to do."""

    supervisor: ProcessSupervisor
    program: Path
    files: NetworkFiles
    log: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def are_wanted(self) -> bool:
        """Whether somebody asked for a network."""
        return self.files.request.exists()

    def keep(self, layout: Layout) -> list[str]:
        """Make the proxies of a cluster that are missing; return those that cannot be made yet, with the reason.

        A broker that was not restarted yet has the port that its proxy needs. Raises NotReadyError if toxiproxy does
        not answer.
        """
        expected = proxies_of(layout)
        if not expected:
            return []
        with self._lock:
            try:
                self._start()
                with network.toxiproxy(self.files) as api:
                    return self._make(api, expected) if api else []
            except NetworkError as error:
                raise NotReadyError("NetworkNotReady", f"Kafka {layout.cluster}: {error}", retry_s=1) from error

    def remove(self, namespace: str, cluster: str) -> None:
        """Remove the proxies of a cluster that is gone."""
        with self._lock, network.toxiproxy(self.files) as api:
            if api is None or not api.answers():
                return
            for name in api.proxies():
                if name.startswith(f"{namespace}.{cluster}."):
                    api.remove(name)

    def _make(self, api: Toxiproxy, expected: list[Proxy]) -> list[str]:
        wanted, left = self.files.read(), []
        present = api.proxies()
        for proxy in expected:
            known = present.get(proxy.name)
            if known and {key: known[key] for key in proxy.document()} == proxy.document():
                continue
            if known:
                api.remove(proxy.name)
            if not processes.is_free_port(proxy.port):
                left.append(f"{proxy.name} needs the port 127.0.0.1:{proxy.port}, which another process uses")
                continue
            api.add(proxy, wanted.of(proxy.cluster) if wanted else Conditions())
            logger.info("%s: 127.0.0.1:%d leads to 127.0.0.1:%d", proxy.name, proxy.port, proxy.behind)
        return left

    def _start(self) -> None:
        """Start toxiproxy if it does not run, and wait until it answers."""
        registry = self.supervisor.processes
        if registry.alive(network.PROCESS):
            return
        if registry.held(network.PROCESS) or self.supervisor.wait_s(network.PROCESS) > 0:
            raise NetworkError("network: toxiproxy does not run (it is held, or ended soon after its start).")
        known = read_json(self.files.address).get("address")
        port = int(known.rpartition(":")[2]) if known else processes.free_port()
        processes.reserve_ports([port])
        private_folder(self.files.folder)
        logger.info("%s: start at http://127.0.0.1:%d", network.PROCESS, port)
        command = [str(self.program), "-host", processes.HOST, "-port", str(port)]
        self.supervisor.start(network.PROCESS, command, {"LOG_LEVEL": "error"}, self.log)
        write_json(self.files.address, {"address": f"{processes.HOST}:{port}"})
        end = time.monotonic() + ANSWERS_WITHIN_S
        with network.toxiproxy(self.files) as api:
            while api is not None and not api.answers() and time.monotonic() < end:
                time.sleep(0.05)


def proxies_of(layout: Layout) -> list[Proxy]:
    """The proxies of a cluster: one for each exposed listener of each broker, none without a network."""
    nodes = [{"id": node.id, "ports": node.ports} for node in layout.nodes]
    return network.proxies_of(layout.folder / "layout.json", {"nodes": nodes})
