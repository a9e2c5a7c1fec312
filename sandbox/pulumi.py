"""The Pulumi engine against the sandbox: its own state, its own passphrase, and a work tree that stays as it is.

Pulumi writes a stack's encryption salt into the stack file. A sandbox is thrown away, its salt with it, so the salt is
kept in the state folder and Pulumi gets a copy of the stack file with the salt added.

`python -m sandbox.pulumi` is what `pulumi` is in the sandbox's shell. It is started hundreds of times, so this module
imports no more than it needs.
"""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from sandbox.monitoring import environment as monitoring_environment

from .processes import MARK
from .state import ENVIRONMENT_VARIABLE, PROJECT, SandboxState, StateError, default_state, write_private
from .toolchain import ToolchainError, Tools, locate

# Commands that read a stack file and run the program or the providers.
_WITH_CONFIG_FILE = {"up", "update", "preview", "pre", "destroy", "down", "refresh", "import", "watch"}
_SALT = re.compile(r"^encryptionsalt:.*\n?", re.MULTILINE)
_CLOUD_KEY = re.compile(r"^(?:secretsprovider|encryptedkey):.*\n?", re.MULTILINE)
_PROJECT_NAME = re.compile(r"^name:\s*[\"']?([^\s\"'#]+)", re.MULTILINE)
_SECURE = re.compile(r"^\s+(?:- )?[\"']?secure[\"']?:", re.MULTILINE)
_FAILED = 255
_INIT_S = 60.0
_INTERRUPT_S = 30.0
_SHIM = """\
#!/bin/sh
# Pulumi of this sandbox: the same engine, with the stack's salt kept in the state folder and not in the work tree.
{variable}={state} PYTHONPATH={project} exec {python} -m sandbox.pulumi "$@"
"""


class PulumiError(Exception):
    """A Pulumi command failed or lasted too long; the message has its last lines, without secrets."""


