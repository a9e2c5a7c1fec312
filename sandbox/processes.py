"""The process supervisor: which processes run, since when, how to stop exactly one of them, and ports for them.

One JSON file a process is the registry; several programs (the command line, the operator) share it, so every change is
made under a lock. A process is identified by its pid AND its start time: a pid that the kernel gave to another process
is never signalled. Environments are passed on and never written down, because they may contain secrets. Nothing is
restarted by itself.

A loopback port is any free one, or one that its user remembers, so that addresses survive a restart. A broker's port is
chosen seconds before the broker listens on it, and several sandboxes may choose at the same time. Therefore each
process has blocks of ports to itself: a block belongs to the process that has its first port bound, and the kernel
frees that when the process ends.
"""

import contextlib
import fcntl
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType

import psutil

from sandbox.state import SandboxState, read_json, write_private

HOST = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Different ports of 127.0.0.1 that nothing listens on now.

    Somebody else may take one before it is used: who starts a server on it must be ready to choose again.
    """
    sockets = []
    try:
        for _ in range(count):
            probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sockets.append(probe)
            probe.bind((HOST, 0))
        return [probe.getsockname()[1] for probe in sockets]
    finally:
        for probe in sockets:
            probe.close()


# Below the range that the kernel hands to outgoing connections: a stopped broker's port stays free for it.
FIRST_PORT, LAST_PORT = 20000, 31999
PORT_BLOCK = 100

_lock = threading.Lock()
_given: set[int] = set()
_left: list[int] = []
_held: list[socket.socket] = []


def reserve_ports(ports: list[int]) -> None:
    """Ports that are spoken for, although nothing may listen on them at the moment."""
    with _lock:
        _given.update(ports)


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on and that neither this process nor another one has given out.

    Raises OSError if every block belongs to somebody.
    """
    with _lock:
        while True:
            if not _left:
                _left.extend(_claimed())
            port = _left.pop()
            if port not in _given and is_free_port(port):
                _given.add(port)
                return port


def _claimed() -> list[int]:
    """The ports of a block that belongs to this process from now on, without the one that it is held by."""
    for first in random.sample(range(FIRST_PORT, LAST_PORT, PORT_BLOCK), (LAST_PORT - FIRST_PORT) // PORT_BLOCK):
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)  # without SO_REUSEADDR: nobody else can bind it
        try:
            holder.bind(("127.0.0.1", first))
        except OSError:
            holder.close()
            continue
        _held.append(holder)
        return random.sample(range(first + 1, first + PORT_BLOCK), PORT_BLOCK - 1)
    raise OSError(
        f"no block of {PORT_BLOCK} ports between {FIRST_PORT} and {LAST_PORT} on 127.0.0.1 is free. "
        "Stop other sandboxes."
    )


