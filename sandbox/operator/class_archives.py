"""Archives of classes (JDK class data sharing) from which brokers and workers start with half the CPU time.

The first process of a kind writes down which classes it loads. Once it loads no more, a JVM at the lowest priority puts
them into an archive, and every later process of the kind maps it. An archive belongs to one JVM and one class path; a
JVM that finds that it does not fit starts without it. Everything works without archives, and they are made once for
each cache folder.

Owns the folder of the archives. Does not own the processes that start from them.
"""

import fcntl
import hashlib
import logging
import os
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

logger = logging.getLogger(__name__)

# Main class → the main class whose archive it starts from; their class paths are equal.
BROKER = "kafka.Kafka"
WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"
_ARCHIVE_OF = {BROKER: BROKER, WORKER: WORKER, "kafka.tools.StorageTool": BROKER}
LOOK_S = 10.0  # on a busy machine a process may still load its classes after minutes
STILL_LOADS = 1.01  # times the list, in that time: a process that has started loads a class now and then
WRITTEN_WITHIN_S = 180.0
LOWEST_PRIORITY = ("nice", "-n", "19")


def _start_timer(delay_s: float, act: Callable[[], None]) -> None:
    timer = threading.Timer(delay_s, act)
    timer.daemon = True
    timer.start()


@dataclass
class ClassArchives:
    """The archives in `folder`, made by the Java binary `java`. Lists of classes are kept in `lists` until then."""

    java: Path
    folder: Path
    lists: Path
    later: Callable[[float, Callable[[], None]], None] = _start_timer
    _recording: set[Path] = field(default_factory=set)

    def options(self, main: str, class_path: str) -> list[str]:
        """JVM options for a start of the class `main`: its archive, or the list to record, or nothing."""
        if main not in _ARCHIVE_OF:
            return []
        archive = self._archive(_ARCHIVE_OF[main], class_path)
        if archive.exists():
            return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off"]
        if main not in _ARCHIVE_OF.values() or archive in self._recording:
            return []
        self._recording.add(archive)
        classes = self.lists / f"{archive.stem}.classes"
        classes.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write_later(archive, class_path, classes, 0)
        return [f"-XX:DumpLoadedClassList={classes}"]

    def _write_later(self, archive: Path, class_path: str, classes: Path, before: int) -> None:
        """Write the archive once the list of classes has hardly grown since it had `before` bytes."""

        def look() -> None:
            size = classes.stat().st_size if classes.exists() else 0
            if size > before * STILL_LOADS:
                self._write_later(archive, class_path, classes, size)
            else:
                self._write(archive, class_path, classes)

        self.later(LOOK_S, look)

    def _archive(self, main: str, class_path: str) -> Path:
        state = self.java.resolve().stat() if self.java.exists() else None
        made_for = f"{self.java.resolve()} {state and (state.st_size, state.st_mtime_ns)} {class_path}"
        digest = hashlib.sha256(made_for.encode()).hexdigest()[:12]
        return self.folder / f"{main.rpartition('.')[2]}-{digest}.jsa"

    def _write(self, archive: Path, class_path: str, classes: Path) -> None:
        """Write the archive, unless another sandbox does so now. If that fails, later starts take longer."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with archive.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not archive.exists():
                    self._run(archive, class_path, classes)
        except (OSError, subprocess.SubprocessError) as error:
            logger.warning("%s: not written (%s); the processes start without it", archive, error)
        finally:
            self._recording.discard(archive)

    def _run(self, archive: Path, class_path: str, classes: Path) -> None:
        # The process that records goes on writing: a copy without the last line, which may be half of one.
        complete = classes.with_suffix(".complete")
        complete.write_text(classes.read_text(encoding="utf-8").rpartition("\n")[0] + "\n", encoding="utf-8")
        part = archive.with_suffix(f".{os.getpid()}")
        command = [
            *LOWEST_PRIORITY,
            str(self.java),
            "-Xshare:dump",
            "-XX:+UseSerialGC",
            "-Xlog:cds=error",
            f"-XX:SharedClassListFile={complete}",
            f"-XX:SharedArchiveFile={part}",
            "-cp",
            class_path,
        ]
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=WRITTEN_WITHIN_S, check=True)
            part.rename(archive)
            logger.info("%s: written", archive)
        finally:
            part.unlink(missing_ok=True)
