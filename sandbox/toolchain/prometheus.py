"""Prometheus, Alertmanager and their checkers: the machine's own, or those of Debian's packages.

The packages are unpacked into the cache and not installed: nothing of the machine changes, and no root is needed.
Debian replaces a package's revision by the next, so what was unpacked is written down and only a least version is
demanded. The control plane, the clusters and the mirrors run without.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import installed_tools, pins
from .commands import Commands, ToolchainError
from .paths import Entry, ToolchainPaths, key_of
from .steps import Step

PACKAGES = ("prometheus", "prometheus-alertmanager")
UNPACKED, VERSIONS = "unpacked", "versions"
# Debian's Alertmanager reads its own templates in this folder, wherever the program lies. The unpacked one reads them
# in a folder that its launcher opens for it: a path of the same length.
_SHARED, _OPENED = b"/usr/share/prometheus/alertmanager", b"/proc/self/fd/9"
LAUNCHER = """#!/bin/sh
here="$(dirname "$(readlink -f "$0")")"
exec 9< "$here/unpacked/usr/share/prometheus/alertmanager"
exec "$here/{program}" "$@"
"""
_VERSION = re.compile(r"version (\d+)\.(\d+)")


@dataclass(frozen=True)
class Program:
    """A program: what it is called on different machines, and the least version that will do."""

    names: tuple[str, ...]
    least: tuple[int, int]


PROGRAMS = {
    "prometheus": Program(("prometheus",), pins.PROMETHEUS_MIN),
    "promtool": Program(("promtool",), pins.PROMETHEUS_MIN),
    "alertmanager": Program(("alertmanager", "prometheus-alertmanager"), pins.ALERTMANAGER_MIN),
    "amtool": Program(("amtool",), pins.ALERTMANAGER_MIN),
}


def entry(paths: ToolchainPaths) -> Entry:
    """The cache entry: a link a program, and a file with their versions."""
    return paths.entry(
        "prometheus", key_of(*PACKAGES, LAUNCHER, *(f"{name} {PROGRAMS[name].least}" for name in PROGRAMS))
    )


def program(paths: ToolchainPaths, name: str) -> Path:
    """Path of one of PROGRAMS; it may be absent."""
    return entry(paths).path / name


def is_done(paths: ToolchainPaths) -> bool:
    """Whether all programs are there, also those of the machine that a link points to."""
    return entry(paths).is_complete() and all(program(paths, name).exists() for name in PROGRAMS)


def on_machine(environ: Mapping[str, str]) -> dict[str, Path] | None:
    """All programs on PATH, None unless every one of them is there and recent enough."""
    tools = {}
    for name, wanted in PROGRAMS.items():
        recent = (
            tool
            for known in wanted.names
            if (tool := installed_tools.on_path(known, environ)) and _version(tool, environ) >= wanted.least
        )
        if (tool := next(recent, None)) is None:
            return None
        tools[name] = tool
    return tools


def problem(paths: ToolchainPaths) -> str | None:
    """Why the programs cannot be had on this machine, with what to do about it."""
    missing = [name for name in installed_tools.APT_TOOLS if installed_tools.on_path(name, paths.environ) is None]
    if not missing or on_machine(paths.environ):
        return None
    return (
        f"Prometheus: {_wanted()} must be on PATH of a machine that is no Debian, from whose packages they are taken "
        f"otherwise (no {' and no '.join(missing)}). Install them."
    )


def step(paths: ToolchainPaths) -> Step:
    """Links the machine's own programs, or fetches and unpacks Debian's packages."""
    return Step(
        name="prometheus",
        title="Prometheus and Alertmanager",
        is_done=lambda: is_done(paths),
        run=lambda commands: _install(paths, commands),
        tool="prometheus",
        disk_mib=300,
    )


def _install(paths: ToolchainPaths, commands: Commands) -> None:
    with entry(paths).build() as folder:
        tools = on_machine(paths.environ)
        if tools is None:
            versions = _unpack(folder, commands)
            tools = _unpacked(folder, paths.environ, versions)
            (folder / VERSIONS).write_text(versions, encoding="utf-8")
        for name, tool in tools.items():
            _put(folder, name, tool)


def _put(folder: Path, name: str, tool: Path) -> None:
    """Put a program into the folder under its name, and name the folder nowhere: it is renamed when it is complete."""
    if not tool.is_relative_to(folder):
        (folder / name).symlink_to(tool)
        return
    content = tool.read_bytes()
    if _SHARED not in content:
        (folder / name).symlink_to(tool.relative_to(folder))
        return
    tool.write_bytes(content.replace(_SHARED, _OPENED.ljust(len(_SHARED), b"/")))
    (folder / name).write_text(LAUNCHER.format(program=tool.relative_to(folder)), encoding="utf-8")
    (folder / name).chmod(0o755)


def _unpack(folder: Path, commands: Commands) -> str:
    """Fetch and unpack the packages; returns a line a package with its version."""
    packages = installed_tools.Packages(folder / "apt", commands)
    packages.update()
    versions = []
    for archive in packages.download(PACKAGES, folder):
        described = commands.output(["dpkg-deb", "--show", "--showformat=${Package} ${Version}\n", archive], cwd=folder)
        versions.append(described)
        commands.run(["dpkg-deb", "--extract", archive, folder / UNPACKED], cwd=folder)
        archive.unlink()
    shutil.rmtree(folder / "apt")
    return "".join(versions)


def _unpacked(folder: Path, environ: Mapping[str, str], versions: str) -> dict[str, Path]:
    tools = {}
    for name, wanted in PROGRAMS.items():
        candidates = [folder / UNPACKED / "usr" / "bin" / known for known in wanted.names]
        tool = next((path for path in candidates if path.exists()), None)
        if tool is None or _version(tool, environ) < wanted.least:
            raise ToolchainError(
                f"  {name}: version must be >= {_dotted(wanted.least)} (got from this machine's packages: "
                f"{', '.join(versions.splitlines()) or 'none'}). Put {_wanted()} on PATH and run again."
            )
        tools[name] = tool
    return tools


def _version(tool: Path, environ: Mapping[str, str]) -> tuple[int, ...]:
    match = _VERSION.search(installed_tools.output_of([tool, "--version"], environ))
    return tuple(int(part) for part in match.groups()) if match else ()


def _wanted() -> str:
    return (
        f"prometheus and promtool (>= {_dotted(pins.PROMETHEUS_MIN)}), "
        f"alertmanager and amtool (>= {_dotted(pins.ALERTMANAGER_MIN)})"
    )


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