def is_free_port(port: int) -> bool:
    """True if a listener could bind to this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


# Every process carries it, and everything that it starts: so a process that is in no registry is found too. A user's
# shell carries RT_INVENTORY_SANDBOX, which for this reason cannot be the mark.
MARK = "RT_INVENTORY_SANDBOX_PROCESS"
# psutil reckons start times from the boot time, which moves when the clock is set.
SAME_START_S = 1.5


class ProcessError(Exception):
    """A process cannot be started, stopped or found; the message names it and what to do."""


@dataclass(frozen=True)
class Process:
    """An entry of the registry; it stays when its process dies, until it is stopped or started again."""

    name: str
    pid: int
    start_time: float
    argv: list[str]
    log: str
    held: bool = False
    started: int = 0
    """Place in the order of starts, over the whole registry."""


class Processes:
    """The registry of one sandbox."""

    def __init__(self, state: SandboxState) -> None:
        self._state = state

    def start(self, name: str, argv: list[str], env: dict[str, str], log: Path) -> None:
        """Start a process in its own session with exactly this environment; output is appended to `log` (0600).

        Raises ProcessError if it runs already, is held, or its program cannot be executed.
        """
        with self._locked():
            entry = self._read(name)
            if entry and entry.held:
                raise ProcessError(f"process {name}: must not be held (got held). Release it: sandbox start {name}.")
            if entry and running(entry):
                raise ProcessError(f"process {name}: must not run already (got pid {entry.pid}). Stop it first.")
            order = 1 + max((known.started for known in self.entries()), default=0)
            child = self._spawn(name, argv, env, log)
            try:
                started = psutil.Process(child.pid).create_time()
                self._write(Process(name, child.pid, started, argv, str(log), started=order))
            except BaseException:
                child.kill()
                child.wait()
                raise
        # Somebody has to collect the child's exit code, or it stays a zombie while this program lives.
        threading.Thread(target=child.wait, name=f"wait {name}", daemon=True).start()

    def stop(self, name: str, deadline_s: float) -> None:
        """Stop the process and its helpers: SIGTERM, after `deadline_s` SIGKILL. Then forget it."""
        entry = self._read(name)
        if entry is None:
            return
        _end(entry, deadline_s)
        self._forget(entry)

    def kill(self, name: str, *, hold: bool = False) -> int:
        """Kill the process at once (SIGKILL) and return its pid; with `hold` it is not started again until released.

        The entry stays, so that the supervisor sees it dead. Raises ProcessError if there is no such process.
        """
        with self._locked():
            entry = self._must_read(name)
            if hold:
                entry = replace(entry, held=True)
                self._write(entry)
            if not running(entry):
                raise ProcessError(f"process {name}: must run (got {_condition(entry)}). See: sandbox status.")
        _end(entry, deadline_s=0)
        return entry.pid

    def alive(self, name: str) -> bool:
        """True if the process runs (a zombie does not)."""
        entry = self._read(name)
        return entry is not None and running(entry)

    def held(self, name: str) -> bool:
        """True if it must not be started, because it is to stay stopped."""
        entry = self._read(name)
        return entry is not None and entry.held

    def hold(self, name: str) -> None:
        """From now on no supervisor may start it again; a running process goes on."""
        with self._locked():
            self._write(replace(self._must_read(name), held=True))

    def release(self, name: str) -> None:
        """A supervisor may start it again."""
        with self._locked():
            self._write(replace(self._must_read(name), held=False))

    def entries(self) -> list[Process]:
        """All entries in the order of their starts, dead ones too."""
        paths = self._state.processes.glob("*.json")
        found = [entry for path in paths if not path.name.startswith(".") and (entry := self._read(path.stem))]
        return sorted(found, key=lambda entry: entry.started)

    def names(self) -> list[str]:
        """All names in the registry."""
        return [entry.name for entry in self.entries()]

    def stop_all(self, deadline_s: float, except_for: Mapping[str, float] = MappingProxyType({})) -> None:
        """Stop all in reverse order of start, processes of one kind (kafka, mirror) at the same time; forget all.

        All are held first, so that no supervisor starts one again meanwhile. `except_for`: own deadlines by name.
        """
        with self._locked():
            entries = [replace(entry, held=True) for entry in self.entries()]
            for entry in entries:
                self._write(entry)
        for _, group in itertools.groupby(reversed(entries), key=lambda entry: entry.name.split(".")[0]):
            members = list(group)
            with ThreadPoolExecutor(len(members)) as pool:
                list(pool.map(lambda entry: _end(entry, except_for.get(entry.name, deadline_s)), members))
        for entry in entries:
            self._forget(entry)

    def orphans(self) -> list[psutil.Process]:
        """Processes of this sandbox that run and are in no entry: their starter was killed, or they are helpers."""
        known = {entry.pid for entry in self.entries() if running(entry)}
        return [process for process in marked(self._state) if process.pid not in known]

    def _spawn(self, name: str, argv: list[str], env: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            return subprocess.Popen(
                argv,
                cwd=self._state.path,
                env={**env, MARK: f"{self._state.path}:{name}"},
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                start_new_session=True,
            )
        except OSError as error:
            raise ProcessError(
                f"process {name}: program must be executable (got {argv[0]}: {error.strerror}). Run make setup."
            ) from error
        finally:
            os.close(descriptor)

    def _forget(self, entry: Process) -> None:
        with self._locked():
            current = self._read(entry.name)
            # A new process of the same name may have been started meanwhile.
            if current is not None and current.started == entry.started:
                self._file(entry.name).unlink(missing_ok=True)

    def _read(self, name: str) -> Process | None:
        content = read_json(self._file(name))
        return Process(**content) if content else None

    def _must_read(self, name: str) -> Process:
        entry = self._read(name)
        if entry is None:
            known = ", ".join(self.names()) or "none"
            raise ProcessError(f"process {name}: must be one of the sandbox's (got {name}, allowed {known}).")
        return entry

    def _write(self, entry: Process) -> None:
        write_private(self._file(entry.name), json.dumps(asdict(entry), indent=1) + "\n")

    def _file(self, name: str) -> Path:
        return self._state.processes / f"{name}.json"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self._state.processes.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self._state.processes / "lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def running(entry: Process) -> bool:
    """True if the process of this entry runs: its pid lives, has the start time of the entry, and is no zombie."""
    return _process(entry) is not None


def resident_bytes(entry: Process) -> int:
    """Resident memory of the process and its helpers; 0 if it does not run. What has an own entry is not among them."""
    process = _process(entry)
    if process is None:
        return 0
    total = 0
    for member in [process, *_children(process)]:
        with contextlib.suppress(psutil.Error):
            total += member.memory_info().rss
    return total


def marked(state: SandboxState) -> list[psutil.Process]:
    """All living processes that this sandbox started, in whatever way, found by their environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            mark = process.environ().get(MARK, "")
            if mark.rpartition(":")[0] == str(state.path) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def end_processes(processes: list[psutil.Process], deadline_s: float) -> None:
    """Stop these processes: SIGTERM, after `deadline_s` SIGKILL. psutil checks that a pid was not given away."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate() if deadline_s > 0 else process.kill()
    _, left = psutil.wait_procs(processes, timeout=max(deadline_s, 0.05))
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=5)


def _end(entry: Process, deadline_s: float) -> None:
    """Stop the entry's process, then the helpers that it left behind."""
    process = _process(entry)
    if process is None:
        return
    children = _children(process)
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGTERM if deadline_s > 0 else signal.SIGKILL)
    end = time.monotonic() + deadline_s
    while running(entry) and time.monotonic() < end:
        time.sleep(0.02)
    end_processes([*([process] if running(entry) else []), *children], deadline_s=0)


def _process(entry: Process) -> psutil.Process | None:
    try:
        process = psutil.Process(entry.pid)
        if abs(process.create_time() - entry.start_time) > SAME_START_S or process.status() == psutil.STATUS_ZOMBIE:
            return None
    except psutil.NoSuchProcess:
        return None
    return process


def _children(process: psutil.Process) -> list[psutil.Process]:
    """Helpers of a process: below it and in its session. The operator's brokers have sessions of their own."""
    helpers = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in process.children(recursive=True):
            with contextlib.suppress(ProcessLookupError):
                if os.getsid(child.pid) == process.pid:
                    helpers.append(child)
    return helpers


def _condition(entry: Process) -> str:
    return "held" if entry.held else "dead"
