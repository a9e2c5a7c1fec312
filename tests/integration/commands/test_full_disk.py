"""Disks that are really full: a file system of a few MiB of its own, in a namespace of mounts that ends with a process.

The tests of what a command does then use a limit of their process where there is no such disk.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ops.pulumi.process import explain_failure
from sandbox.state import PROJECT

from ...support import empty_project
from ...support.full_disk import FOLDER, REASON
from ...support.running_sandbox import environment_beside

ENDS_S = 300
FULL = "No space left on device"
BYTES = 4 * 1024 * 1024
COMMANDS = (
    "tests/unit/ops/test_full_disk.py",
    "tests/unit/spark/test_full_disk.py",
    "tests/unit/sandbox/test_state.py",
)
PROGRAM = """
import pulumi
from pulumi_random import RandomString
for number in range(int(pulumi.Config().require("count"))):
    RandomString(f"name-{number}", length=8)
"""
RANDOM_STRING, NAMES = "random:index/randomString:RandomString", ["name-0", "name-1", "name-2"]
SET, UP = "pulumi config set -s stg count", "pulumi up -s stg --yes --skip-preview --non-interactive"
UPS = f"""
pulumi stack init stg; {SET} 2; {UP}
{SET} 3; head -c {2 * BYTES} /dev/zero > state/filler 2>/dev/null || true
{UP} 2> full.txt && exit 1; pulumi stack export -s stg --file full.json
rm state/filler
{UP} 2> locked.txt && exit 1
pulumi cancel -s stg --yes; {UP}; pulumi stack export -s stg --file after.json
"""


def on_a_disk(folder: Path, words: Sequence[str], cwd: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a command for which that folder is a small disk."""
    mounted = f'mount -t tmpfs -o size={BYTES} none "$0" && exec "$@"'
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", mounted, str(folder), *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        check=False,
    )


def test_what_commands_do_on_a_full_disk_they_do_where_none_is_left(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--no-header",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tmp_path}/tests",
    ]
    ended = on_a_disk(tmp_path, [*words, *COMMANDS], PROJECT, **os.environ, **{FOLDER: str(tmp_path)})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert FULL != REASON, "without the disk a limit stands for it"


def test_an_up_whose_state_has_no_room_changes_nothing_and_leaves_a_lock_that_is_cut_off(tmp_path: Path) -> None:
    empty_project.write(tmp_path, PROGRAM)
    ended = on_a_disk(tmp_path / "state", ["sh", "-exc", UPS], tmp_path, **environment_beside(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    said = {name: (tmp_path / f"{name}.txt").read_text(encoding="utf-8") for name in ("full", "locked")}
    assert FULL.lower() in said["full"]
    assert explain_failure("stg", said["locked"], 255, Path()) == (
        "stack stg: each file of its state must be whole (Pulumi says: unexpected end of JSON input). A full disk "
        "leaves such a lock: make room, release it with `pulumi cancel --yes -s stg`, then run this again."
    )
    assert (names(tmp_path / "full.json"), names(tmp_path / "after.json")) == (["name-0", "name-1"], NAMES)


def names(export: Path) -> list[str]:
    """The resources of a stack's state but for the stack itself, by name."""
    resources = json.loads(export.read_text(encoding="utf-8"))["deployment"]["resources"]
    return sorted(each["urn"].rsplit("::")[-1] for each in resources if each["type"] == RANDOM_STRING)
