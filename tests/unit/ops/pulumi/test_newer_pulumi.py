"""Pulumi 3.259 in place of 3.218: its diagnostics, its event log and its exit codes, played by a made-up `pulumi`.

That release ends with a code for each kind of failure, writes the result of a run into its summary, and reports a
plugin that it stopped itself as an error.
"""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ops.cli import app
from ops.errors import OpsError
from ops.pulumi.process import explain_exit, explain_failure
from ops.pulumi.stack import stack_outputs

from ....support import event_logs as recorded
from ....support.promotion_project import Stand, document, made, promote
from ....support.pulumi_program import PulumiProgram, on_path
from ..test_pipeline_drift import result as refreshed

TOO_FEW = "topic items: replicas must be >= 3 (got 1)."
WARNING = "Detected that pulumi-resource-kubernetes exited prematurely. Pulumi succeeded all the same."
# What 3.259 prints for a code; 3.218 ends with 255 and has other words for some.
SAYS = {
    3: "error: getting user: invalid access token",
    6: "error: no stack named 'stg' found",
    7: "error: no changes were expected for refresh but changes were proposed",
    8: "error: update cancelled",
}


class NewerPulumi:
    """The program with the words of the newer release."""

    def __init__(self, program: PulumiProgram) -> None:
        self._program = program

    def plays(self, log: str | None, exit_code: int = 0) -> None:
        """Let the next run write this event log, if it comes so far, and end with this code and its words."""
        self._program.answers(log=log, exit_code=exit_code, stderr=SAYS.get(exit_code, ""))


@pytest.fixture
def pulumi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NewerPulumi:
    return NewerPulumi(on_path(tmp_path / "bin", monkeypatch, columns=300))


def policy() -> Result:
    return CliRunner().invoke(app, ["policy", "--stack", "stg"])


def drift(tmp_path: Path) -> Result:
    words = ["pipeline", "drift", "--stack", "stg", "--documents", str(tmp_path / "documents")]
    return CliRunner().invoke(app, words)


def test_a_policy_run_that_succeeds_passes_and_warns_of_the_plugin(pulumi: NewerPulumi) -> None:
    pulumi.plays(recorded.newer_log())
    found = policy()
    assert (found.exit_code, found.stdout) == (0, "nothing found: stack stg, 0 resources, pack rt-inventory 0.1.0\n")
    assert f"warning: stack stg: {WARNING}" in found.stderr
    assert "hush-4711" not in found.output


def test_violations_are_judged_beside_the_plugin(pulumi: NewerPulumi) -> None:
    pulumi.plays(recorded.newer_log(recorded.violation("topic-replication", TOO_FEW), result="failed"), 1)
    found = policy()
    assert found.exit_code == 1
    assert TOO_FEW in found.stdout


@pytest.mark.parametrize(("result", "exit_code"), [("failed", 1), ("failed", 0), ("canceled", 0)])
def test_a_run_that_does_not_succeed_is_no_judgement_and_names_the_plugin(
    pulumi: NewerPulumi, result: str, exit_code: int
) -> None:
    pulumi.plays(recorded.newer_log(result=result), exit_code)
    found = policy()
    assert found.exit_code == 2
    assert "Detected that pulumi-resource-kubernetes exited prematurely." in found.stderr
    assert "hush-4711" not in found.output


def test_another_error_of_a_run_that_succeeds_is_none_the_less_an_error(pulumi: NewerPulumi) -> None:
    pulumi.plays(recorded.newer_log(recorded.diagnostic("topics: x")))
    assert policy().exit_code == 2


def test_drift_is_known_by_its_exit_code(pulumi: NewerPulumi, tmp_path: Path) -> None:
    pulumi.plays(recorded.newer_log(refreshed("update", "items", replicas=(3, 1))), 7)
    found = drift(tmp_path)
    assert (found.exit_code, found.stdout) == (1, "update KafkaTopic items: spec.replicas\n")


def test_no_drift_stays_none_beside_the_plugin(pulumi: NewerPulumi, tmp_path: Path) -> None:
    pulumi.plays(recorded.newer_log(refreshed("same", "items")))
    found = drift(tmp_path)
    assert (found.exit_code, found.stdout) == (0, "no drift: stack stg\n")
    assert WARNING in found.stderr


@pytest.mark.parametrize(
    ("exit_code", "message"),
    [
        (1, "(exit 1: it failed)"),
        (2, "(exit 2: it does not accept its options or its configuration)"),
        (3, "stack stg: a Pulumi backend must be chosen"),
        (6, "stack stg: must exist in the backend"),
        (8, "stack stg: Pulumi must run to its end (exit 8: it was cancelled"),
        (255, "(exit 255: it failed)"),
    ],
)
def test_an_exit_code_says_what_it_means(pulumi: NewerPulumi, tmp_path: Path, exit_code: int, message: str) -> None:
    pulumi.plays(None, exit_code)
    for found in (policy(), drift(tmp_path)):
        assert found.exit_code == 2
        assert message in found.stderr
    with pytest.raises(OpsError) as caught:
        stack_outputs("stg", os.environ, tmp_path)
    assert message.strip("()") in str(caught.value)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (3, "a Pulumi backend must be chosen"),
        (6, "must exist in the backend"),
        (8, "Pulumi must run to its end (exit 8: it was cancelled"),
    ],
)
def test_the_code_decides_in_whatever_words_pulumi_explains_it(code: int, message: str) -> None:
    assert message in str(explain_failure("stg", "error: in the words of another release", code, Path()))


@pytest.mark.parametrize(
    ("code", "reported"),
    [(7, "exit 7: there are changes where none were expected"), (77, "exit 77"), (-9, "exit -9: ended by SIGKILL")],
)
def test_codes_are_explained(code: int, reported: str) -> None:
    assert explain_exit(code) == reported


def test_a_promotion_is_planned_and_gated_beside_the_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand: Stand = made(tmp_path, monkeypatch)
    changed = recorded.step("update", recorded.topic("audit"), name="audit")
    stand.pulumi.changes("preview", log=recorded.newer_log())
    stand.pulumi.changes("gate", log=recorded.newer_log(changed))
    found = document(promote(stand, "--from", "dev", "--to", "stg", "--yes", "--json"), 0)
    assert found["result"] == "promoted"
    assert json.dumps(found["preview"]).count("audit") == 1
