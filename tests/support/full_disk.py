"""A disk on which no file can grow beyond a few bytes: a write is cut off in the middle, as on a full one.

By default a limit of this process stands for it, whose error is another one. Below the folder that `FOLDER` names, on
a file system of its own, it is really full. `small_disk` mounts such a file system.
"""

import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

FOLDER = "FULL_DISK_FOLDER"
"""Variable with the folder where a small file system of its own is mounted."""
ERROR = errno.ENOSPC if FOLDER in os.environ else errno.EFBIG  # Python ignores the signal that comes with the latter
REASON = os.strerror(ERROR)
"""What the kernel calls it."""


@contextmanager
def full_disk(bytes_left: int) -> Iterator[None]:
    """Let each file that the block writes end after so many bytes, or all that a really full disk has in whole pages.

    Output that pytest captures in a file counts too where it is a limit.
    """
    filled = _filled(Path(os.environ[FOLDER]), bytes_left) if FOLDER in os.environ else _limited(bytes_left)
    with filled:
        yield


@contextmanager
def _limited(bytes_left: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_left, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def _filled(disk: Path, bytes_left: int) -> Iterator[None]:
    filler, page = disk / "filler", os.sysconf("SC_PAGE_SIZE")
    try:
        with filler.open("wb", buffering=0) as file:
            with suppress(OSError):
                while file.write(bytes(page)):
                    pass
            file.truncate(max(0, file.tell() - bytes_left // page * page))
        yield
    finally:
        filler.unlink()


@dataclass(frozen=True)
class SmallDisk:
    """A file system in memory, in a namespace of mounts of its own."""

    folder: Path
    holder: int
    """Process whose namespace it is."""

    def command(self, *words: str, cwd: Path = Path("/")) -> list[str]:
        """The command as one for which the folder is this disk, to be run in another folder."""
        there = ("--target", str(self.holder), f"--wdns={cwd}")
        return ["nsenter", "--preserve-credentials", "--user", "--mount", *there, *words]

    def resize(self, size: int) -> None:
        """Let so many bytes fit on it; what it holds stays."""
        words = self.command("mount", "-o", f"remount,size={size}", str(self.folder))
        subprocess.run(words, check=True, capture_output=True, timeout=20)


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[SmallDisk]:
    """Mount a disk of so many bytes in a folder; it is gone at the end, and whenever this process ends."""
    mount = f'mount -t tmpfs -o size={size} none "$0" && echo mounted && exec cat'
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", mount, str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        with holder.stdin:
            assert holder.stdout.readline() == "mounted\n"
            yield SmallDisk(folder, holder.pid)
