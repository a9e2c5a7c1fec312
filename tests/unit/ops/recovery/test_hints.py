"""Commands that a failover prints are typed as they are: they find the mirror that it was for."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ops.connection import PROJECT
from ops.recovery import break_glass, failover_result
from ops.recovery.operation import addressed, of_journal
from tests.support.recovery_pair import Kept, entry

GROUP = {"left": 7, "repeated": 0, "skipped": 0, "withoutPosition": [], "setBack": {}, "translated": True}
DONE: dict[str, Any] = {
    **dict.fromkeys(("newestMirrored", "clientsSecret", "translationUnknown", "recordsLost", "stranded")),
    "mirror": "mm2",
    "stack": "stg",
    "switchedAt": "then",
    "path": "unplanned",
    "activeOnTarget": [],
    "groups": {"orders": {**GROUP, "mayBeSkipped": {"items-0": 3}}},
    "pendingFence": "It is away.",
}


@pytest.mark.parametrize(
    ("folder", "without_pulumi", "options"),
    [
        (PROJECT, False, " --mirror mm2"),
        (PROJECT, True, " --mirror mm2 --break-glass"),
        (Path("/a pair"), True, " --mirror mm2 --break-glass -C '/a pair'"),
    ],
)
def test_they_have_the_options_of_the_command_that_prints_them(
    folder: Path, without_pulumi: bool, options: str
) -> None:
    assert addressed("mm2", folder, without_pulumi=without_pulumi) == options
    console = Console(width=400, record=True, file=StringIO())
    console.print(failover_result.summary(DONE, options))
    shown = console.export_text()
    assert f"`python -m ops status --stack stg{options} --watch`" in shown
    assert f"python -m ops offsets set --stack stg{options} --group orders --topic TOPIC" in shown
    begun = {**entry(finished=None), "options": {"breakGlass": without_pulumi}}
    found = of_journal(Kept(begun), "stg", folder)
    assert found is not None
    assert found.continue_with == f"python -m ops failover --to stg{options}"


def test_pulumi_works_in_the_folder_of_the_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert break_glass.reconcile_command("stg", tmp_path) == f"pulumi up --refresh -s stg -C {tmp_path}"
    monkeypatch.chdir(tmp_path)
    assert break_glass.reconcile_command("stg", tmp_path) == "pulumi up --refresh -s stg"
