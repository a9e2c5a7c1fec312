"""What runs in a sandbox, what is real about it and what stands in, for people and for programs."""

from dataclasses import asdict, dataclass

import psutil
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from . import monitoring_files
from .processes import Process, Processes, resident_bytes, running
from .state import SandboxState

_MIB = 1024 * 1024
_WIDE = 1000
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


def table(found: list[Row], width: int) -> RenderableType:
    """The rows for a terminal, names in one piece: `kill` takes them.

    Where it is too narrow for all columns, each kind of process is explained once below the table, and ports are left
    to --json.
    """
    whole = _table(found, wide=True)
    if Console(width=_WIDE).measure(whole).maximum <= width:
        return whole
    kinds = dict.fromkeys((row.name.split(".")[0], row.what) for row in found)
    return Group(_table(found, wide=False), *(Text(f"{kind}: {what}") for kind, what in kinds))


def _table(found: list[Row], *, wide: bool) -> Table:
    result = Table(show_edge=False, pad_edge=False)
    result.add_column("process", no_wrap=True, overflow="fold")
    for title in ("real?", "state", "pid", "MiB", *(("ports", "what it is") if wide else ())):
        result.add_column(title, justify="right" if title in ("pid", "MiB") else "left")
    for row in found:
        more = (" ".join(map(str, row.ports)), row.what) if wide else ()
        pid = str(row.pid) if row.pid else ""
        result.add_row(row.name, row.kind, row.state, pid, str(row.memory_mib), *more)
    result.add_section()
    result.add_row("together", "", "", "", str(sum(row.memory_mib for row in found)))
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
