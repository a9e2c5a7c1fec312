"""Runs one plugin written in Python: a policy pack, or a provider that the engine starts from its source folder."""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pulumi.runtime.proto import language_pb2

from .policy_proxy import PolicyProxy

_CHUNK = 1 << 16
_STOP_WITHIN_S = 5.0
POLICY_PACK = "analyzer"
"""The engine's kind of a policy pack."""
STDOUT, STDERR = "stdout", "stderr"
_RESPONSES: Mapping[str, Callable[[bytes], language_pb2.RunPluginResponse]] = {
    STDOUT: lambda text: language_pb2.RunPluginResponse(stdout=text),
    STDERR: lambda text: language_pb2.RunPluginResponse(stderr=text),
}


class PluginProcess:
    """A plugin's process with all that it starts, in a process group of its own: Ctrl-C is the engine's to handle."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        """Start the plugin; raises OSError."""
        self._child = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._killer = threading.Timer(_STOP_WITHIN_S, self._signal, (signal.SIGKILL,))
        self._killer.daemon = True

    def output(self) -> Iterator[tuple[str, bytes]]:
        """What the plugin writes as it comes: `stdout` or `stderr` with the bytes, until both are closed."""
        with selectors.DefaultSelector() as selector:
            for name, pipe in ((STDOUT, self._child.stdout), (STDERR, self._child.stderr)):
                if pipe is not None:
                    selector.register(pipe, selectors.EVENT_READ, name)
            while selector.get_map():
                for key, _events in selector.select():
                    if chunk := os.read(key.fd, _CHUNK):
                        yield str(key.data), chunk
                    else:
                        selector.unregister(key.fileobj)

    def wait(self) -> int:
        """Return the exit code, -N after signal N."""
        return self._child.wait()

    def interrupt(self) -> None:
        """Ask the plugin and all that it has started to end, and end them by force after 5 s; does not wait."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(RuntimeError):  # asked for the second time: the clock runs already
            self._killer.start()

    def close(self) -> None:
        """End what is left of the plugin, and wait for it."""
        if self._child.poll() is None and not self._killer.is_alive():
            self.interrupt()
        self._child.wait()
        self._killer.cancel()
        for pipe in (self._child.stdout, self._child.stderr):
            if pipe is not None:
                pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, number)


def command_of(request: language_pb2.RunPluginRequest, python: str) -> tuple[list[str], Path]:
    """The command line and the working folder of a plugin: the SDK runs policy packs, Python all others."""
    program = request.info.program_directory
    if request.kind == POLICY_PACK:
        return [python, "-u", "-m", "pulumi.policy", *request.args, program], Path(program)
    return [python, "-u", program, *request.args], Path(request.pwd)


def responses(process: PluginProcess, proxy: PolicyProxy | None) -> Iterator[language_pb2.RunPluginResponse]:
    """The plugin's output as it comes, and at last its exit code.

    The first line of a policy pack is the port on which it serves: its proxy gets it. Raises ValueError if that line
    is something else.
    """
    first = b""
    for name, chunk in process.output():
        rest = chunk
        if proxy is not None and not proxy.is_attached and name == STDOUT:
            first += chunk
            if b"\n" not in first:
                continue
            line, _, rest = first.partition(b"\n")
            proxy.attach(_port(line))
        if rest:
            yield _RESPONSES[name](rest)
    yield language_pb2.RunPluginResponse(exitcode=process.wait())


def _port(line: bytes) -> int:
    text = line.decode(errors="replace").strip()
    if not text.isdecimal():
        raise ValueError(
            f"policy pack: its first line of output must be the port it serves on (got {text[:80]!r}). Write to "
            "standard error instead."
        )
    return int(text)
