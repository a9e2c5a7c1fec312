"""Command line of the sandbox: `python -m sandbox up|status|logs|kill|start|down|network|env|pulumi|demo`."""

import json
import os
import shlex
import signal
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import httpx
import psutil
import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from sandbox import control_plane, monitoring, network, network_command
from sandbox.processes import Process, ProcessError, Processes, resident_bytes, running
from sandbox.pulumi import USAGE, Pulumi, PulumiError, run_as_typed
from sandbox.state import SandboxState, StateError, default_state
from sandbox.toolchain import ToolchainError, all_steps, java, locate
from sandbox.toolchain.paths import here
from settings.text import wrap_for_stream

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A local stand-in for the clusters, made of real parts. State folder: .sandbox, or RT_INVENTORY_SANDBOX.",
)
OWN = (
    control_plane.ControlPlaneError,
    monitoring.MonitoringError,
    network.NetworkError,
    ProcessError,
    PulumiError,
    StateError,
    ToolchainError,
)
KNOWN = (*OWN, httpx.HTTPError, OSError)
_debug = False
app.add_typer(network_command.app, name="network")


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Set the options of all commands."""
    global _debug
    _debug = debug


@app.command()
def up(
    event_streams: Annotated[
        bool, typer.Option("--event-streams", help="Serve Event Streams' definitions, derived from Strimzi's, too.")
    ] = False,
    with_monitoring: Annotated[
        bool, typer.Option("--monitoring", help="Start Prometheus and Alertmanager too.")
    ] = False,
    alertmanager_config: Annotated[
        Path | None, typer.Option(help="Alertmanager's configuration; read again when it changes.")
    ] = None,
) -> None:
    """Start the API server, the definitions and the operator. Does nothing if they run."""
    if alertmanager_config and not with_monitoring:
        _fail("--alertmanager-config: needs --monitoring (got none). Add it.", code=2)
    state = _state()
    state.create()
    tools = locate()
    if with_monitoring:
        monitoring.check(tools, alertmanager_config)
    began = time.monotonic()
    started = control_plane.up(control_plane.SandboxContext(state, tools, os.environ, _report, event_streams))
    if with_monitoring:
        monitoring.up(state, alertmanager_config, _report)
    if not started:
        _report(f"sandbox: already up in {state.path}")
        return
    Pulumi(state, tools).write_shim()
    java.make_spark_classes_in_background(here(), all_steps(here()))
    _report(f"sandbox: up in {time.monotonic() - began:.1f} s (state: {state.path})")
    _report('next: eval "$(venv/bin/python -m sandbox env)"')


@app.command()
def down(
    only_monitoring: Annotated[
        bool, typer.Option("--monitoring", help="Stop Prometheus and Alertmanager alone.")
    ] = False,
) -> None:
    """Stop everything and remove the run's files; logs and reports stay."""
    state = _state()
    began = time.monotonic()
    if only_monitoring:
        stopped = monitoring.down(state)
        _report("monitoring: stopped" if stopped else f"monitoring: not running in {state.path}")
        return
    if control_plane.down(state, _report):
        _report(f"sandbox: down in {time.monotonic() - began:.1f} s (logs: {state.logs})")
    else:
        _report(f"sandbox: not running in {state.path}")


@app.command()
def status(as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False) -> None:
    """Show what runs, with pid, memory and ports, and what stands in. Exit code 1 if the sandbox is not up."""
    state = _state()
    ready = control_plane.is_up(state)
    if as_json:
        sys.stdout.write(json.dumps(status_document(state, is_up=ready), indent=1) + "\n")
    else:
        console = Console(highlight=False, width=None if sys.stdout.isatty() else 240)
        found = process_rows(state)
        if found:
            console.print(status_table(found, console.width))
        run_info = state.read_run_info()
        console.print(f"sandbox: {'up' if ready else 'not up'} (state: {state.path})", soft_wrap=True)
        if ready:
            console.print(f"API server: {run_info['server']} (TLS, client certificates, RBAC)")
            console.print("etcd: unix socket in the state folder, no port")
            console.print(f"kubeconfig: {state.kubeconfig}", soft_wrap=True)
            for name, url in monitoring.urls(state).items():
                console.print(f"{name}: {url}")
        if (line := network.described(state)) is not None:
            console.print(f"network: {line}", soft_wrap=True)
    raise typer.Exit(0 if ready else 1)


