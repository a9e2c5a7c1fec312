"""Which Python runs a program, and what is installed for it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import json_format  # type: ignore[import-untyped]  # protobuf ships no types
from pulumi.runtime.proto import language_pb2

PACKAGES = Path(__file__).with_name("packages.py")


@dataclass(frozen=True)
class Interpreter:
    """A Python and the environment to start it with."""

    python: str
    env: dict[str, str]

    def ask(self, *arguments: str) -> str:
        """Standard output of this Python run with the arguments; raises OSError or CalledProcessError."""
        command = [self.python, *arguments]
        return subprocess.run(command, env=self.env, stdout=subprocess.PIPE, text=True, check=True).stdout

    def packages(self, what: str) -> list[dict[str, str]]:
        """Installed packages: all (`dependencies`), or those that bring a Pulumi provider (`plugins`)."""
        found: list[dict[str, str]] = json.loads(self.ask("-P", str(PACKAGES), what))
        return found


def virtualenv(info: language_pb2.ProgramInfo) -> Path | None:
    """The virtual environment that the program's project file names; a relative one starts at the project."""
    options: dict[str, object] = json_format.MessageToDict(info.options)
    name = options.get("virtualenv")
    return Path(info.root_directory) / name if isinstance(name, str) and name else None


def interpreter_for(info: language_pb2.ProgramInfo, environ: Mapping[str, str] = os.environ) -> Interpreter:
    """The virtual environment's Python, else the one on PATH; raises FileNotFoundError naming a missing one.

    `environ` are the variables to start it with, to which those of the virtual environment are added.
    """
    folder = virtualenv(info)
    if folder is None:
        return Interpreter(environ.get("PULUMI_PYTHON_CMD", "python3"), dict(environ))
    python = folder / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(
            f"virtualenv: {folder} must be a virtual environment (bin/python not found). Run `make setup`."
        )
    env = {name: value for name, value in environ.items() if name != "PYTHONHOME"}
    env["VIRTUAL_ENV"] = str(folder)
    env["PATH"] = os.pathsep.join([str(folder / "bin"), env.get("PATH", "")])
    return Interpreter(str(python), env)


def own_interpreter() -> Interpreter:
    """The Python that runs this host."""
    return Interpreter(sys.executable, dict(os.environ))
