"""A disk on which no file can grow beyond a few bytes: a write is cut off in the middle, as on a full one."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

REASON = "File too large"
"""What the kernel calls it; Python ignores the signal that comes with it."""


@contextmanager
def full_disk(bytes_left: int) -> Iterator[None]:
    """Let each file that the block writes end after so many bytes. Output that pytest captures in a file counts too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_left, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