@app.command()
def logs(
    name: Annotated[str, typer.Argument(help="Process, as `status` names it.")] = "",
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many of the last lines.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as lines come.")] = False,
) -> None:
    """Show the log of a process, also of one that is gone. Without a name: which logs there are."""
    state = _state()
    names = sorted(path.stem for path in state.logs.glob("*.log"))
    if name not in names:
        known = ", ".join(names) or "none"
        if not name:
            sys.stdout.write("".join(f"{known_name}\n" for known_name in names))
            return
        _fail(f"log: process must have one (got {name}, allowed {known}).", code=2)
    with state.log(name).open(encoding="utf-8", errors="replace") as file:
        sys.stdout.writelines(deque(file, maxlen=lines))
        while follow:
            sys.stdout.flush()
            time.sleep(0.2)
            sys.stdout.writelines(file)


@app.command()
def kill(
    name: Annotated[str, typer.Argument(help="Process, as `status` names it.")],
    hold: Annotated[bool, typer.Option("--hold", help="The operator must not start it again.")] = False,
) -> None:
    """Kill a process (SIGKILL), as an outage would. The operator starts it again unless --hold."""
    pid = Processes(_state()).kill(name, hold=hold)
    after = f"held; release it: venv/bin/python -m sandbox start {name}" if hold else _after_kill(name)
    _report(f"{name}: killed (pid {pid}); {after}")


@app.command()
def start(name: Annotated[str, typer.Argument(help="Process that was killed.")]) -> None:
    """Release a held process, so that the operator starts it again; or start a dead operator."""
    state = _state()
    Processes(state).release(name)
    if name in (control_plane.PLANE, control_plane.OPERATOR):
        up()
    else:
        _report(f"{name}: released; the operator starts it if it does not run")


@app.command()
def env() -> None:
    """Print shell commands that make kubectl, pulumi and ops use the sandbox: eval "$(python -m sandbox env)"."""
    values = Pulumi(_state(), locate()).environment()
    lines = [f"export {name}={shlex.quote(value)}" for name, value in values.items()]
    # It would win over the passphrase file.
    sys.stdout.write("\n".join([*lines, "unset PULUMI_CONFIG_PASSPHRASE"]) + "\n")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def pulumi(context: typer.Context) -> None:
    """Run Pulumi in the sandbox, for example: pulumi -- up -s dev. Missing stacks are created."""
    raise typer.Exit(run_as_typed(context.args))


@app.command()
def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave everything running.")] = False,
    cluster: Annotated[
        Literal["sandbox", "current"], typer.Option("--cluster", help="Where: a sandbox, or the kubeconfig's clusters.")
    ] = "sandbox",
    dev_context: Annotated[str | None, typer.Option(help="Context of dev. [default: the current one]")] = None,
    stg_context: Annotated[str | None, typer.Option(help="Context of stg. [default: the current one]")] = None,
    strimzi: Annotated[
        Path | None, typer.Option(help="Folder with Strimzi's release, where no operator is there.")
    ] = None,
    expose: Annotated[
        Literal["loadbalancer", "nodeport", "route"] | None, typer.Option(help="How brokers are reached from here.")
    ] = None,
    latency: Annotated[
        str | None, typer.Option(metavar="100ms", help="Round trip between the sites of a sandbox.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before something is made in a cluster.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Only remove what a demo has left in clusters.")] = False,
) -> None:
    """Two clusters, a mirror, a failover and the proof."""
    from .demo import command  # costs a second that the other commands need not pay

    console = Console(highlight=False)
    given = [dev_context, stg_context, strimzi, expose, yes or None, remove or None]
    if cluster == "sandbox":
        if any(option is not None for option in given):
            _fail("demo: only --keep and --latency are for the sandbox (got others). Add --cluster current.", code=2)
        code = command.in_sandbox(_state(), console, keep=keep, latency=latency)
    elif latency is not None:
        _fail("demo: --latency is for the sandbox (got it with --cluster current). Leave it out.", code=2)
    elif remove:
        code = command.remove(console)
    else:
        contexts = {"dev": dev_context, "stg": stg_context}
        code = command.on_current(console, contexts, strimzi, expose, keep=keep, yes=yes)
    raise typer.Exit(code)


