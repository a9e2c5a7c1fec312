"""Producers that ignore everything, while a failover takes their right to write away, and a failback at the target.

In every run `test_killed.py` has one in a failover. The tests come in the order of a site's life: there and back.
"""

import time
from collections.abc import Iterator

import pytest

from ...support import records
from ...support.recovery_site import FAILBACK, SOURCE, TARGET, TOPIC, Site, disturbed_site
from ...support.running_sandbox import Sandbox
from ...support.stubborn_producer import Stubborn

pytestmark = pytest.mark.nightly

FAILOVER = ("failover", "--to", TARGET, "--yes", "--json")


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The pair, whose source has an application user, TESTER, with rights on all topics."""
    with disturbed_site(sandbox, tmp_path_factory.mktemp("fence")) as found:
        found.project.up(SOURCE)
        records.write(found.project.client(SOURCE), TOPIC, [f"record {number}" for number in range(50)])
        found.project.up(TARGET)
        yield found


def test_a_producer_that_ignores_everything_is_refused_and_what_was_acknowledged_is_on_the_target(site: Site) -> None:
    with Stubborn(site.project.client(SOURCE), "stubborn").at_work() as producer:
        done, said = site.run(*FAILOVER)
        assert (done["active"], done["recordsLost"], done["stranded"]) == ("target", 0, {}), said
        assert producer.refused == {"TOPIC_AUTHORIZATION_FAILED"}
        acknowledged = set(producer.acknowledged)
        time.sleep(2.0)  # it goes on trying
        assert producer.acknowledged == acknowledged
    held = [value for value in records.read(site.project.client(TARGET), TOPIC) if value.startswith("stubborn-")]
    assert (len(held), set(held)) == (len(acknowledged), acknowledged)
    assert site.is_fenced
    assert not site.may_write(SOURCE)
    assert site.may_write(TARGET)
    found = site.status()
    assert (found["fence"]["inForce"], found["fence"]["declared"]) == (True, True)
    assert not [problem for problem in found["problems"] if "write" in problem]


def test_a_failback_refuses_a_producer_that_ignores_it_and_what_was_acknowledged_is_at_the_source(site: Site) -> None:
    with Stubborn(site.project.client(TARGET), "stray").at_work() as producer:
        done, said = site.run(*FAILBACK)
        assert (done["active"], done["recordsLost"], done["stranded"]) == ("source", 0, {}), said
        assert producer.refused == {"TOPIC_AUTHORIZATION_FAILED"}
        acknowledged = set(producer.acknowledged)
        time.sleep(2.0)  # it goes on trying
        assert producer.acknowledged == acknowledged
    held = [value for value in records.read(site.project.client(SOURCE), TOPIC) if value.startswith("stray-")]
    assert (len(held), set(held)) == (len(acknowledged), acknowledged)
    assert not site.is_fenced
    assert site.may_write(SOURCE)
    assert not site.may_write(TARGET)
    assert site.status()["problems"] == []
