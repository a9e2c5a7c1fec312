"""A made-up `pulumi` that keeps every call and answers as configured: event logs, output, exit codes, no end."""

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

# The answer to a call is the one for its first two words, for a preview with a policy pack, for its first word, or for
# any call. `config set-all` also writes the stack file as Pulumi does but for the comments.
PROGRAM = """\
#!{python} -IS
import json, os, signal, sys, time
here, words = os.path.dirname(os.path.abspath(__file__)), sys.argv[1:]
option = lambda name: words[words.index(name) + 1]
def read(path):
    with open(path) as file:
        return file.read()
def write(path, text, mode="w"):
    with open(path, mode) as file:
        file.write(text)
answers = json.loads(read(here + "/answers.json"))
names = [" ".join(words[:2]), *(["gate"] if "--policy-pack" in words else []), words[0], "any"]
answer = next(answers[name] for name in names if name in answers)
for number in answer["ignores"]:
    signal.signal(number, signal.SIG_IGN)
if "--event-log" in words and answer["log"] is not None:
    write(option("--event-log"), answer["log"])
if words[:2] == ["config", "set-all"]:
    sys.path.append({packages!r})
    import yaml
    file = option("--config-file")
    document = yaml.safe_load(read(file))
    for key, entry in json.loads(option("--json")).items():
        document["config"][key] = json.loads(entry["value"])
    head = [line for line in read(file).splitlines(True) if line.startswith("#")]
    write(file, "".join(head) + yaml.safe_dump(document, sort_keys=False))
call = dict(words=words, folder=os.getcwd(), debug=os.environ.get("PULUMI_DEBUG_COMMANDS"), pid=os.getpid())
write(here + "/calls", json.dumps(call) + chr(10), "a")
print(answer["stdout"])
print(answer["stderr"], file=sys.stderr)
while answer["endless"]:
    time.sleep(0.05)
sys.exit(answer["exit_code"])
"""
ANSWER: dict[str, Any] = {
    "log": None,
    "stdout": "",
    "stderr": "",
    "exit_code": 0,
    "endless": False,
    "ignores": [],
}


class PulumiProgram:
    """The program in a folder of its own; what it is to answer, and what it was called with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        packages = str(Path(yaml.__file__).parents[1])
        _write_executable(folder, PROGRAM.format(python=sys.executable, packages=packages))
        self._answers: dict[str, dict[str, Any]] = {}
        self.answers()

    def answers(self, call: str = "any", **answer: Any) -> None:
        """Answer the calls that begin with these words so from now on; what is not given is as in ANSWER."""
        assert answer.keys() <= ANSWER.keys(), answer
        self._answers[call] = {**ANSWER, **answer}
        (self.folder / "answers.json").write_text(json.dumps(self._answers), encoding="utf-8")

    def changes(self, call: str, **answer: Any) -> None:
        """Change parts of the answer to a call and leave the others."""
        self.answers(call, **{**self.answer(call), **answer})

    def answer(self, call: str) -> dict[str, Any]:
        """The present answer to a call."""
        return self._answers.get(call, ANSWER)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Each call's `words`, its working `folder`, PULUMI_DEBUG_COMMANDS as `debug`, and its `pid`."""
        file = self.folder / "calls"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []

    @property
    def words(self) -> list[str]:
        """The words of the last call."""
        words: list[str] = self.calls[-1]["words"]
        return words

    @property
    def log_folder(self) -> Path:
        """The folder of the last call's event log."""
        return Path(self.words[self.words.index("--event-log") + 1]).parent

    @property
    def runs(self) -> bool:
        """Whether the last call has not ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.calls[-1]["pid"], 0)
            return True
        return False


def on_path(folder: Path, monkeypatch: pytest.MonkeyPatch, columns: int = 200) -> PulumiProgram:
    """The program, first on PATH in an environment without another one, on a terminal of that width."""
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("COLUMNS", str(columns))
    return PulumiProgram(folder)


def shell_program(folder: Path, lines: str) -> dict[str, str]:
    """Write a `pulumi` of these shell lines; returns an environment that finds it."""
    _write_executable(folder, f"#!/bin/sh\n{lines}\n")
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def shell_updates(folder: Path, up: str = "exit 0", config: str = "exit 0") -> Path:
    """Write a `pulumi` that notes its words and the switch in `calls`, then does what the shell lines say."""
    note = f'echo "${{RT_INVENTORY_SWITCH:-nothing}}|$(pwd)|$*" >> {folder}/calls'
    shell_program(folder, f"{note}\ncase $1 in\nup) {up} ;;\nconfig) {config} ;;\nesac")
    return folder / "calls"


def _write_executable(folder: Path, text: str) -> None:
    program = folder / "pulumi"
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
