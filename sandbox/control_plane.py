"""The control plane and the operator: brought up in order, rolled back if a step fails, stopped in reverse.

Owns the two processes `plane` and `operator` and everything in the state folder. The Java processes belong to the
operator while it runs; `down` stops those too.
"""

import contextlib
import fcntl
import secrets
import shutil
import signal
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from sandbox.processes import HOST, free_ports

from . import api_server
from .pki import ControlPlaneAuthority, signing_key
from .processes import ProcessError, Processes, end_processes, running
from .state import PROJECT, SandboxState, write_private
from .toolchain import Tools

PLANE, OPERATOR = "plane", "operator"
READY_WITHIN_S = 60.0
DEFINITIONS_WITHIN_S = 120.0
OPERATOR_WITHIN_S = 60.0
PORT_TRIES = 3
# A third of the API server's CPU time was garbage collection, which may take memory instead, up to a soft limit.
_GARBAGE_COLLECTION = {"GOGC": "400", "GOMEMLIMIT": "640MiB"}
_INHERITED = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "XDG_CACHE_HOME", "RT_INVENTORY_CACHE")

Report = Callable[[str], None]


class ControlPlaneError(Exception):
    """The sandbox cannot be started or stopped; the message has the reason and what to do."""


class _PortTakenError(Exception):
    """Somebody took the chosen port between the choice and the start."""


@dataclass(frozen=True)
class SandboxContext:
    """What a sandbox is started with: its folder, the tools, the caller's environment, where progress goes.

    `event_streams` serves IBM's definitions too. Their kinds have the same names as Strimzi's, so that `kubectl` needs
    the group to distinguish them.
    """

    state: SandboxState
    tools: Tools
    environment: Mapping[str, str]
    report: Report
    event_streams: bool = False

    def inherited(self) -> dict[str, str]:
        """The part of the environment that the sandbox's processes get."""
        return {name: self.environment[name] for name in _INHERITED if name in self.environment}


def up(context: SandboxContext) -> bool:
    """True if something was started, False if all ran already. Whatever stops it half-way, it leaves no process.

    Raises ControlPlaneError, ProcessError or StateError.
    """
    state, report = context.state, context.report
    state.create()
    with _locked(state):
        if is_up(state):
            return False
        processes = Processes(state)
        try:
            if processes.alive(PLANE) and state.run_info.exists() and _answers(state):
                report("operator: not running; starting it again")
                _start_operator(context, processes)
                return True
            if processes.names() or processes.orphans():
                report("sandbox: stopping what an earlier run left")
                _stop(state)
            state.clear(logs=True)
            state.create()
            _start(context, processes)
        except BaseException:
            with _uninterrupted():
                report("sandbox: start did not succeed; stopping what was started")
                _stop(state)
                state.clear()
            raise
    return True


def down(state: SandboxState, report: Report) -> bool:
    """True if something was stopped. Afterwards no process is left, and of the files only logs and reports."""
    if not state.exists():
        return False
    with _locked(state):
        something = bool(Processes(state).names()) or state.kubeconfig.exists()
        if something:
            report("sandbox: stopping")
        with _uninterrupted():
            _stop(state)
            state.clear()
    return something


def is_up(state: SandboxState) -> bool:
    """True if the control plane answers as ready and the operator runs."""
    processes = Processes(state)
    return state.run_info.exists() and processes.alive(PLANE) and processes.alive(OPERATOR) and _answers(state)


@contextlib.contextmanager
def api(state: SandboxState, timeout_s: float = 30.0) -> Iterator[httpx.Client]:
    """A client of the API server with the admin's certificate."""
    context = _tls(state.plane)
    with httpx.Client(
        base_url=state.read_run_info()["server"], verify=context, timeout=timeout_s, trust_env=False
    ) as client:
        yield client


def _start(context: SandboxContext, processes: Processes) -> None:
    state, report = context.state, context.report
    began = time.monotonic()
    write_private(state.passphrase, secrets.token_urlsafe(32))
    for attempt in range(1, PORT_TRIES + 1):
        try:
            _start_plane(context, processes)
            break
        except _PortTakenError as error:
            processes.stop(PLANE, deadline_s=2)
            report(f"plane: {error}; choosing another one")
            if attempt == PORT_TRIES:
                raise ControlPlaneError(
                    f"plane: API server's port must be free (got {error}, {PORT_TRIES} times in a row). "
                    "Stop what takes ports on 127.0.0.1, then try again."
                ) from error
    report(f"plane: API server ready ({time.monotonic() - began:.1f} s)")
    with api(state, timeout_s=DEFINITIONS_WITHIN_S) as client:
        names = _install(client, context)
        api_server.grant_operator_role(client)
    report(f"plane: {len(names)} custom resource definitions ready ({time.monotonic() - began:.1f} s)")
    _start_operator(context, processes)
    seconds = time.monotonic() - began
    state.write_run_info(state.read_run_info() | {"ready_seconds": round(seconds, 1)})
    report(f"operator: ready ({seconds:.1f} s)")


def _install(client: httpx.Client, context: SandboxContext) -> list[str]:
    tools = context.tools
    folders = [tools.served_crds, tools.olm_crds, tools.monitoring_crds]
    folders += [tools.event_streams_crds] if context.event_streams else []
    try:
        return api_server.install_definitions(client, folders, DEFINITIONS_WITHIN_S)
    except (api_server.CrdError, httpx.HTTPError) as error:
        message = f"plane: definitions must be accepted (got: {error}). See: sandbox logs plane."
        raise ControlPlaneError(message) from error


