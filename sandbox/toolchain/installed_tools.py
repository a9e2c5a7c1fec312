"""What the machine offers: tools of the right version, and Debian's packages, unpacked beside it and not installed."""

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from . import pins
from .commands import CommandFailedError, Commands

VERSION_WAIT_S = 30


def output_of(argv: list[str | Path], environ: Mapping[str, str]) -> str:
    """The standard output of a command, empty if it fails."""
    try:
        result = subprocess.run(
            argv,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=VERSION_WAIT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout if result.returncode == 0 else ""


def on_path(name: str, environ: Mapping[str, str]) -> Path | None:
    """The program of that name on PATH."""
    path = shutil.which(name, path=environ.get("PATH", ""))
    return Path(path).absolute() if path else None


def pulumis(environ: Mapping[str, str], cache: Path) -> Iterator[Path]:
    """The Pulumi CLIs on PATH that have their own Python language host beside them; runs none of them.

    Those in the cache folder are this project's own, which a shell of the sandbox has on its PATH too.
    """
    for folder in environ.get("PATH", "").split(os.pathsep):
        tool = shutil.which("pulumi", path=folder) if folder else None
        if tool is None or cache in Path(tool).resolve().parents or cache in Path(tool).absolute().parents:
            continue
        if (Path(tool).resolve().parent / "pulumi-language-python").exists():
            yield Path(tool).absolute()


def is_supported(pulumi: Path, environ: Mapping[str, str]) -> bool:
    """Whether a Pulumi CLI is of the same major release as PULUMI_MIN and not before it."""
    version = output_of([pulumi, "version"], {**environ, "PULUMI_SKIP_UPDATE_CHECK": "true"})
    match = re.match(r"v?(\d+)\.(\d+)\.", version.strip())
    if match is None:
        return False
    numbers = int(match[1]), int(match[2])
    return numbers[0] == pins.PULUMI_MIN[0] and numbers >= pins.PULUMI_MIN


def kubectl(environ: Mapping[str, str]) -> Path | None:
    """The kubectl on PATH, if it is recent enough for the API server."""
    tool = on_path("kubectl", environ)
    if tool is None:
        return None
    try:
        version = json.loads(output_of([tool, "version", "--client", "--output=json"], environ))["clientVersion"]
        numbers = int(version["major"]), int(re.sub(r"\D", "", version["minor"]))
    except (ValueError, KeyError, TypeError):
        return None
    return tool if numbers >= pins.KUBECTL_MIN else None


def provider(environ: Mapping[str, str], name: str, version: str) -> Path | None:
    """A Pulumi provider of exactly that version among the user's installed plugins."""
    home = Path(environ.get("PULUMI_HOME") or Path(environ.get("HOME", "/")) / ".pulumi")
    binary = home / "plugins" / f"resource-{name}-v{version}" / f"pulumi-resource-{name}"
    return binary if binary.is_file() else None


def go_version(environ: Mapping[str, str]) -> tuple[int, int] | None:
    """Major and minor version of the Go on PATH, or None without one."""
    match = re.search(r"go(\d+)\.(\d+)", output_of(["go", "version"], environ))
    return (int(match.group(1)), int(match.group(2))) if match else None


APT_TOOLS = ("apt-get", "dpkg-deb")
INSTALLED_PACKAGES = Path("/var/lib/dpkg/status")
# A folder that is a link (`bin` of today's Debian) stays one.
_UNPACK = """
root="$1"; shift
for archive do
  dpkg-deb --fsys-tarfile "$archive" > "$root.tar"
  tar --extract --keep-directory-symlink --file "$root.tar" --directory "$root"
done
rm -f "$root.tar"
"""


class Packages:
    """Fetches packages into a folder of its own, with package lists of its own: the machine's may be missing or old."""

    def __init__(self, folder: Path, commands: Commands) -> None:
        self._folder, self._commands = folder, commands
        for name in ("state/lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True)
        options = [f"Dir::State={folder / 'state'}", f"Dir::Cache={folder / 'cache'}", "APT::Sandbox::User=root"]
        self._apt = ["apt-get", "--quiet=2", *(part for option in options for part in ("-o", option))]

    def update(self) -> None:
        """Fetch the package lists. A source that does not answer may be another one than the packages'."""
        with contextlib.suppress(CommandFailedError):
            self._commands.run([*self._apt, "update"], cwd=self._folder)

    def download(self, names: Sequence[str], into: Path) -> list[Path]:
        """Fetch these packages and no others; return the archives, by name."""
        self._commands.run([*self._apt, "download", *names], cwd=into)
        return sorted(into.glob("*.deb"))

    def download_with_dependencies(self, names: Sequence[str], into: Path, status: Path | None) -> list[Path]:
        """Fetch packages with what they depend on, without recommendations; return the archives, by name.

        `status` is dpkg's list of what is there already and is not fetched; without it all is fetched.
        """
        (into / "archives" / "partial").mkdir(parents=True)
        if status is None:
            status = into / "status"
            status.touch()
        options = [f"Dir::State::status={status}", f"Dir::Cache::archives={into / 'archives'}", "Debug::NoLocking=1"]
        apt = [*self._apt, *(part for option in options for part in ("-o", option))]
        self._commands.run([*apt, "install", "--download-only", "--no-install-recommends", "--yes", *names], cwd=into)
        return sorted((into / "archives").glob("*.deb"))


def unpack(archives: Sequence[Path], root: Path, commands: Commands) -> None:
    """Unpack packages into a folder, which may have links in place of folders."""
    root.mkdir(parents=True, exist_ok=True)
    commands.run(["sh", "-euc", _UNPACK, "unpack", root, *archives], cwd=root)
