"""The way back by declarations alone: records written on the target return once.

`test_recovery.py` goes there and back twice, by the commands. At the end the source is lost with its disks, and nobody
knows where both sides were equal: roles are exchanged.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from examples.__main__ import INTERVALS
from ops.recovery.connector_offsets import alter
from tests.support.runbook_commands import exchange_roles
from tests.support.waiting import at_most, wait_until

from ...support import records
from ...support.projects import KEY, Document, Project
from ...support.running_sandbox import Sandbox

pytestmark = pytest.mark.nightly

SOURCE, TARGET, MIRROR = "dev", "stg", "mm2"
APPLICATION = "inventory-app"
TOPIC = "items"
TOPICS = (TOPIC, "items.inventory", "store.inventory")
ARRIVE_S, OFFSETS_S, QUIET_S = 90.0, 60.0, 6.0
BACK, FORWARD = "es-tgt->es-src.MirrorSourceConnector", "es-src->es-tgt.MirrorSourceConnector"
Ends = dict[tuple[str, int], int]


@pytest.fixture(scope="module")
def project(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The pair, whose source lets the mirror's user read and what a failback writes, and nothing else."""
    found = Project.of_example(sandbox, "active-passive", tmp_path_factory.mktemp("way-back"))
    for config in found.config.values():
        config["rt-inventory:cluster"].pop("expose")
    try:
        found.up(SOURCE)
        found.up(TARGET)
        yield found
    finally:
        exchanged = f"{KEY}mirrors" in found.config[SOURCE]
        found.destroy(*((SOURCE, TARGET) if exchanged else (TARGET, SOURCE)))


def declare(project: Project, **settings: Any) -> None:
    """Give the mirror these settings (None: not any more) and bring the target stack up."""
    mirror: Document = project.entry(TARGET, "mirrors", MIRROR)
    for key, value in {"acceptSwitch": True, **settings}.items():
        if value is None:
            mirror.pop(key, None)
        else:
            mirror[key] = value
    project.up(TARGET)


def fence(project: Project, topics: list[str]) -> None:
    """Declare that applications may not write these topics at the source, which grants what a failback needs there."""
    config = project.config[SOURCE]
    config.pop(f"{KEY}fence", None)
    if topics:
        config[f"{KEY}fence"] = {"topics": topics}
    project.up(SOURCE)


def last_offsets(project: Project, stack: str) -> Ends:
    """The last record of every partition, -1 for none: where a connector has copied everything."""
    consumer = Consumer(project.client(stack) | {"group.id": "reader"})
    try:
        known = consumer.list_topics(timeout=10).topics
        return {
            (topic, number): consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[1] - 1
            for topic in TOPICS
            if topic in known
            for number in known[topic].partitions
        }
    finally:
        consumer.close()


def set_offsets(project: Project, mirror: str, connector: str, positions: Ends) -> None:
    namespace = project.outputs(TARGET)["mirrors"][mirror]["namespace"]
    place = ("kafka.strimzi.io/v1", namespace, mirror)
    alter(place, connector, positions, {"KUBECONFIG": str(project.sandbox.kubeconfig)}, print, OFFSETS_S)


def write(project: Project, stack: str, *numbers: int) -> None:
    records.write(project.client(stack), TOPIC, [f"record {number:02}" for number in numbers])


def held(project: Project, stack: str) -> list[str]:
    return sorted(records.read(project.client(stack), TOPIC))


def holds(project: Project, stack: str, count: int) -> None:
    """Wait until the topic holds the first records, each once, and see that no more come."""
    wanted = [f"record {number:02}" for number in range(count)]
    wait_until(f"{count} records on {stack}", lambda: len(held(project, stack)) >= count, ARRIVE_S)
    settled(project, stack, wanted)


def settled(project: Project, stack: str, wanted: list[str]) -> None:
    """A mirror that copies what it should not does so within seconds."""
    until = iter(range(int(QUIET_S)))
    wait_until("quiet seconds", lambda: held(project, stack) != wanted or next(until, None) is None, 60)
    assert held(project, stack) == wanted


def there_and_back(project: Project, begin: int) -> int:
    """Fail over, write on the target, bring it back, and go on as before; returns how many records there are."""
    declare(project, active="target", state="stopped", failback=None)
    fence(project, list(TOPICS))
    boundary, before = last_offsets(project, TARGET), held(project, SOURCE)
    write(project, TARGET, *range(begin, begin + 4))
    declare(project, failback="prepared")
    settled(project, SOURCE, before)
    set_offsets(project, f"{MIRROR}-failback", BACK, boundary)
    declare(project, failback="copying")
    holds(project, SOURCE, begin + 4)
    declare(project, failback="prepared")
    set_offsets(project, MIRROR, FORWARD, last_offsets(project, SOURCE))
    declare(project, active="source", state="running", failback=None)
    fence(project, [])
    write(project, SOURCE, *range(begin + 4, begin + 6))
    for stack in (TARGET, SOURCE):
        holds(project, stack, begin + 6)
    return begin + 6


def test_records_return_once_and_none_loops(project: Project) -> None:
    write(project, SOURCE, *range(5))
    holds(project, TARGET, 5)
    assert there_and_back(project, 5) == 11


def test_the_mirror_of_the_way_back_is_gone(project: Project) -> None:
    assert list(project.outputs(TARGET)["mirrors"]) == [MIRROR]
    assert f"mirror.rt-inventory-stg.{MIRROR}-failback.0" not in project.sandbox.processes.names()


def test_after_roles_are_exchanged_a_source_that_was_rebuilt_empty_is_filled_anew(
    project: Project,
) -> None:
    wanted = held(project, TARGET)
    declare(project, active="target", state="stopped")
    project.destroy(SOURCE)
    project.up(SOURCE)
    assert held(project, SOURCE) == []
    exchange_roles(project.config[SOURCE], project.config[TARGET])
    applications = {"clients": {"source": APPLICATION, "target": APPLICATION}}  # the default pair names its own
    project.entry(SOURCE, "mirrors", "home").update(INTERVALS | applications)
    project.run(TARGET, "state", "unprotect", "--all", "--yes", timeout_s=at_most(60))
    project.up(TARGET)
    project.up(SOURCE)
    for stack in (SOURCE, TARGET):
        holds(project, stack, len(wanted))
    write(project, TARGET, len(wanted))
    for stack in (SOURCE, TARGET):
        holds(project, stack, len(wanted) + 1)
    assert project.outputs(TARGET)["mirrors"] == {}
