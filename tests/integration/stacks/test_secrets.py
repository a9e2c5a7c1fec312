"""After all that was done no generated password stands in a log, a command line, a report or the plain state."""

from pathlib import Path

import pytest

from ...support.ops_commands import ops
from ...support.running_sandbox import Pair, Sandbox


@pytest.fixture(scope="module")
def passwords(sandbox: Sandbox, pair: Pair) -> list[bytes]:
    """Every generated password, after each kind of client has used one."""
    ops(sandbox, "produce", "-s", "dev", "-n", "10")
    ops(sandbox, "consume", "-s", "dev", "-g", "test-secrets", "--until-end")
    ops(sandbox, "verify", "-s", "stg", "--report-dir", str(sandbox.state.reports / "secrets"))
    found = [value.encode() for outputs in (pair.dev, pair.stg) for value in outputs["userPasswords"].values()]
    assert found
    assert all(len(value) >= 12 for value in found)
    return found


def holding(paths: list[Path], passwords: list[bytes]) -> list[str]:
    """The files in which a password stands."""
    found = []
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError:
            continue
        if any(password in content for password in passwords):
            found.append(str(path))
    return found


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_no_log_report_or_state_holds_a_password(sandbox: Sandbox, passwords: list[bytes]) -> None:
    state = sandbox.state
    searched = {folder: files_below(folder) for folder in (state.logs, state.reports, state.pulumi, state.processes)}
    assert all(searched.values()), "a folder without files proves nothing"
    assert not holding([path for files in searched.values() for path in files], passwords)


def test_no_command_line_on_this_machine_holds_a_password(sandbox: Sandbox, passwords: list[bytes]) -> None:
    assert not holding(list(Path("/proc").glob("[0-9]*/cmdline")), passwords)


def test_a_password_in_a_file_would_be_found(passwords: list[bytes], tmp_path: Path) -> None:
    leak = tmp_path / "leak.log"
    leak.write_bytes(b"sasl.password=" + passwords[0] + b"\n")
    assert holding([leak], passwords) == [str(leak)]
