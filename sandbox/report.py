"""What runs in a sandbox, what is real about it and what stands in, for people and for programs."""

from dataclasses import asdict, dataclass

import psutil
from rich.table import Table

from . import monitoring_files
from .processes import Process, Processes, resident_bytes, running
from .state import SandboxState

_MIB = 1024 * 1024
# kind of process → real or a stand-in, and what it is
KINDS = {
    "plane": ("real", "etcd, kube-apiserver and 3 controllers in one process; nodes and pods do not exist"),
    "operator": ("stand-in", "does what Strimzi's and OLM's operators do, which exist as container images only"),
    "kafka": ("real", "Apache Kafka, broker and controller, as a process instead of a pod"),
    "prometheus": ("real", "Prometheus; it finds processes as it would find pods"),
    "alertmanager": ("real", "Alertmanager; it tells nobody unless a configuration file says whom"),
    "mirror": ("real", "Kafka Connect with MirrorMaker 2, as a process instead of a pod"),
}


@dataclass(frozen=True)
class Row:
    """One process; `memory_mib` is resident memory, `ports` are those of 127.0.0.1 that it listens on."""

    name: str
    kind: str
    what: str
    state: str
    pid: int | None
    memory_mib: int
    ports: list[int]


def rows(state: SandboxState) -> list[Row]:
    """A row for every process of the registry, in the order of their starts."""
    return [_row(entry) for entry in Processes(state).entries()]


def document(state: SandboxState, *, is_up: bool) -> dict[str, object]:
    """The same for programs, as JSON values."""
    found = rows(state)
    return {
        "up": is_up,
        "state": str(state.path),
        "kubeconfig": str(state.kubeconfig),
        "facts": state.read_facts(),
        "monitoring": monitoring_files.urls(state),
        "processes": [asdict(row) for row in found],
        "memory_mib": sum(row.memory_mib for row in found),
    }


def table(found: list[Row]) -> Table:
    """The rows for a terminal."""
    result = Table(show_edge=False, pad_edge=False)
    for title in ("process", "real?", "state", "pid", "MiB", "ports", "what it is"):
        result.add_column(title, justify="right" if title in ("pid", "MiB") else "left", overflow="fold")
    for row in found:
        ports = " ".join(map(str, row.ports))
        pid = str(row.pid) if row.pid else ""
        result.add_row(row.name, row.kind, row.state, pid, str(row.memory_mib), ports, row.what)
    result.add_section()
    result.add_row("together", "", "", "", str(sum(row.memory_mib for row in found)), "", "")
    return result


def _row(entry: Process) -> Row:
    alive = running(entry)
    kind, what = KINDS.get(entry.name.split(".")[0], ("real", ""))
    words = {(True, False): "running", (True, True): "running, held", (False, True): "held", (False, False): "dead"}
    return Row(
        name=entry.name,
        kind=kind,
        what=what,
        state=words[alive, entry.held],
        pid=entry.pid if alive else None,
        memory_mib=resident_bytes(entry) // _MIB,
        ports=_ports(entry.pid) if alive else [],
    )


def _ports(pid: int) -> list[int]:
    try:
        connections = psutil.Process(pid).net_connections(kind="tcp")
    except psutil.Error:
        return []
    return sorted({entry.laddr.port for entry in connections if entry.status == psutil.CONN_LISTEN})
