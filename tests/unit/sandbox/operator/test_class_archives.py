"""Class archives: recorded by the first process of a kind, used by all later ones, and never half of one."""

import fcntl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.operator import java_processes
from sandbox.operator.java_processes import BROKER, WORKER, ClassArchives


@pytest.fixture
def later() -> list[Callable[[], None]]:
    """What was put off."""
    return []


@pytest.fixture
def archives(tmp_path: Path, later: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch) -> ClassArchives:
    """Archives whose JVM only writes the file that it was asked for."""

    def run(command: list[str], **_: object) -> None:
        options = dict(word.partition("=")[::2] for word in command if "=" in word)
        Path(options["-XX:SharedArchiveFile"]).write_text(Path(options["-XX:SharedClassListFile"]).read_text())

    monkeypatch.setattr(java_processes.subprocess, "run", run)
    return ClassArchives(
        Path("/usr/bin/env"), tmp_path / "archives", tmp_path / "lists", lambda _, act: later.append(act)
    )


def recorded(options: list[str], classes: str) -> None:
    """Let the process that records have written this much."""
    (option,) = options
    name, _, file = option.partition("=")
    assert name == "-XX:DumpLoadedClassList"
    Path(file).write_text(classes)


def pass_time(later: list[Callable[[], None]]) -> None:
    """Do what was put off, and what that puts off."""
    while later:
        later.pop(0)()


def test_the_first_process_of_a_kind_records_and_a_later_one_starts_from_the_archive(
    archives: ClassArchives, later: list[Callable[[], None]]
) -> None:
    recorded(archives.options(BROKER, "libs/*"), "java/lang/Object\nkafka/Kafka\nkafka/Ka")
    assert archives.options(BROKER, "libs/*") == []  # one list is enough
    pass_time(later)
    option, quiet = archives.options(BROKER, "libs/*")
    assert quiet == "-Xlog:cds=off"
    assert option.startswith("-XX:SharedArchiveFile=")
    # The last line of a list that is being written may be half of one.
    assert Path(option.partition("=")[2]).read_text() == "java/lang/Object\nkafka/Kafka\n"
    assert archives.options("kafka.tools.StorageTool", "libs/*") == [option, quiet]


def test_an_archive_waits_for_a_process_that_still_loads_classes(
    archives: ClassArchives, later: list[Callable[[], None]]
) -> None:
    (option,) = archives.options(BROKER, "libs/*")
    loaded = "java/lang/Object\n"
    for _ in range(5):
        recorded([option], loaded)
        later.pop(0)()
        assert not archives.folder.exists()
        loaded *= 2
    pass_time(later)
    assert archives.options(BROKER, "libs/*")[0].startswith("-XX:SharedArchiveFile=")


def test_each_kind_and_each_class_path_has_its_own(archives: ClassArchives) -> None:
    lists = [archives.options(main, path) for main in (BROKER, WORKER) for path in ("old/*", "new/*")]
    assert len({option for options in lists for option in options}) == 4


def test_a_tool_records_nothing(archives: ClassArchives, later: list[Callable[[], None]]) -> None:
    assert archives.options("kafka.tools.StorageTool", "libs/*") == []
    assert archives.options("org.example.Other", "libs/*") == []
    assert later == []


@pytest.mark.parametrize("error", [OSError("full"), subprocess.CalledProcessError(1, "java")])
def test_an_archive_that_cannot_be_written_is_tried_again_and_leaves_nothing(
    archives: ClassArchives,
    later: list[Callable[[], None]],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    def run(command: list[str], **_: object) -> None:
        part = next(word for word in command if word.startswith("-XX:SharedArchiveFile")).partition("=")[2]
        Path(part).write_text("half")
        raise error

    monkeypatch.setattr(java_processes.subprocess, "run", run)
    recorded(archives.options(BROKER, "libs/*"), "java/lang/Object\n")
    pass_time(later)
    assert [file.suffix for file in archives.folder.iterdir()] == [".lock"]
    assert archives.options(BROKER, "libs/*")[0].startswith("-XX:DumpLoadedClassList=")


def test_only_one_sandbox_at_a_time_writes_an_archive(archives: ClassArchives, later: list[Callable[[], None]]) -> None:
    recorded(archives.options(BROKER, "libs/*"), "java/lang/Object\n")
    archives.folder.mkdir()
    lock = archives._archive(BROKER, "libs/*").with_suffix(".lock")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        pass_time(later)
    assert list(archives.folder.iterdir()) == [lock]
