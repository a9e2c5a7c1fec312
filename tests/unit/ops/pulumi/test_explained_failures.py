"""What is said about frequent failures of Pulumi: commands that are typed as they are, in the folder of the pair."""

import os
from pathlib import Path

import pytest

from ops.errors import OpsError
from ops.pipeline.stack_checks import detect_drift
from ops.policy.judging import failure
from ops.pulumi.process import explain_failure
from ops.pulumi.stack import PulumiStack

LOCKED = (
    "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the "
    "lock file with pulumi cancel.\n  file:///locks/stg/1.json: created by ann@laptop (pid 7) at 2026-11-23T08:00:00Z"
)
HELD = "ann@laptop, process 7, since 2026-11-23T08:00:00Z"


@pytest.fixture
def stack(tmp_path: Path) -> PulumiStack:
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    return PulumiStack(folder=tmp_path, name="stg", environment=environment)


def prints(folder: Path, text: str) -> None:
    """Let every `pulumi` fail with these words."""
    (folder / "printed").write_text(f"{text}\n", encoding="utf-8")
    (folder / "pulumi").write_text(f"#!/bin/sh\ncat {folder}/printed >&2; exit 255\n", encoding="utf-8")
    (folder / "pulumi").chmod(0o755)


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        ("error: no stack named 'stg' found", "must exist in the backend. Run `pulumi up -s stg -C {folder}`"),
        ("error: unexpected end of JSON input", "release it with `pulumi cancel --yes -s stg -C {folder}`"),
        (
            LOCKED,
            f"somebody else's update must end first (locked by {HELD}). Wait for it, or if it was killed release its "
            "lock, then run this again: pulumi cancel --yes -s stg -C {folder}.",
        ),
    ],
    ids=["no stack", "a lock without content", "locked"],
)
def test_commands_that_meet_a_failure_work_in_the_folder_of_the_pair(
    stack: PulumiStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, says: str
) -> None:
    away, here = says.format(folder=tmp_path), says.replace(" -C {folder}", "")
    assert away in str(explain_failure("stg", printed, 255, tmp_path))
    prints(tmp_path, printed)
    with pytest.raises(OpsError) as caught:
        stack.outputs()
    assert away in str(caught.value), "of what Pulumi prints all counts, not its lines of errors alone"
    monkeypatch.chdir(tmp_path)
    assert here in str(explain_failure("stg", printed, 255, tmp_path))


def test_a_preview_that_fails_names_commands_in_the_folder_of_the_pair(stack: PulumiStack, tmp_path: Path) -> None:
    prints(tmp_path, "error: no stack named 'stg' found")
    assert f"`pulumi up -s stg -C {tmp_path}`" in failure("stg", stack.preview(within_s=20))
    with pytest.raises(OpsError, match=f"`pulumi up -s stg -C {tmp_path}`"):
        detect_drift(stack)
