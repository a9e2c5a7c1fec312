"""`python -m MODULE` in a process of its own that has the modules already: loading them takes a second of a core.

A server, which is started with the first command, loads them once. Each command is a fork of it: with its own working
folder, variables, arguments, output and exit code. Tests of how a command starts, of signals and of its command line
start Python instead.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerContext
from pathlib import Path

from kubernetes.config import kube_config

# What each of the programs loads before its first work, and what commands load later.
PRELOADED = (
    "ops.doctor.command",
    "ops.offsets.command",
    "ops.recovery.failback_command",
    "ops.recovery.failover_command",
    "ops.status.command",
    "ops.topics.command",
    "ops.verify",
    "spark.command",
)
# A process that starts asks all others whether they have ended, and only one may read the exit code.
_LOCK = threading.Lock()


def run_module(
    module: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run the module as `python -m` does, and return what it wrote and its exit code.

    Raises TimeoutExpired after `timeout_s`.
    """
    command = [module, *arguments]
    with tempfile.TemporaryDirectory(prefix="rt-inventory-command-") as written:
        out, err = Path(written) / "out", Path(written) / "err"
        process = _server().Process(target=_run, args=(command, str(folder), dict(environment), str(out), str(err)))
        with _LOCK:
            process.start()
        try:
            if not wait([process.sentinel], timeout_s):
                raise subprocess.TimeoutExpired(command, timeout_s)
        finally:
            with _LOCK:
                process.kill()
                process.join()
        said = [file.read_text("utf-8") if file.exists() else "" for file in (out, err)]
    assert process.exitcode is not None
    return subprocess.CompletedProcess(command, process.exitcode, *said)


@cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return context


def _run(command: list[str], folder: str, environment: Mapping[str, str], out: str, err: str) -> None:
    for number, path in ((1, out), (2, err)):
        written = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(written, number)
        os.close(written)
    os.environ.clear()
    os.environ.update(environment)
    # The only one of these modules that keeps what a variable was when it was loaded.
    kube_config.KUBE_CONFIG_DEFAULT_LOCATION = environment.get("KUBECONFIG", "~/.kube/config")
    os.chdir(folder)
    sys.argv = command
    runpy.run_module(command[0], run_name="__main__", alter_sys=True)