def main() -> int:
    """Exit code: 0 ok, 1 it failed, 2 wrong usage or tools missing, 130 interrupted, 143 terminated."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        app()
    except KNOWN as error:
        if _debug:
            raise
        sys.stderr.write(f"{wrap_for_stream(str(error), sys.stderr)}\n")
        return 2 if isinstance(error, (*USAGE, network.NetworkUsageError)) else 1
    return 0


def _state() -> SandboxState:
    return default_state(os.environ)


def _report(text: str) -> None:
    sys.stderr.write(f"{wrap_for_stream(text, sys.stderr)}\n")
    sys.stderr.flush()


def _fail(text: str, *, code: int) -> NoReturn:
    _report(text)
    raise typer.Exit(code)


def _after_kill(name: str) -> str:
    if name == control_plane.OPERATOR:
        return "start it again: venv/bin/python -m sandbox start operator"
    return (
        "start afresh: venv/bin/python -m sandbox up" if name == control_plane.PLANE else "the operator starts it again"
    )


_MIB = 1024 * 1024
_WIDE = 1000
# kind of process → real or a stand-in, and what it is
PROCESS_KINDS = {
    "plane": ("real", "etcd, kube-apiserver and 3 controllers in one process; nodes and pods do not exist"),
    "operator": ("stand-in", "does what Strimzi's and OLM's operators do, which exist as container images only"),
    "kafka": ("real", "Apache Kafka, broker and controller, as a process instead of a pod"),
    "prometheus": ("real", "Prometheus; it finds processes as it would find pods"),
    "alertmanager": ("real", "Alertmanager; it notifies nobody unless a configuration file names receivers"),
    "mirror": ("real", "Kafka Connect with MirrorMaker 2, as a process instead of a pod"),
    "network": ("stand-in", "toxiproxy in front of what clusters expose, for the line between the sites"),
}


@dataclass(frozen=True)
class ProcessRow:
    """One process; `memory_mib` is resident memory, `ports` are those of 127.0.0.1 that it listens on."""

    name: str
    kind: str
    what: str
    state: str
    pid: int | None
    memory_mib: int
    ports: list[int]


def process_rows(state: SandboxState) -> list[ProcessRow]:
    """A row for every process of the registry, in the order of their starts."""
    return [_process_row(entry) for entry in Processes(state).entries()]


def status_document(state: SandboxState, *, is_up: bool) -> dict[str, object]:
    """The same for programs, as JSON values."""
    found = process_rows(state)
    return {
        "up": is_up,
        "state": str(state.path),
        "kubeconfig": str(state.kubeconfig),
        "facts": state.read_run_info(),
        "monitoring": monitoring.urls(state),
        "network": network.document(state),
        "processes": [asdict(row) for row in found],
        "memory_mib": sum(row.memory_mib for row in found),
    }


def status_table(found: list[ProcessRow], width: int) -> RenderableType:
    """The rows for a terminal, names in one piece: `kill` takes them.

    Where it is too narrow for all columns, each kind of process is explained once below the table, and ports are left
    to --json.
    """
    whole = _status_table(found, wide=True)
    if Console(width=_WIDE).measure(whole).maximum <= width:
        return whole
    kinds = dict.fromkeys((row.name.split(".")[0], row.what) for row in found)
    return Group(_status_table(found, wide=False), *(Text(f"{kind}: {what}") for kind, what in kinds))


def _status_table(found: list[ProcessRow], *, wide: bool) -> Table:
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


def _process_row(entry: Process) -> ProcessRow:
    alive = running(entry)
    kind, what = PROCESS_KINDS.get(entry.name.split(".")[0], ("real", ""))
    words = {(True, False): "running", (True, True): "running, held", (False, True): "held", (False, False): "dead"}
    return ProcessRow(
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


if __name__ == "__main__":
    sys.exit(main())
