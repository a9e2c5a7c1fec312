"""Command line of the set-up: `python3 -m sandbox.toolchain ensure [--only STEP]` and `status`.

What the machine must bring is checked before anything starts, and all that is missing is reported at once.
Exit codes: 0 all there, 1 a step failed or something is missing, 2 the machine lacks what a step needs, 130 stopped.
"""

import argparse
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from sandbox.toolchain import all_steps, image_parts, installed_tools, java, maven, optional_tools, pins, sbom
from sandbox.toolchain.commands import ToolchainError
from sandbox.toolchain.java import fetched_java, find_java, home_of, running_java
from sandbox.toolchain.paths import ToolchainPaths, here, locked
from sandbox.toolchain.pins import JAVA_MIN
from sandbox.toolchain.steps import Progress, Step, run_steps, with_needs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python3 -m sandbox.toolchain", description="Install what the sandbox needs.")
    commands = parser.add_subparsers(dest="command", required=True)
    ensure_parser = commands.add_parser("ensure", help="install what is missing")
    ensure_parser.add_argument("--only", nargs="+", metavar="STEP", help="these steps and what they need")
    commands.add_parser("status", help="show what is installed")
    commands.add_parser("java-home", help="print the JAVA_HOME that runs Kafka and Spark")
    commands.add_parser(
        "spark-jars", help="print the folder of Spark's Kafka connector, with which Spark resolves nothing"
    )
    commands.add_parser("sbom", help="print the parts of a release as CycloneDX")
    options = parser.parse_args(arguments)
    paths = here()
    try:
        if options.command == "status":
            return status(paths)
        if options.command == "java-home":
            sys.stdout.write(f"{home_of(running_java(paths) or fetched_java(paths))}\n")
            return 0
        if options.command == "spark-jars":
            sys.stdout.write(f"{maven.spark(paths).path / maven.LIBS}\n")
            return 0
        if options.command == "sbom":
            sys.stdout.write(sbom.document(paths.project))
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
    found_problems = problems(paths, missing)
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


GO_CACHES_MIB = 5_800  # downloaded modules 2.3 GiB, build cache 3.0 GiB; measured
SPARE_MIB = 200


def problems(paths: ToolchainPaths, missing: Sequence[Step]) -> list[str]:
    """Every reason why the missing steps cannot run on this machine, each with what to do about it."""
    found_problems = [*_python(paths, missing), *_tools(paths, missing), *_writable(paths)]
    return found_problems or list(_space(paths, missing))


def _python(paths: ToolchainPaths, missing: Sequence[Step]) -> Iterator[str]:
    if sys.version_info < pins.PYTHON_MIN:
        yield (
            f"Python: version must be >= {_dotted(pins.PYTHON_MIN)} (got {_dotted(sys.version_info[:2])}, "
            f"{sys.executable}). Install it, or name one: make PY=/path/to/python3."
        )
    needs_venv = any(step.name == "venv" for step in missing) and not paths.venv_python.exists()
    if needs_venv and not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        yield (
            f"Python: {sys.executable} must be able to make virtual environments (module venv or ensurepip missing). "
            "Install it; Debian and Ubuntu: apt install python3-venv."
        )


def _tools(paths: ToolchainPaths, missing: Sequence[Step]) -> Iterator[str]:
    needed = {step.tool for step in missing}
    if "go" in needed:
        version = installed_tools.go_version(paths.environ)
        if version is None or version < pins.GO_MIN:
            got = f"got {_dotted(version)}" if version else "not found on PATH"
            yield f"Go: version must be >= {_dotted(pins.GO_MIN)} ({got}). Install it and put its bin folder on PATH."
    if java.find_java(paths.environ, JAVA_MIN) is None:
        yield (
            f"JDK: version must be >= {JAVA_MIN} (none in JAVA_HOME, on PATH or in {java.HOMES[0]}). "
            "Install one, for example openjdk-17-jdk, or set JAVA_HOME."
        )
    if "maven" in needed and installed_tools.on_path("mvn", paths.environ) is None:
        yield "Maven: mvn must be on PATH (not found). Install it, for example the package maven."
    if "chromium" in needed and (problem := optional_tools.chromium_problem()):
        yield problem
    if "prometheus" in needed and (problem := optional_tools.prometheus_problem(paths)):
        yield problem
    if image_parts.NAME in needed and (problem := image_parts.problem(paths)):
        yield problem


def _writable(paths: ToolchainPaths) -> Iterator[str]:
    for folder, what, fix in (
        (paths.cache, "cache folder", "Give yourself the right, or choose another folder with RT_INVENTORY_CACHE"),
        (paths.project, "project folder", "venv/ is made there; clone the project to a folder of your own"),
    ):
        existing = _existing(folder)
        if not existing.is_dir():
            yield f"{what}: {folder} must be a folder (got a file at {existing}). {fix}."
        elif reason := _cannot_write(existing):
            yield f"{what}: {folder} must be writable ({existing}: {reason}). {fix}."


def _cannot_write(folder: Path) -> str | None:
    """Why no file can be made in a folder, found by making one: rights are not the only reason."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return error.strerror


def _space(paths: ToolchainPaths, missing: Sequence[Step]) -> Iterator[str]:
    wanted: dict[Path, int] = {}
    for step in missing:
        folder = paths.project if step.name == "venv" else paths.cache
        wanted[folder] = wanted.get(folder, 0) + step.disk_mib
    if any(step.tool == "go" and step.disk_mib > 1 for step in missing):
        _add_go_caches(paths, wanted)
    disks: dict[int, tuple[Path, int]] = {}
    for folder, mib in wanted.items():
        existing = _existing(folder)
        first, total = disks.get(existing.stat().st_dev, (folder, 0))
        disks[existing.stat().st_dev] = first, total + mib
    for folder, mib in disks.values():
        free = shutil.disk_usage(_existing(folder)).free >> 20
        if free < mib + SPARE_MIB:
            yield (
                f"disk: {folder} must have {_gib(mib + SPARE_MIB)} free (got {_gib(free)}). Make room, or move the "
                "cache with RT_INVENTORY_CACHE (and Go's with GOCACHE and GOMODCACHE)."
            )


def _add_go_caches(paths: ToolchainPaths, wanted: dict[Path, int]) -> None:
    """Go's own caches count with what they still lack; measured only if they might not fit."""
    folders = [
        Path(line)
        for line in installed_tools.output_of(["go", "env", "GOCACHE", "GOMODCACHE"], paths.environ).split("\n")
        if line
    ]
    if not folders or shutil.disk_usage(_existing(folders[0])).free >> 20 > 2 * GO_CACHES_MIB:
        return
    present = sum(_size_mib(folder) for folder in folders)
    wanted[folders[0]] = wanted.get(folders[0], 0) + max(0, GO_CACHES_MIB - present)


def _size_mib(folder: Path) -> int:
    total = 0
    for parent, _folders, files in os.walk(folder):
        for file in files:
            try:
                total += (Path(parent) / file).lstat().st_size
            except OSError:
                continue
    return total >> 20


def _existing(folder: Path) -> Path:
    """The folder itself or its nearest parent that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _gib(mib: int) -> str:
    return f"{mib / 1024:.1f} GiB"


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


if __name__ == "__main__":
    sys.exit(main())
