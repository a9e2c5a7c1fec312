"""What the Python language host says about a program that fails, and which Python it takes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from google.protobuf import struct_pb2
from pulumi.runtime.proto import language_pb2

from sandbox.toolchain import SERVE
from sandbox.toolchain.language_host import packages
from sandbox.toolchain.language_host.run_program import readable, run_main
from sandbox.toolchain.language_host.service import interpreter_for


def failure(folder: Path, text: str) -> BaseException:
    """The error of a program with that text."""
    (folder / "__main__.py").write_text(text, encoding="utf-8")
    with pytest.raises(BaseException) as caught:  # noqa: PT011  # any error of the program
        run_main(folder)
    return caught.value


def program(folder: Path, virtualenv: str = "") -> language_pb2.ProgramInfo:
    options = struct_pb2.Struct()
    if virtualenv:
        options.update({"virtualenv": virtualenv})
    return language_pb2.ProgramInfo(root_directory=str(folder), options=options)


def test_a_traceback_starts_with_the_programs_first_frame(tmp_path: Path) -> None:
    error = failure(tmp_path, "def build():\n    raise ValueError('bad')\nbuild()\n")
    lines = readable(error, tmp_path).splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{tmp_path}/__main__.py", line 3, in <module>'
    assert lines[-1] == "ValueError: bad"


def test_a_syntax_error_is_reported_without_what_ran_the_program(tmp_path: Path) -> None:
    text = readable(failure(tmp_path, "def x(:\n"), tmp_path)
    assert text.startswith(f'  File "{tmp_path}/__main__.py", line 1\n')
    assert "runpy" not in text


def test_an_error_outside_the_program_keeps_its_whole_traceback(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        print(1 / 0)  # noqa: T201  # never printed
    assert "test_language_host.py" in readable(caught.value, tmp_path)


def test_the_cause_of_an_error_is_reported(tmp_path: Path) -> None:
    error = failure(tmp_path, "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('bad') from e\n")
    assert "ZeroDivisionError" in readable(error, tmp_path)


def test_the_projects_virtual_environment_runs_the_program(tmp_path: Path) -> None:
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    interpreter = interpreter_for(program(tmp_path, "env"))
    assert interpreter.python == str(python)
    assert interpreter.env["VIRTUAL_ENV"] == str(tmp_path / "env")
    assert interpreter.env["PATH"].startswith(f"{tmp_path}/env/bin:")


def test_a_missing_virtual_environment_is_named_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"env must be a virtual environment .* Run `make setup`"):
        interpreter_for(program(tmp_path, "env"))


def test_without_a_virtual_environment_the_python_on_path_runs_the_program(tmp_path: Path) -> None:
    assert interpreter_for(program(tmp_path)).python == "python3"


def test_the_providers_that_installed_packages_ask_for_are_found() -> None:
    command = [sys.executable, "-P", packages.__file__, "plugins"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert {"random", "kubernetes"} <= {plugin["name"] for plugin in found}
    assert all(plugin["version"].startswith("v") for plugin in found)


# Starts a host, prints its process id when it serves, and ends without a word to it.
ENGINE = f"""
import subprocess, sys
host = subprocess.Popen([sys.executable, "-P", "-c", {SERVE!r}], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
host.stdout.readline()
print(host.pid, flush=True)
"""


def test_a_host_ends_after_the_engine_that_started_it() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    done = subprocess.run([sys.executable, "-c", ENGINE], env=environment, capture_output=True, check=True, timeout=60)
    host = int(done.stdout)
    deadline = time.monotonic() + 10
    while _runs(host) and time.monotonic() < deadline:
        time.sleep(0.1)
    if _runs(host):
        os.kill(host, signal.SIGKILL)
        pytest.fail("the host is still there")


def _runs(process: int) -> bool:
    return Path(f"/proc/{process}").exists()
