"""The workers of a mirror change to another Kafka version and back while records flow: the same group, nothing lost."""

import time
from collections import Counter
from collections.abc import Callable, Iterator

import httpx
import pytest

from examples.__main__ import INTERVALS
from sandbox.toolchain import pins
from tests.support.waiting import wait_until

from ...support.lines_of_business import ARRIVE_S, PER_SECOND, TARGET, Lines
from ...support.projects import changed_mirror, changes

# What was sent since the last commit of Connect's offsets may be sent again by the next worker.
SENT_AGAIN_MAX = PER_SECOND * (INTERVALS["flushOffsetsSeconds"] + 3)
GROUP = ("groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic")


def connect_version(lines: Lines, name: str) -> str:
    """Version of Kafka that the mirror's workers run, as Connect itself tells."""
    url = lines.project.mirror(TARGET, name)["status"]["url"]
    return str(httpx.get(url, trust_env=False).json()["version"])


@pytest.mark.nightly
def test_another_version_is_rolled_in_and_back_in_place_and_every_record_arrives(
    lines: Lines, record_property: Callable[[str, object], None]
) -> None:
    project, name = lines.project, lines.names[0]
    line, mirror = lines.line(name), project.entry(TARGET, "mirrors", name)
    uid, generation = project.identity(TARGET, name)
    target = project.mirror(TARGET, name)["spec"]["target"]
    other = project.pid(TARGET, lines.names[1])
    with lines.flow(line.topic, "rolling") as written:
        wait_until("records flow", lambda: len(lines.arrived(line.copy(line.topic))) >= 2 * PER_SECOND, ARRIVE_S)
        for step, version in enumerate((pins.KAFKA_BEFORE, pins.KAFKA), start=1):
            mirror["version"] = version
            before = project.pid(TARGET, name)
            said = project.up(TARGET)
            assert changes(said) == changed_mirror(name), said
            assert project.identity(TARGET, name) == (uid, generation + step)
            assert connect_version(lines, name) == version
            assert project.pid(TARGET, name) != before
            now = project.mirror(TARGET, name)["spec"]["target"]
            assert {key: now[key] for key in GROUP} == {key: target[key] for key in GROUP}
            lines.carry(name, f"during-{version}")
    everything = set(written())
    copy = line.copy(line.topic)
    wait_until("every record arrived", lambda: everything <= set(lines.arrived(copy)), ARRIVE_S)
    time.sleep(INTERVALS["flushOffsetsSeconds"] + 1)
    times = Counter(value for value in lines.arrived(copy) if value in everything)
    again = sum(times.values()) - len(times)
    record_property("records", len(everything))
    record_property("sent_again", again)
    assert again <= 2 * SENT_AGAIN_MAX
    assert project.pid(TARGET, lines.names[1]) == other


@pytest.fixture(autouse=True)
def same_version_as_before(lines: Lines) -> Iterator[None]:
    """The mirror's settings stay as they were for the tests that follow."""
    mirror = lines.project.entry(TARGET, "mirrors", lines.names[0])
    before = mirror.get("version")
    yield
    if before is None:
        mirror.pop("version", None)
    else:
        mirror["version"] = before
