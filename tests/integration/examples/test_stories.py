"""Each example's story, played by its own script with a small copy of the example, as its README says."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from examples.__main__ import Example, examples
from ops.connection import from_outputs
from ops.pulumi.stack import stack_outputs
from sandbox.state import PROJECT

from ...support import records
from ...support.projects import DESTROY_S, KEY, TESTER, UP_S
from ...support.running_sandbox import Sandbox

STORY_S = 600
OWN_OFFSETS = "us-europe-own-offsets"
EVERYTHING = {"type": "topic", "names": ["*"], "operations": ["Read", "Write", "Describe", "Delete"]}
REMOVED = 7


@contextmanager
def copied(sandbox: Sandbox, name: str, folder: Path) -> Iterator[Example]:
    """A small copy of an example; its stacks are destroyed at the end, the one with the mirror first."""
    run(sandbox, [sys.executable, "-m", "examples", "copy", name, str(folder), "--small"], UP_S)
    example = Example(folder)
    try:
        yield example
    finally:
        for stack in sorted(example.stacks, key=lambda stack: not example.settings(stack).mirrors):
            run(sandbox, pulumi(folder, "destroy", stack), DESTROY_S)


def run(sandbox: Sandbox, command: list[str], seconds: float) -> str:
    """Run a command as a user of the sandbox, which must succeed, and return all that it printed."""
    # With the whole process group: what a story has in the background ends with it.
    limited = ["timeout", "--kill-after=60", str(seconds), *command]
    result = subprocess.run(
        limited,
        cwd=PROJECT,
        env=sandbox.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{' '.join(command)}: {result.stdout[-4000:]}\n\n{sandbox.tails()}"
    return result.stdout


def pulumi(folder: Path, command: str, stack: str) -> list[str]:
    return ["pulumi", "-C", str(folder), command, "--stack", stack, "--yes", "--skip-preview"]


def play(sandbox: Sandbox, example: Example) -> str:
    return run(sandbox, [f"examples/{example.name}/story.sh", str(example.folder)], STORY_S)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [each.name for each in examples() if each.story.exists() and each.name != OWN_OFFSETS])
def test_the_story_holds(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    with copied(sandbox, name, tmp_path / name) as example:
        play(sandbox, example)


@pytest.mark.nightly
def test_an_application_translates_its_own_positions_where_offsets_differ(sandbox: Sandbox, tmp_path: Path) -> None:
    """The source's topic has lost its first records before the mirror begins, as one in use for some time has."""
    with copied(sandbox, OWN_OFFSETS, tmp_path / OWN_OFFSETS) as example:
        age(sandbox, example)
        said = play(sandbox, example)
    translated = re.findall(r"partition \d+: (\d+) in us is (\d+) in europe", said)
    assert translated
    assert all(int(here) - int(there) == REMOVED for here, there in translated), translated


def age(sandbox: Sandbox, example: Example) -> None:
    """Bring the source up with records in each partition, of which the first ones are gone."""
    file, stack, topic = example.folder / "Pulumi.us.yaml", "us", "my-topic"
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    document["config"][f"{KEY}users"].append({"name": TESTER, "acls": [EVERYTHING], "exported": True})
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    run(sandbox, ["pulumi", "-C", str(example.folder), "stack", "select", stack, "--create"], UP_S)
    run(sandbox, pulumi(example.folder, "up", stack), UP_S)
    outputs = stack_outputs(stack, {**os.environ, **sandbox.environment()}, example.folder)
    client = from_outputs(stack, outputs, TESTER).client_config()
    records.write(client, topic, [f"old-{number}" for number in range(400)])
    admin = AdminClient(client)
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
    removed = admin.delete_records([TopicPartition(topic, number, REMOVED) for number in partitions])
    assert {future.result(30).low_watermark for future in removed.values()} == {REMOVED}
