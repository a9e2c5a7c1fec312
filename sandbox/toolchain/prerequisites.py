"""What the machine must bring, checked before anything starts; all that is missing is reported at once."""

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from sandbox.toolchain import development_tools, image_parts, installed_tools, java, pins, prometheus
from sandbox.toolchain.paths import ToolchainPaths
from sandbox.toolchain.steps import Step

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
    if java.find_java(paths.environ, pins.JAVA_MIN) is None:
        yield (
            f"JDK: version must be >= {pins.JAVA_MIN} (none in JAVA_HOME, on PATH or in {java.HOMES[0]}). "
            "Install one, for example openjdk-17-jdk, or set JAVA_HOME."
        )
    if "maven" in needed and installed_tools.on_path("mvn", paths.environ) is None:
        yield "Maven: mvn must be on PATH (not found). Install it, for example the package maven."
    if "chromium" in needed and (problem := development_tools.chromium_problem()):
        yield problem
    if "prometheus" in needed and (problem := prometheus.problem(paths)):
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
