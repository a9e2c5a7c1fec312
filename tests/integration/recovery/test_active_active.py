"""Two sites that mirror each other: each begins without the other, and no record comes back to where it was written."""

import time
from collections.abc import Iterator
from functools import partial

import pytest

from examples.__main__ import INTERVALS
from tests.support.waiting import wait_until

from ...support import records
from ...support.projects import Project, unchanged
from ...support.running_sandbox import Sandbox

US, EUROPE = "us", "europe"
OTHER = {US: EUROPE, EUROPE: US}
TOPIC, GROUP = "my-topic", "my-app"
ARRIVE_S = 90


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """What the first two `up`s said."""
    return {}


@pytest.fixture(scope="module")
def sites(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory, said: dict[str, str]) -> Iterator[Project]:
    """Both sites up, in the README's order: the first one again at the end, when its source is there."""
    project = Project.of_example(sandbox, "active-active", tmp_path_factory.mktemp("active-active"))
    try:
        said[US] = project.up(US)
        said[EUROPE] = project.up(EUROPE)
        project.up(US)
        yield project
    finally:
        project.destroy(EUROPE, US)


def alias(site: str) -> str:
    return f"kafka-{site}"


def arrived(sites: Project, site: str, count: int) -> bool:
    """Whether as many copies are there."""
    return len(copies(sites, site)) >= count


def copies(sites: Project, site: str) -> list[str]:
    """What the other site's mirror brought into this one."""
    return records.read(sites.client(site), f"{alias(OTHER[site])}.{TOPIC}")


def test_the_first_site_comes_up_alone_and_says_that_its_mirror_waits(sites: Project, said: dict[str, str]) -> None:
    (mirror,) = sites.config[US]["rt-inventory:mirrors"]
    assert f"mirror {mirror['name']}: left out, because its source stack {EUROPE} is not up" in said[US]
    assert "left out" not in said[EUROPE]
    assert list(sites.outputs(US)["mirrors"]) == [mirror["name"]]


def test_a_record_of_each_site_is_seen_once_in_the_other_and_never_comes_back(sites: Project) -> None:
    written = {site: [f"{site}-{number}" for number in range(20)] for site in OTHER}
    for site, values in written.items():
        records.write(sites.client(site), TOPIC, values)
    for site, values in written.items():
        wait_until(f"records of {site}", partial(arrived, sites, OTHER[site], len(values)), ARRIVE_S)
    # A loop would turn with every refresh of the topics, a late duplicate with every flush of the offsets.
    for _ in range(2):
        time.sleep(max(INTERVALS.values()) + 1)
        for site, values in written.items():
            assert sorted(copies(sites, OTHER[site])) == sorted(values)
            assert sorted(records.read(sites.client(site), TOPIC)) == sorted(values)
            twice = {name for name in records.topics(sites.client(site)) if name.count(alias(site)) and TOPIC in name}
            assert not twice, f"copies that came back to {site}: {twice}"


def restored(sites: Project, site: str) -> int:
    """How many records of the other site the group has read, as this site knows it; 0 if it does not."""
    client = sites.client(site)
    known = GROUP in records.groups(client)
    return records.committed(client, GROUP).get(f"{alias(OTHER[site])}.{TOPIC}", 0) if known else 0


def test_each_site_restores_the_offsets_of_a_group_of_the_other_and_the_group_skips_nothing(sites: Project) -> None:
    for site, other in OTHER.items():
        own = sites.client(site)
        read = records.read(own, TOPIC)
        records.consume(own, TOPIC, GROUP)
        wait_until(f"offsets of {site} in {other}", partial(restored, sites, other), ARRIVE_S)
        assert restored(sites, other) <= len(read)
        rest = [f"{site}-rest-{number}" for number in range(10)]
        records.write(own, TOPIC, rest)
        wait_until(f"the rest of {site}", partial(arrived, sites, other, len(read) + len(rest)), ARRIVE_S)
        unread = records.read_on(sites.client(other), f"{alias(site)}.{TOPIC}", GROUP)
        assert set(rest) <= set(unread)
        assert len(unread) < len(read) + len(rest), "a restored group does not begin again"


@pytest.mark.nightly
def test_a_second_up_of_both_sites_changes_nothing(sites: Project) -> None:
    before = {site: [sites.pid(site, name) for name in sites.outputs(site)["mirrors"]] for site in OTHER}
    for site in OTHER:
        said = sites.up(site)
        assert unchanged(said), said
    assert before == {site: [sites.pid(site, name) for name in sites.outputs(site)["mirrors"]] for site in OTHER}
