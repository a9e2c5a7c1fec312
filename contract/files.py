"""Files that take the place of others as a whole, by one process at a time; on a full disk the earlier ones stay."""

import errno
import fcntl
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

PRIVATE = 0o600
LOCK_S, LOOK_S = 10.0, 0.05
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@dataclass(frozen=True, kw_only=True)
class NewFile:
    """A file to write: its parts, in order, and its mode whatever the umask is, or None for what the umask leaves."""

    path: Path
    parts: Iterable[str | bytes]
    mode: int | None = PRIVATE


def replace_files(files: Sequence[NewFile], *, durable: bool = True) -> None:
    """Write all files beside their places, then put each into its place at once.

    Args:
        files: their folders exist. Nothing is left behind, and nothing replaced, unless all can be written.
        durable: wait until the disk has them, which may be when a full one is noticed.

    Raises:
        OSError: which names the file.
    """
    with ExitStack() as written:
        ready = [(written.enter_context(_beside(file, durable)), file.path) for file in files]
        for temporary, path in ready:
            with _naming(path):
                temporary.replace(path)


def replace_text(path: Path, text: str, *, new_mode: int | None = None) -> None:
    """Replace a file, which keeps its mode; a new one gets `new_mode`, in a folder that is made. Raises OSError.

    What a link names is replaced, and not the link. A pipe or a device, such as /dev/stdout, is written to.
    """
    with _naming(path):
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else new_mode
    replace_files([NewFile(path=path, parts=[text], mode=mode)])


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes that do the same out of a folder while the block reads and replaces files in it.

    The kernel opens it again however the process ends. Raises OSError if another does not leave it within LOCK_S.
    """
    with _naming(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        end = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise TimeoutError(
                        errno.ETIMEDOUT, f"another process writes there for {LOCK_S:.0f} s", str(folder)
                    ) from None
            time.sleep(LOOK_S)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _beside(file: NewFile, durable: bool) -> Iterator[Path]:
    """Yield the path of the written file, which is removed at the end if it is still there."""
    temporary = file.path.with_name(f".{file.path.name}.{secrets.token_hex(4)}")
    with _naming(file.path):
        descriptor = os.open(temporary, _NEW, 0o666 if file.mode is None else file.mode)
    try:
        with _naming(file.path), os.fdopen(descriptor, "wb") as opened:
            for part in file.parts:
                opened.write(part.encode() if isinstance(part, str) else part)
            opened.flush()
            if file.mode is not None:
                os.fchmod(descriptor, file.mode)
            if durable:
                os.fsync(descriptor)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let an OSError of the block name the file that was wanted: that of a full disk names none."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
