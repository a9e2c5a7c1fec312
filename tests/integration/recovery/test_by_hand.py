"""The procedures of docs/by-hand.md, for states that no command leaves, from their first step to their last.

The tests come in the order of a site's life: the active target is lost and built again; then the source is lost while
a failback switches.
"""

from collections.abc import Iterator, Sequence

import pytest
import yaml

from tests.support.waiting import at_most, wait_until

from ...support import records
from ...support.killed_commands import Interruption, change_of
from ...support.projects import KEY, Document, unchanged
from ...support.recovery_site import FAILBACK, FAILOVER, GROUPS, MIRROR, SOURCE, TARGET, UNPLANNED, Site, disturbed_site
from ...support.running_sandbox import Sandbox

pytestmark = pytest.mark.nightly

SWITCH_KILLED = Interruption(step="switch", at=change_of("kafkausers/"), passed=True)
JOURNAL = "mm2-failover"
UP_S, BACK_S, COPIED_S = at_most(400), 120, 90


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The pair, with records and groups that have read some of them."""
    with disturbed_site(sandbox, tmp_path_factory.mktemp("by-hand")) as found:
        found.project.up(SOURCE)
        assert found.write(SOURCE, 60)
        found.project.up(TARGET)
        for number, group in enumerate(GROUPS):
            found.read_on(SOURCE, group, 3 * number + 1)
        yield found


def stack_file(site: Site, stack: str) -> Document:
    """The settings of a stack as its file has them now, to be edited before the next `up`."""
    for name in (SOURCE, TARGET):
        text = (site.project.folder / f"Pulumi.{name}.yaml").read_text(encoding="utf-8")
        site.project.config[name] = yaml.safe_load(text)["config"]
    return site.project.config[stack]


def mirror_of(site: Site) -> Document:
    """The entry of the mirror in the target's stack file, to be edited."""
    found: Document = next(one for one in stack_file(site, TARGET)[f"{KEY}mirrors"] if one["name"] == MIRROR)
    return found


def require_refused(site: Site, *commands: Sequence[str]) -> None:
    """Assert that no command goes on here, and that each says why."""
    for words in commands:
        code, document, said = site.killer.finish(*words)
        assert (code, bool(document.get("error"))) == (2, True), f"{words}: {document} {said}"


def require_applications_at(site: Site, stack: str) -> None:
    """Assert that the Secret of the applications has the address of this side."""
    found = site.project.sandbox.secret(site.project.namespace(TARGET), "mm2-clients")
    assert found["bootstrapServers"] == site.project.outputs(stack)["cluster"]["bootstrapServers"]


def test_an_active_target_that_is_lost_is_given_up_and_built_again(site: Site) -> None:
    project = site.project
    done, said = site.run(*FAILOVER)
    assert done["active"] == "target", said
    left_at_source = site.offsets(SOURCE)
    survives = set(site.acknowledged)
    assert site.write(TARGET, 10)
    site.read_on(TARGET, GROUPS[0], 5)

    with site.without_brokers(TARGET):
        require_refused(site, FAILBACK, FAILOVER)
        assert f"{KEY}fence" in stack_file(site, SOURCE)
        project.up(SOURCE)
        assert not site.write(SOURCE), "it is fenced until the file has no fence"
        stack_file(site, SOURCE).pop(f"{KEY}fence")
        project.up(SOURCE)
        site.acknowledged = set(survives)  # what was written at the target is lost
        assert site.held(SOURCE) == survives
        assert site.offsets(SOURCE) == left_at_source
        assert not site.is_fenced
        assert site.write(SOURCE, 20)

        project.destroy(TARGET)
    entry = mirror_of(site)
    entry |= {"active": "source", "state": "running", "acceptSwitch": True}
    entry.pop("failback", None)
    project.up(TARGET)
    mirror_of(site).pop("acceptSwitch")
    assert unchanged(project.up(TARGET))

    assert site.held(TARGET) == site.held(SOURCE) == site.acknowledged
    assert not site.write(TARGET), "the standby is read-only"
    require_applications_at(site, SOURCE)
    assert site.progress() is None
    found = site.status()
    assert (found["active"], found["problems"]) == ("source", [])
    assert site.write(SOURCE, 5)
    wait_until("new records are copied", lambda: site.held(TARGET) == site.acknowledged, COPIED_S)


def test_the_target_goes_on_when_the_source_is_lost_while_a_failback_switches(site: Site) -> None:
    project = site.project
    done, said = site.run(*FAILOVER)
    assert done["active"] == "target", said
    fence = stack_file(site, SOURCE)[f"{KEY}fence"]
    assert site.write(TARGET, 10)
    for group in GROUPS[:2]:
        site.read_on(TARGET, group, 5)
    site.interrupt(SWITCH_KILLED, *FAILBACK)
    left = site.unread(TARGET)
    assert not site.write(TARGET), "the failback has fenced it"

    with site.without_brokers(SOURCE):
        require_refused(site, FAILOVER, UNPLANNED, FAILBACK)
        entry = mirror_of(site)
        entry |= {"active": "source", "state": "stopped", "acceptSwitch": True}
        entry.pop("failback", None)
        project.up(TARGET)
        assert list(project.outputs(TARGET)["mirrors"]) == [MIRROR]
        mirror_of(site)["active"] = "target"
        project.up(TARGET)
        mirror_of(site).pop("acceptSwitch")
        project.up(TARGET)
        assert site.held(TARGET) == site.acknowledged
        assert site.unread(TARGET) == left
        assert site.write(TARGET, 10)
        require_applications_at(site, TARGET)
        stack_file(site, SOURCE)[f"{KEY}fence"] = fence
    wait_until("the source answers again", lambda: records.admits(project.client(SOURCE)), BACK_S)
    result = project.run(SOURCE, "up", "--refresh", "--yes", "--skip-preview", timeout_s=UP_S)
    assert result.returncode == 0, result.stdout + result.stderr
    assert site.is_fenced
    assert not site.write(SOURCE)
    project.sandbox.kubectl("delete", "configmap", JOURNAL, "-n", project.namespace(TARGET))

    assert site.progress() is None
    found = site.status()
    assert (found["active"], found["problems"]) == ("target", [])
    assert (found["fence"]["inForce"], found["fence"]["declared"]) == (True, True)
    for stack in (SOURCE, TARGET):
        site.require_nothing_left_to_deploy(stack)
