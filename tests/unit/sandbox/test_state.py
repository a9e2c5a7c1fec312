"""The state folder: modes, what `clear` leaves, and folders that are somebody else's."""

import os
from pathlib import Path

import pytest

from sandbox.state import PROJECT, SandboxState, StateError, default_state, write_private
from tests.support.full_disk import REASON, full_disk


def test_folders_and_files_belong_to_the_user_alone(state: SandboxState) -> None:
    state.write_run_info({"api_port": 1})
    write_private(state.passphrase, "secret")
    for path in [state.path, *state.path.rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_the_environment_moves_the_folder_and_its_default_lies_in_the_project(tmp_path: Path) -> None:
    assert default_state({"RT_INVENTORY_SANDBOX": str(tmp_path / "x")}).path == tmp_path / "x"
    assert default_state({"RT_INVENTORY_SANDBOX": ""}).path == PROJECT / ".sandbox"


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    state = SandboxState(tmp_path)
    with pytest.raises(StateError, match="must be empty or a sandbox's"):
        state.create()
    state.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_clear_leaves_logs_and_reports(state: SandboxState) -> None:
    state.log("plane").write_text("a log")
    (state.reports / "report.html").write_text("a report")
    for path in (state.kubeconfig, state.passphrase, state.pulumi / "state"):
        path.write_text("x")
    state.clear()
    left = {str(path.relative_to(state.path)) for path in state.path.rglob("*") if path.is_file()}
    assert left == {"logs/plane.log", "reports/report.html", "sandbox.json"}
    state.clear(logs=True)
    assert not state.logs.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_one_clear_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StateError, match="must be writable"):
        SandboxState(tmp_path / "sandbox").create()


def test_a_file_in_the_way_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="must be writable"):
        SandboxState(tmp_path / "file" / "sandbox").create()


def test_a_private_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("old and public")
    file.chmod(0o644)
    write_private(file, "new")
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]
    file.chmod(0o644)
    assert write_private(file, "new"), "others could read it"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_private_file_without_room_is_named_and_the_one_before_stays(tmp_path: Path) -> None:
    file = tmp_path / "f"
    write_private(file, "old")
    with full_disk(8), pytest.raises(OSError, match=f"{REASON}: '{file}'"):
        write_private(file, "new and longer")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("f", "old")]


def test_a_private_file_is_its_owners_alone_from_the_start(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "secret"
    assert write_private(file, "x")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert not write_private(file, "x")
