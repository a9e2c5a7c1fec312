"""Where states are kept: a folder or a prefix of an S3 bucket, one JSON document per mirror.

Owns atomic writes and the agreement between runs that write at once. What a state means is in the package itself.
"""

import contextlib
import fcntl
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from contract.fields import RequestError
from contract.files import NewFile, replace_files
from spark.state import DamagedStateError, State, decode, encode

BYTES_MAX = 256 * 1024 * 1024
WRITE_DEADLINE_S = 30.0
Update = Callable[[State | None], State]


class StoreError(Exception):
    """The store cannot be read or written, or holds something else; one line that holds no secret."""


class ConflictError(Exception):
    """Another run has written, or is writing."""


class Store(ABC):
    """Documents by name. `uri` is fit to be shown."""

    uri: str

    def load(self, name: str) -> State | None:
        """Return the state of this name, None when there is none yet; raises StoreError."""
        data, _ = self._read(name)
        try:
            return None if data is None else decode(data)
        except DamagedStateError as error:
            raise StoreError(f"the state {name} in {self.uri} cannot be used: {error}") from None

    def save(self, name: str, update: Update) -> None:
        """Store what `update` makes of the state stored now; tried again while others write; raises StoreError."""
        attempts = Retrying(
            retry=retry_if_exception_type(ConflictError),
            stop=stop_after_delay(WRITE_DEADLINE_S),
            wait=wait_random_exponential(multiplier=0.05, max=1),
        )
        try:
            for attempt in attempts:
                with attempt:
                    self._update(name, update)
        except RetryError:
            message = f"{self.uri}: other runs kept writing the state {name} for {WRITE_DEADLINE_S:.0f} s"
            raise StoreError(message) from None

    def _update(self, name: str, update: Update) -> None:
        data, version = self._read(name)
        try:
            stored = None if data is None else decode(data)
        except DamagedStateError:
            stored = None
        self._write(name, encode(update(stored)), version)

    @abstractmethod
    def _read(self, name: str) -> tuple[bytes | None, str | None]:
        """Return the document and a mark of its version."""

    @abstractmethod
    def _write(self, name: str, data: bytes, version: str | None) -> None:
        """Replace the document as a whole if its version is still this one; raises ConflictError otherwise."""


def open_store(uri: str, environment: Mapping[str, str]) -> Store:
    """Return the store of a folder's path, `file:///folder` or `s3://bucket/prefix`; raises RequestError.

    Only what the URI itself says is judged: whether the store can be reached is reported when it is read.
    """
    scheme, separator, _ = uri.partition("://")
    if not separator:
        return FolderStore(_folder(uri, Path(uri)))
    try:
        parts = urlsplit(uri)
        login = parts.username or parts.password
    except ValueError:
        raise _wrong("must be a valid URI", scheme) from None
    if login:
        fix = "Give credentials by the AWS environment variables."
        raise RequestError([f"--state: must not hold credentials (got a {scheme} URI with a user). {fix}"])
    if parts.query or parts.fragment:
        raise _wrong("must be a URI without query and fragment", f"a {scheme} URI with one")
    if scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise _wrong("must name a folder of this machine, such as file:///var/lib/verification", uri)
        return FolderStore(_folder(uri, Path(unquote(parts.path))))
    if scheme == "s3":
        if not parts.netloc:
            raise _wrong("must name a bucket, such as s3://bucket/prefix", uri)
        from spark.state.bucket import BucketStore  # Amazon's library, which takes longer than all else of a small run

        return BucketStore(parts.netloc, parts.path.strip("/"), environment)
    raise _wrong("must be a folder's path, a file:// or an s3:// URI", uri)


def _wrong(rule: str, got: str) -> RequestError:
    return RequestError([f"--state: {rule} (got {got}). Without it every run compares everything."])


def _folder(uri: str, folder: Path) -> Path:
    if not uri.strip() or "\0" in uri:
        raise _wrong("must not be empty", repr(uri))
    with contextlib.suppress(OSError):
        present = next((part for part in (folder, *folder.absolute().parents) if part.exists()), folder)
        if present.exists() and not present.is_dir():
            raise _wrong("must be a folder", f"{uri}, where {present} is a file")
    return folder


class FolderStore(Store):
    """A folder that is made at the first save. Files are the owner's alone (0600); a lock orders the writers."""

    def __init__(self, folder: Path) -> None:
        self.uri = str(folder)
        self._folder = folder

    def _update(self, name: str, update: Update) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._locked(name):
                super()._update(name, update)
        except OSError as error:
            raise StoreError(f"{self.uri}: cannot be written: {error.strerror}") from None

    def _read(self, name: str) -> tuple[bytes | None, str | None]:
        path = self._folder / name
        try:
            if path.stat().st_size > BYTES_MAX:
                raise StoreError(f"{path}: must be at most {BYTES_MAX} bytes (got {path.stat().st_size})")
            return path.read_bytes(), None
        except FileNotFoundError:
            return None, None
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror}") from None

    def _write(self, name: str, data: bytes, version: str | None) -> None:
        replace_files([NewFile(path=self._folder / name, parts=[data])])
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Hold the lock of a document; the kernel takes it back when the process ends, however it ends."""
        descriptor = os.open(self._folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConflictError from None
            yield
        finally:
            os.close(descriptor)
