"""What `python -m sandbox demo` does: in the sandbox, on the kubeconfig's clusters, and removing what it left there.

Owns the question before something is made, and exit codes: 2 if nothing was done because it may not be.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from settings.text import wrap_for_stream

from ..state import SandboxState
from ..toolchain import locate
from . import current
from .in_sandbox import SandboxClusters, refuse_if_running
from .kubernetes import DemoRefusedError
from .process import StageError, Stages
from .scenario import Demo

_FAILED, _REFUSED = 1, 2


def in_sandbox(state: SandboxState, console: Console, *, keep: bool) -> int:
    """Run the demo in a sandbox that is started for it."""
    try:
        refuse_if_running(state)
    except StageError as error:
        return _refused(error)
    return Demo(SandboxClusters(state, locate()), console).run(keep=keep)


def on_current(
    console: Console,
    contexts: Mapping[str, str | None],
    release: Path | None,
    expose: str | None,
    *,
    keep: bool,
    yes: bool,
) -> int:
    """Run the demo on the clusters of the kubeconfig, once somebody has agreed to what it will make there."""
    folder = current.default_folder(os.environ)
    try:
        with current.alone(folder):
            clusters = current.prepare(folder, contexts, release, expose, keep=keep)
            for line in clusters.plan():
                console.print(escape(line), soft_wrap=True)
            if not yes and not _agreed(console):
                console.print("Nothing was done.")
                return 0
            return Demo(clusters, console).run(keep=keep)
    except DemoRefusedError as error:
        return _refused(error)


def remove(console: Console) -> int:
    """Remove what a demo has left in clusters."""
    folder = current.default_folder(os.environ)
    stages = Stages(console, folder / "logs")
    try:
        with current.alone(folder):
            if not current.remove(folder, stages):
                console.print(escape(f"No demo is left (state: {folder})."), soft_wrap=True)
    except DemoRefusedError as error:
        return _refused(error)
    except StageError as error:
        for line in (str(error), *(f"  | {line}" for line in error.tail), f"log: {error.log}"):
            console.print(escape(line), soft_wrap=True)
        return _FAILED
    return 0


def _agreed(console: Console) -> bool:
    if not sys.stdin.isatty():
        raise DemoRefusedError("demo: somebody must agree (got no terminal to ask). Add YES=1.")
    try:
        return console.input("Go on? (y/N) ").strip().lower() in ("y", "yes")
    except EOFError:  # the end of the input
        return False


def _refused(error: Exception) -> int:
    sys.stderr.write(f"{wrap_for_stream(str(error), sys.stderr)}\n")
    return _REFUSED
