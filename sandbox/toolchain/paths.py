"""Where a set-up works: the project, its environment, and the cache folder with entries that are complete or absent.

An entry is `<root>/<name>/<key>/`, keyed by pinned versions. It is built in `<root>/tmp/` and renamed when it is
complete, so a set-up that is killed leaves nothing half-made; the next one clears what it left. An entry may also stand
for a tool that was found on the machine: it then contains only the stamp that names that file. One lock serves all
set-ups of one cache.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from sandbox.toolchain.commands import ToolchainError

CACHE_VARIABLE = "RT_INVENTORY_CACHE"

STAMP = ".complete"

LOCK_WAIT_S = 3600.0


def cache_root(environ: Mapping[str, str]) -> Path:
    """The cache folder: RT_INVENTORY_CACHE, or `rt-inventory` in the user's cache directory."""
    if chosen := environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser().absolute()
    base = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base).absolute() / "rt-inventory"


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def key_of(*parts: str | Path) -> str:
    """A short hash of texts and of the contents of files and folders."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            digest.update(part.encode() + b"\0")
            continue
        files = sorted(path for path in part.rglob("*") if path.is_file()) if part.is_dir() else [part]
        for file in files:
            digest.update(file.relative_to(part).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


@contextlib.contextmanager
def workspace(root: Path, name: str) -> Iterator[Path]:
    """An empty folder in the cache folder `root`, removed in the end, by the next set-up if this one is killed."""
    folder = root / "tmp" / f"{name}-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Entry:
    """One folder of the cache, complete or absent."""

    root: Path
    name: str
    key: str

    @property
    def path(self) -> Path:
        """Where the entry lies once it is complete."""
        return self.root / self.name / self.key

    def is_complete(self) -> bool:
        """Whether the entry is there and, if it stands for a found tool, that tool is still the same file."""
        stamp = self._stamp()
        if stamp is None:
            return False
        found = stamp.get("found")
        return found is None or (isinstance(found, str) and fingerprint(Path(found)) == stamp.get("fingerprint"))

    def tool(self, name: str) -> Path:
        """The path of a file of the entry, or of the found tool the entry stands for."""
        found = (self._stamp() or {}).get("found")
        return Path(found) if isinstance(found, str) else self.path / name

    def is_found(self) -> bool:
        """Whether the entry stands for a tool that was found on the machine."""
        return "found" in (self._stamp() or {})

    @contextlib.contextmanager
    def build(self) -> Iterator[Path]:
        """A fresh temporary folder that becomes the entry when the block ends without an error."""
        started = time.monotonic()
        with workspace(self.root, self.name) as folder:
            yield folder
            self._publish(folder, {"seconds": round(time.monotonic() - started, 1)})

    def stand_for(self, tool: Path) -> None:
        """Make the entry stand for a tool that was found on the machine."""
        with workspace(self.root, self.name) as folder:
            self._publish(folder, {"found": str(tool), "fingerprint": fingerprint(tool)})

    def _publish(self, folder: Path, stamp: Mapping[str, object]) -> None:
        (folder / STAMP).write_text(json.dumps(stamp), encoding="utf-8")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.path, ignore_errors=True)
        folder.rename(self.path)

    def _stamp(self) -> dict[str, object] | None:
        try:
            stamp = json.loads((self.path / STAMP).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return stamp if isinstance(stamp, dict) else None


def fingerprint(file: Path) -> str | None:
    """Size and time of a file's contents, or None if it is gone; follows links."""
    try:
        state = file.stat()
    except OSError:
        return None
    return f"{state.st_size}-{state.st_mtime_ns}"


PROJECT = Path(__file__).resolve().parents[2]
GO_MODULE = Path(__file__).resolve().parent / "go"
LANGUAGE_HOST = Path(__file__).resolve().parent / "language_host"


@dataclass(frozen=True)
class ToolchainPaths:
    """The project, the cache folder and the environment variables."""

    project: Path
    cache: Path
    environ: Mapping[str, str]

    @property
    def venv_python(self) -> Path:
        """The interpreter of the project's virtual environment."""
        return self.project / "venv" / "bin" / "python"

    @property
    def logs(self) -> Path:
        """The folder of the steps' logs."""
        return self.cache / "logs"

    def workspace(self, name: str) -> AbstractContextManager[Path]:
        """An empty folder on the cache's disk, removed in the end."""
        return workspace(self.cache, name)

    def entry(self, name: str, key: str) -> Entry:
        """An entry of the cache."""
        return Entry(self.cache, name, key)


def here() -> ToolchainPaths:
    """This project, with the process's environment."""
    return ToolchainPaths(PROJECT, cache_root(os.environ), dict(os.environ))


@contextlib.contextmanager
def locked(root: Path, project: Path, report: Callable[[str], None], wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
    """Hold the only set-up of this cache and of this project (whose venv it writes), waiting for another to end."""
    root.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        for folder in sorted({root, project}):
            descriptor = os.open(folder, os.O_RDONLY)
            held.callback(os.close, descriptor)
            _wait_for(descriptor, folder, report, wait_s)
        shutil.rmtree(root / "tmp", ignore_errors=True)
        yield


def _wait_for(descriptor: int, folder: Path, report: Callable[[str], None], wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    reported = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if not reported:
                report(f"another set-up works in {folder}; waiting for it to end")
                reported = True
            if time.monotonic() > deadline:
                message = f"set-up: {folder} must be free within {wait_s:.0f} s. Stop the other set-up and run again."
                raise ToolchainError(message) from None
            time.sleep(0.2)
        else:
            return
