"""Debian's packages without installing them: apt-get fetches them into a folder, from which they are unpacked.

Nothing of the machine changes, and no root is needed.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from .commands import CommandFailedError, Commands

BY = ("apt-get", "dpkg-deb")
THIS_MACHINE = Path("/var/lib/dpkg/status")
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
