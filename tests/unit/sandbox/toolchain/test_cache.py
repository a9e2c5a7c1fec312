"""Entries are whole or absent, and one set-up at a time writes."""

import threading
import time
from pathlib import Path

import pytest

from sandbox.toolchain.commands import ToolchainError
from sandbox.toolchain.paths import Entry, cache_root, key_of, locked


def silent(_text: str) -> None:
    """Nobody listens."""


def test_the_cache_lies_where_the_variable_says_else_in_the_users_cache_directory() -> None:
    assert cache_root({"RT_INVENTORY_CACHE": "/a"}) == Path("/a")
    assert cache_root({"XDG_CACHE_HOME": "/b"}) == Path("/b/rt-inventory")
    assert cache_root({}) == Path.home() / ".cache" / "rt-inventory"


def test_an_entry_is_there_only_when_its_build_ended_well(tmp_path: Path) -> None:
    entry = Entry(tmp_path, "kafka", "1")

    def fail() -> None:
        with entry.build() as folder:
            (folder / "half").touch()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not entry.is_complete()
    assert not list((tmp_path / "tmp").iterdir())
    with entry.build() as folder:
        (folder / "whole").touch()
        assert not entry.is_complete()
    assert entry.is_complete()
    assert (entry.path / "whole").exists()


def test_another_version_is_another_entry(tmp_path: Path) -> None:
    with Entry(tmp_path, "kafka", "1").build():
        pass
    assert not Entry(tmp_path, "kafka", "2").is_complete()


def test_an_entry_without_its_stamp_is_built_again(tmp_path: Path) -> None:
    entry = Entry(tmp_path, "kafka", "1")
    entry.path.mkdir(parents=True)
    assert not entry.is_complete()
    with entry.build() as folder:
        (folder / "new").touch()
    assert (entry.path / "new").exists()


def test_a_found_tool_counts_only_while_it_is_the_same_file(tmp_path: Path) -> None:
    tool = tmp_path / "kubectl"
    tool.write_text("1", encoding="utf-8")
    entry = Entry(tmp_path / "cache", "kubectl", "1")
    entry.stand_for(tool)
    assert entry.is_complete()
    assert entry.tool("kubectl") == tool
    tool.write_text("another", encoding="utf-8")
    assert not entry.is_complete()
    tool.unlink()
    assert not entry.is_complete()


def test_a_key_changes_with_any_file_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1", encoding="utf-8")
    before = key_of(tmp_path)
    assert key_of(tmp_path) == before
    (tmp_path / "a").write_text("2", encoding="utf-8")
    assert key_of(tmp_path) != before


def test_a_second_set_up_waits_for_the_first(tmp_path: Path) -> None:
    order = []
    cache, project = tmp_path / "cache", tmp_path

    def second() -> None:
        with locked(cache, project, order.append):
            order.append("second")

    with locked(cache, project, silent):
        thread = threading.Thread(target=second)
        thread.start()
        deadline = time.monotonic() + 10
        while not order and time.monotonic() < deadline:
            time.sleep(0.02)
        order.append("first ends")
    thread.join(timeout=10)
    assert order == [f"another set-up works in {project}; waiting for it to end", "first ends", "second"]


def test_waiting_for_another_set_up_has_an_end(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "cache", tmp_path, silent),
        pytest.raises(ToolchainError, match=r"Stop the other set-up"),
        locked(tmp_path / "cache", tmp_path, silent, wait_s=0),
    ):
        pass


def test_what_a_killed_set_up_left_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "cache" / "tmp" / "kafka-1").mkdir(parents=True)
    with locked(tmp_path / "cache", tmp_path, silent):
        assert not (tmp_path / "cache" / "tmp").exists()
