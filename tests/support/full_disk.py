"""A disk on which no file can grow beyond a few bytes: a write is cut off in the middle, as on a full one.

By default a limit of this process stands for it, whose error is another one. Below the folder that `FOLDER` names, on
a file system of its own, it is really full.
"""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
