"""A pair that `ops new` writes: the commands that it prints, as one types them, up to the preview of the source."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from sandbox.state import PROJECT
from tests.support.stack_files import SALT, as_pulumi_writes
from tests.support.waiting import at_most

from ...support.projects import PREVIEW_S, output_of
from ...support.running_sandbox import Sandbox, environment_beside

STACKS = ("east", "west")
TOPICS = ",".join(["orders", "payments.v1", *(f"a-longer-name-of-topic-{number}" for number in range(6))])
ANSWERS = ["--yes", "--stacks", "east,west", "--contexts", "dev,stg", "--expose", "ingress", "--topics", TOPICS]
HOSTS = ["--host", "east=kafka.east.example.com", "--host", "west=kafka.west.example.com"]
STOP = "policy"  # the command after the preview; from there on it is what the tests of other pairs do


def test_pulumi_leaves_what_is_written_for_event_streams_as_it_is(tmp_path: Path) -> None:
    new(tmp_path / "shop", "--platform", "event-streams-11.0.0", "--accept-license")
    for stack in STACKS:
        file = tmp_path / "shop" / f"Pulumi.{stack}.yaml"
        assert as_pulumi_writes(file) == file.read_text(encoding="utf-8")


def test_the_printed_commands_lead_to_a_preview(sandbox: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    (tmp_path / "state").mkdir()
    lines: list[str] = new(folder)["next"]
    written = {stack: (folder / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8") for stack in STACKS}
    environment = environment_beside(tmp_path) | {"KUBECONFIG": str(sandbox.state.kubeconfig)}
    before = next(number for number, line in enumerate(lines) if STOP in shlex.split(line))
    said: dict[str, str] = {}
    for line in lines[:before]:
        result = subprocess.run(
            shlex.split(line),
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PREVIEW_S,
            check=False,
        )
        assert result.returncode == 0, f"{line}\n{output_of(result)}"
        said[line] = result.stdout
    for stack, text in written.items():
        assert SALT.sub("", (folder / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8")) == text
    (preview,) = (text for line, text in said.items() if "preview" in line)
    assert len(re.findall(r" \+ +\S+:Kafka \S+ create", preview)) == 1, preview
    assert len(re.findall(r" \+ +\S+:KafkaTopic \S+ create", preview)) == len(TOPICS.split(",")), preview


def new(folder: Path, *more: str) -> dict[str, list[str]]:
    """Write the pair and return what the command prints."""
    command = [sys.executable, "-m", "ops", "new", str(folder), *ANSWERS, *HOSTS, *more, "--json"]
    result = subprocess.run(
        command, cwd=PROJECT, env=dict(os.environ), capture_output=True, text=True, timeout=at_most(60), check=False
    )
    assert result.returncode == 0, output_of(result)
    document: dict[str, list[str]] = json.loads(result.stdout)
    return document
