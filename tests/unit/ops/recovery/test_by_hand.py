"""States that no command leaves: every refusal there names the section that says what to do by hand."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import guards
from ops.errors import OpsError
from ops.recovery import failback_command, failover_command
from ops.recovery.failover import Options
from ops.recovery.journal import SOURCE_LOST_AGAIN, TARGET_LOST
from settings.files import check, load
from tests.support import readme_commands
from tests.support.recovery_pair import Kept, entry, known, observe
from tests.support.recovery_project import FAILED_OVER, Project

ROOT = readme_commands.README.parent
UNPLANNED = {"path": "unplanned", "exact": False}


def failback(*steps: str) -> Kept:
    done: dict[str, Any] = {step: {} for step in steps}
    return Kept({**entry("failback", finished=None, stop={"ends": {}}, **done), "options": {"to": "dev"}})


def refused_back(journal: Kept, **seen: Any) -> str:
    with pytest.raises(OpsError) as caught:
        failback_command.require_possible(observe(**seen), journal)
    return str(caught.value)


@pytest.mark.parametrize("place", [TARGET_LOST, SOURCE_LOST_AGAIN])
def test_the_section_is_there(place: str) -> None:
    page, _, anchor = place.partition("#")
    headings = re.findall(r"^## (.+)$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    assert anchor in [heading.lower().replace(" ", "-") for heading in headings]


def test_both_commands_name_it_where_the_active_target_is_lost(project: Project) -> None:
    active = known(active="target", state="stopped")
    assert f"If it is lost: {TARGET_LOST}." in refused_back(Kept(FAILED_OVER), of=active, target="is down.")
    assert TARGET_LOST not in refused_back(Kept(FAILED_OVER), of=active, source="is down.")
    for target in (None, "is down."):
        with pytest.raises(OpsError) as caught:
            failover_command.require_possible(
                observe(active, target=target),
                Options(path="unplanned", exact=False, drain_s=1.0, report_dir=project.folder),
                Kept(FAILED_OVER),
            )
        assert (TARGET_LOST in str(caught.value)) == (target is not None)


@pytest.mark.parametrize(("steps", "names"), [((), False), (("switching",), True)])
def test_both_commands_name_it_where_the_source_is_lost_while_a_failback_switches(
    steps: tuple[str, ...], names: bool
) -> None:
    for active in ("target", "source"):  # an `up` that failed, or one that was killed after it
        message = refused_back(failback(*steps), of=known(active=active), source="is down.")
        assert (f"is down. If it is lost again: {SOURCE_LOST_AGAIN}." in message) == names
    with pytest.raises(OpsError, match="must be finished as it began") as caught:
        failback(*steps).begin("failover", UNPLANNED, gives_up=True)
    assert (SOURCE_LOST_AGAIN in str(caught.value)) == names


def test_the_settings_of_each_up_are_accepted(tmp_path: Path) -> None:
    names = ("Pulumi.dev.yaml", "Pulumi.stg.yaml")
    config = {name: yaml.safe_load((ROOT / name).read_text("utf-8")) for name in names}
    (mirror,) = config[names[1]]["config"]["rt-inventory:mirrors"]
    stopped = {"state": "stopped", "acceptSwitch": True}
    before: dict[str, Any] = {"mm2": {"active": "target"}, "mm2-failback": {"failback": "prepared"}}
    ups = ({"active": "source", **stopped}, {"active": "target", **stopped}, {"active": "source", "acceptSwitch": True})
    for settings in ups:
        mirror.pop("state", None)
        mirror.update(settings)
        for name, text in config.items():
            (tmp_path / name).write_text(yaml.safe_dump(text), "utf-8")
        check(tmp_path / names[1])
        declared = load(tmp_path / names[1]).mirrors
        assert guards.unrequested_switches(declared, before, {}) == guards.rereplicating_changes(declared, before) == []
        before = {"mm2": {"active": declared[0].active}}
        assert declared[0].is_verified == (settings is ups[-1])


def test_a_failover_that_is_not_finished_names_no_such_section() -> None:
    journal = Kept(entry(finished=None, stop={}, switching={}))
    with pytest.raises(OpsError, match="must be finished as it began") as caught:
        journal.begin("failback", {"to": "dev"})
    assert "by-hand" not in str(caught.value)