class Pulumi:
    """Runs Pulumi commands of one project in one sandbox: of this one, or of an example, whose stacks are its own."""

    def __init__(self, state: SandboxState, tools: Tools, project: Path = PROJECT) -> None:
        self._state = state
        self._tools = tools
        self._project = project

    def environment(self) -> dict[str, str]:
        """Variables to add to an environment, so that pulumi, kubectl and ops use this sandbox. Holds no secret."""
        shims = self._state.path / "bin"
        return {
            "KUBECONFIG": str(self._state.kubeconfig),
            "PULUMI_BACKEND_URL": f"file://{self._state.pulumi}",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self._state.passphrase),
            "PULUMI_HOME": str(self._tools.pulumi_home),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PATH": _path([shims, self._tools.bin]),
            # For projects of users that name no virtual environment; this one and its examples do.
            "PULUMI_PYTHON_CMD": sys.executable,
            **self._tools.spark_environment,
            **monitoring_environment(self._state),
            ENVIRONMENT_VARIABLE: str(self._state.path),
        }

    def run(
        self,
        stack: str,
        *args: str,
        config_file: Path | None = None,
        check: bool = True,
        timeout_s: float,
        stream: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a stack, for example `run("dev", "up", "--yes", timeout_s=300)`, and return its output.

        `config_file` is used instead of the project's stack file. `stream` also copies the output to stderr as it
        comes. Raises PulumiError if it exits with another code than 0 (unless `check` is off) or lasts longer than
        `timeout_s`: then it is interrupted, which lets it write its state and release its lock.
        """
        command = [str(self._tools.pulumi), *args, "--stack", stack, "--non-interactive", "--color", "never"]
        if args[0] in _WITH_CONFIG_FILE:
            command += ["--config-file", str(self.stack_file(stack, config_file))]
        result = self._finish(command, self._project, timeout_s, stream=stream)
        if check and result.returncode != 0:
            raise PulumiError(
                f"pulumi {args[0]} --stack {stack}: must exit with 0 (got {result.returncode}). Its last lines:\n"
                f"{_last_lines(result, with_stdout='--show-secrets' not in args)}"
            )
        return result

    def outputs(self, stack: str, show_secrets: bool = False) -> dict[str, Any]:
        """The stack's outputs; secret ones read `[secret]` unless `show_secrets`."""
        extra = ["--show-secrets"] if show_secrets else []
        result = self.run(stack, "stack", "output", "--json", *extra, timeout_s=60)
        outputs: dict[str, Any] = json.loads(result.stdout)
        return outputs

    def ensure_stack(self, stack: str) -> None:
        """Create the stack in the sandbox's backend if it is not there."""
        if self._exists(stack):
            return
        folder = self._own_folder("init")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(folder / "Pulumi.yaml", (self._project / "Pulumi.yaml").read_text(encoding="utf-8"))
        if (salt := self._first_salt()) is not None:
            write_private(folder / f"Pulumi.{stack}.yaml", salt)
        command = [str(self._tools.pulumi), "stack", "init", stack, "--no-select", "--non-interactive"]
        result = self._finish(command, folder, _INIT_S, stream=False)
        if result.returncode != 0 and not self._exists(stack):
            raise PulumiError(f"pulumi stack init {stack}: must exit with 0. Its last lines:\n{_last_lines(result)}")

    def stack_file(self, stack: str, source: Path | None = None) -> Path:
        """A fresh copy of the stack file with this sandbox's salt instead of a cloud's key, for `--config-file`.

        A file with values that were encrypted with its own salt keeps that one.
        """
        self.ensure_stack(stack)
        source = source or self._project / f"Pulumi.{stack}.yaml"
        if not source.exists():
            raise PulumiError(
                f"stack {stack}: its file must exist (got none at {source}). Create it, or check the name."
            )
        text = source.read_text(encoding="utf-8")
        if not (_SALT.search(text) and _SECURE.search(text)):
            salt = _SALT.search((self._own_folder("init") / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8"))
            text = (
                _SALT.sub("", _CLOUD_KEY.sub("", text)).rstrip("\n")
                + "\n"
                + (salt[0].rstrip("\n") + "\n" if salt else "")
            )
        copy = self._own_folder("config") / f"Pulumi.{stack}.yaml"
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(copy, text)
        return copy

    def pass_through(self, args: Sequence[str], folder: Path) -> int:
        """Run Pulumi as a user typed it in `folder`, on the same terminal, and return its exit code.

        Only the stack file is replaced by its copy; whatever concerns another project is passed on as it is.
        """
        project = _project_of(_started_in(args, folder))
        if project is not None and self._project / "examples" in project.parents:
            example = Pulumi(self._state, self._tools, project)
            return example.pass_through(_without_folder(args), project)
        own = project in (None, self._project) and not {"-C", "--cwd", "--config-file"} & set(args)
        environment = self._whole_environment()
        command = [str(self._tools.pulumi), *args]
        folder = self._project if own else folder
        if own and args[:2] == ["stack", "init"] and len(args) > 2 and not args[2].startswith("-"):
            self.ensure_stack(args[2])
            command = [str(self._tools.pulumi), "stack", "select", args[2]]
        elif own and args[:2] == ["stack", "select"] and {"-c", "--create"} & set(args):
            rest = [word for word in args[2:] if word not in ("-c", "--create")]
            name = named_stack(args) or next((word for word in rest if not word.startswith("-")), None)
            if name is not None:
                self.ensure_stack(name)
                command = [str(self._tools.pulumi), "stack", "select", *rest]
        elif own and args and args[0] in _WITH_CONFIG_FILE and not {"-h", "--help"} & set(args):
            stack = named_stack(args) or environment.get("PULUMI_STACK") or self._selected(environment)
            command[2:2] = ["--config-file", str(self.stack_file(stack))]
        elif own and args[:2] in (["stack", "rm"], ["stack", "remove"]) and "--preserve-config" not in args:
            command.append("--preserve-config")  # the stack file belongs to the project, not to this sandbox
        child = subprocess.Popen(command, cwd=folder, env=environment)
        return _exit_code(_wait_through_interrupts(child))

    def write_shim(self) -> None:
        """Write `bin/pulumi`, which makes a plain `pulumi up` in a user's shell leave the work tree clean."""
        shim = self._state.path / "bin" / "pulumi"
        shim.parent.mkdir(mode=0o700, exist_ok=True)
        words = {"state": self._state.path, "project": PROJECT, "python": sys.executable}
        quoted = {name: shlex.quote(str(value)) for name, value in words.items()}
        write_private(shim, _SHIM.format(variable=ENVIRONMENT_VARIABLE, **quoted))
        shim.chmod(0o700)

    def _exists(self, stack: str) -> bool:
        init = self._own_folder("init") / f"Pulumi.{stack}.yaml"
        stacks = self._state.pulumi / ".pulumi" / "stacks" / self._name
        return init.exists() and any(stacks.glob(f"{stack}.json*"))

    def _first_salt(self) -> str | None:
        """The salt of a stack that is there. Pulumi takes 0.16 s of a core for the key of each other salt.

        A stack that reads another one's outputs then needs one key. All have the sandbox's passphrase anyway.
        """
        for file in sorted((self._state.pulumi / "init").glob("*/Pulumi.*.yaml")):
            if found := _SALT.search(file.read_text(encoding="utf-8")):
                return found[0]
        return None

    @property
    def _name(self) -> str:
        """Name of the project; two projects may have stacks of the same name."""
        found = _PROJECT_NAME.search((self._project / "Pulumi.yaml").read_text(encoding="utf-8"))
        if found is None:
            raise PulumiError(f"project {self._project}: Pulumi.yaml must have a name (got none). Add it.")
        return found[1]

    def _own_folder(self, purpose: str) -> Path:
        return self._state.pulumi / purpose / self._name

    def _selected(self, environment: Mapping[str, str]) -> str:
        command = [str(self._tools.pulumi), "stack", "--show-name", "--non-interactive"]
        result = subprocess.run(
            command, cwd=self._project, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        if result.returncode != 0:
            raise PulumiError("pulumi: a stack must be named (got none). Add --stack dev or --stack stg.")
        return result.stdout.strip()

    def _whole_environment(self) -> dict[str, str]:
        environment = {**os.environ, **self.environment(), MARK: f"{self._state.path}:pulumi"}
        # These would win over the passphrase file, the file backend and the program's own environment.
        for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_ACCESS_TOKEN", "CLASSPATH"):
            environment.pop(name, None)
        return environment

    def _finish(
        self, command: list[str], folder: Path, timeout_s: float, *, stream: bool
    ) -> subprocess.CompletedProcess[str]:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=self._whole_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        stdout, stderr = _Reader(child.stdout, show=stream), _Reader(child.stderr, show=stream)
        try:
            child.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            self._interrupt(child)
            result = subprocess.CompletedProcess(command, child.returncode, stdout.text(), stderr.text())
            words = shlex.join(command[1:3])
            shown = _last_lines(result, with_stdout="--show-secrets" not in command)
            raise PulumiError(
                f"pulumi {words}: must end within {timeout_s:.0f} s (got no end). Its last lines:\n{shown}"
            ) from error
        except BaseException:
            self._interrupt(child)
            raise
        return subprocess.CompletedProcess(command, _exit_code(child.returncode), stdout.text(), stderr.text())

    def _interrupt(self, child: "subprocess.Popen[str]") -> None:
        """Ask Pulumi to stop, as Ctrl-C would; a second time it stops at once; then kill it with its plugins."""
        for number, wait_s in ((signal.SIGINT, _INTERRUPT_S), (signal.SIGINT, 10.0), (signal.SIGKILL, 10.0)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            try:
                child.wait(timeout=wait_s)
                return
            except subprocess.TimeoutExpired:
                continue


class _Reader:
    """Collects one output of a process in a thread of its own."""

    def __init__(self, pipe: IO[str] | None, *, show: bool) -> None:
        self._pipe = pipe
        self._show = show
        self._lines: list[str] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self._pipe or ():
            self._lines.append(line)
            if self._show:
                sys.stderr.write(line)
                sys.stderr.flush()

    def text(self) -> str:
        """Everything read; a plugin that outlives its parent and keeps the pipe open is not waited for."""
        self._thread.join(timeout=10)
        return "".join(self._lines)


def named_stack(args: Sequence[str]) -> str | None:
    """The stack that a Pulumi command line names with -s or --stack."""
    for position, word in enumerate(args):
        if word in ("-s", "--stack") and position + 1 < len(args):
            return args[position + 1]
        if word.startswith("--stack="):
            return word.removeprefix("--stack=")
    return None


def _started_in(args: Sequence[str], folder: Path) -> Path:
    """The folder that -C or --cwd names, else the present one."""
    for position, word in enumerate(args):
        if word in ("-C", "--cwd") and position + 1 < len(args):
            return (folder / args[position + 1]).resolve()
        if word.startswith("--cwd="):
            return (folder / word.removeprefix("--cwd=")).resolve()
    return folder


def _without_folder(args: Sequence[str]) -> list[str]:
    """The command line without -C and --cwd."""
    kept = [word for word in args if not word.startswith("--cwd=")]
    for option in ("-C", "--cwd"):
        while option in kept:
            at = kept.index(option)
            del kept[at : at + 2]
    return kept


def _exit_code(code: int) -> int:
    """A command's exit code in this project's terms: this engine fails with 255, later ones with 1."""
    return 1 if code == _FAILED else code


def _path(first: list[Path]) -> str:
    """PATH with these folders first, each once, so that it does not grow when one shell calls another."""
    added = [str(folder) for folder in first]
    rest = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder not in added]
    return os.pathsep.join([*added, *rest])


def _project_of(folder: Path) -> Path | None:
    for candidate in (folder, *folder.parents):
        if (candidate / "Pulumi.yaml").exists():
            return candidate
    return None


def _wait_through_interrupts(child: "subprocess.Popen[bytes]") -> int:
    """Ctrl-C reaches the child by itself, which then ends in its own time."""
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue


def _last_lines(result: subprocess.CompletedProcess[str], count: int = 40, *, with_stdout: bool = True) -> str:
    text = (result.stdout if with_stdout else "") + result.stderr
    return "\n".join(text.splitlines()[-count:])


USAGE = (StateError, ToolchainError)


def run_as_typed(arguments: Sequence[str]) -> int:
    """Run Pulumi as typed and return its exit code; raises StateError if the sandbox is not up."""
    state = default_state(os.environ)
    if not state.passphrase.exists():
        raise StateError(
            f"sandbox: must be up (got nothing running in {state.path}). Start it: `venv/bin/python -m sandbox up`."
        )
    return Pulumi(state, locate()).pass_through(arguments, Path.cwd())


def main(arguments: Sequence[str]) -> int:
    """The exit code of Pulumi; 1 if it could not be run, 2 without a sandbox or its tools, 143 terminated."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run_as_typed(arguments)
    except (PulumiError, OSError, *USAGE) as error:
        sys.stderr.write(f"{error}\n")
        return 2 if isinstance(error, USAGE) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