def _start_plane(context: SandboxContext, processes: Processes) -> None:
    state = context.state
    shutil.rmtree(state.plane, ignore_errors=True)
    state.plane.mkdir(mode=0o700)
    (port,) = free_ports(1)
    server = f"https://{HOST}:{port}"
    _write_credentials(state, server)
    log = state.log(PLANE)
    start = log.stat().st_size if log.exists() else 0
    argv = [
        str(context.tools.controlplane),
        f"--data-dir={state.plane / 'data'}",
        f"--kubeconfig={state.plane / 'controllers.kubeconfig'}",
        "--",
        *_api_server_flags(state.plane, port),
    ]
    processes.start(PLANE, argv, context.inherited() | _GARBAGE_COLLECTION, log)
    state.write_run_info({"server": server, "api_port": port})
    end = time.monotonic() + READY_WITHIN_S
    while not _answers(state):
        if not processes.alive(PLANE):
            written = log.read_bytes()[start:].decode(errors="replace")
            if "address already in use" in written:
                raise _PortTakenError(f"port {port} was taken meanwhile")
            raise ControlPlaneError(f"plane: must go on running (got an end). Its last lines:\n{last_lines(written)}")
        if time.monotonic() > end:
            raise ControlPlaneError(
                f"plane: must be ready within {READY_WITHIN_S:.0f} s (got no answer at {server}/readyz). "
                f"Its log: {log}. Its last lines:\n{last_lines(log.read_text(errors='replace'))}"
            )
        time.sleep(0.1)


def _api_server_flags(folder: Path, port: int) -> list[str]:
    return [
        f"--secure-port={port}",
        f"--bind-address={HOST}",
        f"--cert-dir={folder}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        "--anonymous-auth=false",
        "--authorization-mode=RBAC",
        f"--service-account-key-file={folder / 'service-accounts.key'}",
        f"--service-account-signing-key-file={folder / 'service-accounts.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.96.0.0/16",
        # There are no pods: no account needs a token mounted, no endpoint of the server is resolved.
        "--disable-admission-plugins=ServiceAccount",
        "--endpoint-reconciler-type=none",
        "--profiling=false",
    ]


def _write_credentials(state: SandboxState, server: str) -> None:
    authority, folder = ControlPlaneAuthority(), state.plane
    served = authority.server([HOST, "10.96.0.1"], ["localhost", "kubernetes", "kubernetes.default.svc"])
    admin = authority.client("sandbox-admin", "system:masters")
    controllers = authority.client("sandbox-controllers", "system:masters")
    files = {
        "ca.crt": authority.certificate,
        "server.crt": served.certificate,
        "server.key": served.key,
        "admin.crt": admin.certificate,
        "admin.key": admin.key,
        "service-accounts.key": signing_key(),
    }
    for name, content in files.items():
        write_private(folder / name, content)
    users = [
        (state.kubeconfig, "sandbox-admin", admin),
        (folder / "controllers.kubeconfig", "sandbox-controllers", controllers),
        (state.operator_kubeconfig, api_server.OPERATOR_USER, authority.client(api_server.OPERATOR_USER)),
    ]
    for path, user, pair in users:
        api_server.write_kubeconfig(path, server, authority.certificate, user, pair)


def _start_operator(context: SandboxContext, processes: Processes) -> None:
    state = context.state
    log = state.log(OPERATOR)
    processes.stop(OPERATOR, deadline_s=0)
    (port,) = free_ports(1)
    argv = [sys.executable, "-m", "sandbox.operator", "--state", str(state.path), "--liveness-port", str(port)]
    environment = context.inherited() | {"PYTHONPATH": str(PROJECT), "PYTHONUNBUFFERED": "1"}
    processes.start(OPERATOR, argv, environment, log)
    state.write_run_info(state.read_run_info() | {"liveness_port": port})
    end = time.monotonic() + OPERATOR_WITHIN_S
    while not _lives(port):
        if not processes.alive(OPERATOR):
            raise ControlPlaneError(f"operator: must go on running (got an end). Its last lines:\n{_tail(log)}")
        if time.monotonic() > end:
            raise ControlPlaneError(
                f"operator: must be ready within {OPERATOR_WITHIN_S:.0f} s (got no answer at port {port}). "
                f"Its log: {log}. Its last lines:\n{_tail(log)}"
            )
        time.sleep(0.1)


def _lives(port: int) -> bool:
    try:
        return httpx.get(f"http://{HOST}:{port}/healthz", timeout=2, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def _answers(state: SandboxState) -> bool:
    try:
        with api(state, timeout_s=2) as client:
            return client.get("/readyz").is_success
    except (httpx.HTTPError, OSError, KeyError):
        return False


def _tls(folder: Path) -> ssl.SSLContext:
    return api_server.client_tls(folder / "ca.crt", folder / "admin.crt", folder / "admin.key")


def _stop(state: SandboxState) -> None:
    """Stop the operator first, which would start again what is stopped next, and last what is in no entry."""
    processes = Processes(state)
    processes.stop(OPERATOR, deadline_s=3)
    # The plane needs seconds to close; the brokers' data is removed next, so they get only one.
    processes.stop_all(deadline_s=1, except_for={PLANE: 8})
    end_processes(processes.orphans(), deadline_s=1)
    left = [entry.name for entry in processes.entries() if running(entry)]
    if left:
        raise ProcessError(f"sandbox: processes must end when killed (got still running: {', '.join(left)}).")


@contextlib.contextmanager
def _locked(state: SandboxState) -> Iterator[None]:
    with state.lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ControlPlaneError(
                f"sandbox: only one up or down at a time (got another one at work in {state.path}). Wait for it."
            ) from error
        yield


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """A second Ctrl-C does not stop the stopping."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tail(log: Path) -> str:
    return last_lines(log.read_text(encoding="utf-8", errors="replace")) if log.exists() else ""


def last_lines(text: str, count: int = 15) -> str:
    """The last lines of a log."""
    return "\n".join(text.splitlines()[-count:])
