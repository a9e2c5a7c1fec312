"""Command line of the set-up: `python3 -m sandbox.toolchain ensure [--only STEP]` and `status`.

Exit codes: 0 all there, 1 a step failed or something is missing, 2 the machine lacks what a step needs, 130 stopped.
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence

from . import prerequisites
from .commands import ToolchainError
from .java import fetched_java, find_java, home_of, running_java
from .locate import all_steps
from .paths import ToolchainPaths, here, locked
from .pins import JAVA_MIN
from .steps import Progress, Step, run_steps, with_needs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python3 -m sandbox.toolchain", description="Install what the sandbox needs.")
    commands = parser.add_subparsers(dest="command", required=True)
    ensure_parser = commands.add_parser("ensure", help="install what is missing")
    ensure_parser.add_argument("--only", nargs="+", metavar="STEP", help="these steps and what they need")
    commands.add_parser("status", help="show what is installed")
    commands.add_parser("java-home", help="print the JAVA_HOME that runs Kafka and Spark")
    options = parser.parse_args(arguments)
    paths = here()
    try:
        if options.command == "status":
            return status(paths)
        if options.command == "java-home":
            sys.stdout.write(f"{home_of(running_java(paths) or fetched_java(paths))}\n")
            return 0
        return ensure(paths, options.only)
    except ToolchainError as error:
        sys.stderr.write(f"{error}\n")
    except OSError as error:
        sys.stderr.write(f"set-up: {error}. Choose another cache folder with RT_INVENTORY_CACHE, or make room.\n")
    return 1


def ensure(paths: ToolchainPaths, only: Sequence[str] | None = None) -> int:
    """Install what is missing, and nothing if all is there; returns the exit code."""
    steps = chosen(paths, only)
    missing = [step for step in steps if not step.is_done()]
    if not missing:
        return 0
    found_problems = prerequisites.problems(paths, missing)
    if found_problems:
        sys.stderr.write("set-up: this machine lacks something\n" + "".join(f"  {text}\n" for text in found_problems))
        return 2
    progress = Progress()
    started = time.monotonic()
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with locked(paths.cache, paths.project, progress.report):
            missing = [step for step in missing if not step.is_done()]  # another set-up may have been faster
            if not missing:
                return 0
            progress.report(f"set-up: {len(missing)} of {len(steps)} steps into {paths.cache}")
            run_steps(steps, paths.logs, _environment(paths), progress)
    except KeyboardInterrupt:
        progress.report("set-up: stopped. What was finished is kept; run the same command again to go on.")
        return 130
    finally:
        signal.signal(signal.SIGTERM, previous)
    progress.report(f"set-up: complete after {time.monotonic() - started:.0f} s")
    return 0


def status(paths: ToolchainPaths) -> int:
    """Print for each result of the steps whether it is there; exit code 1 if one that the set-up makes is missing."""
    steps = all_steps(paths)
    for step in steps:
        absent = "later" if step.is_deferred else "MISSING"
        for part in step.results:
            sys.stdout.write(f"{'installed' if part.is_done() else absent:9}  {part.name:28}  {part.title}\n")
    sys.stdout.write(f"cache: {paths.cache}\n")
    return 0 if all(step.is_done() or step.is_deferred for step in steps) else 1


def chosen(paths: ToolchainPaths, only: Sequence[str] | None) -> list[Step]:
    """The steps to take: all but the deferred ones, or the named ones with what they need."""
    steps = all_steps(paths)
    return with_needs(steps, only) if only else [step for step in steps if not step.is_deferred]


def _environment(paths: ToolchainPaths) -> dict[str, str]:
    """The environment of the steps: Maven finds a Java that is neither on PATH nor in JAVA_HOME."""
    java = find_java(paths.environ, JAVA_MIN)
    if java is None or "JAVA_HOME" in paths.environ:
        return dict(paths.environ)
    return {**paths.environ, "JAVA_HOME": str(home_of(java))}


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
