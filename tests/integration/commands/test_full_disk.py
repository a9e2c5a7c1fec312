"""Disks that are really full: a file system of a few MiB of its own, in a namespace of mounts that ends with a process.

The tests of what a command does then use a limit of their process where there is no such disk. A broker on one ends.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from ops.doctor.known_issues import Finding
from ops.pulumi.process import explain_failure
from sandbox.state import PROJECT
from sandbox.toolchain import Tools
from tests.support.mirror_symptoms import inspected
from tests.support.waiting import at_most, wait_until

from ...support import empty_project
from ...support import guarded_brokers as guarded
from ...support.full_disk import FOLDER, REASON, small_disk
from ...support.refusing_site import EVERYTHING, Site
from ...support.running_sandbox import environment_beside

ENDS_S = at_most(300)
FULL = "No space left on device"
BYTES = 4 * 1024 * 1024
BROKER_BYTES, RECORDS, RECORD_BYTES, GIVEN_UP_S = 8 * 1024 * 1024, 250, 60_000, 10
"""The disk of a broker, and records that are twice as much."""
WRITTEN_AT_MS = int(time.time() * 1000) - 3_600_000  # young enough for every retention
TOPIC, REMOTE, LEADERLESS = "far", "src.far", "partition-without-leader"
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
    with small_disk(folder, BYTES) as disk:
        return subprocess.run(
            disk.command(*words, cwd=cwd),
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


@pytest.fixture
def site(tools: Tools, tmp_path: Path) -> Iterator[Site]:
    """A pair on one cluster: the source's topic is on the first broker, the remote one on the second's small disk."""
    with guarded.running(tools, BROKER_BYTES) as brokers:
        brokers.topic(TOPIC, [[1]])
        brokers.topic(REMOTE, [[2]])
        yield Site(brokers, tmp_path, {"reader": brokers.user("reader", EVERYTHING)})


def written(site: Site, topic: str, values: Sequence[bytes]) -> int:
    """Write records of the same times as in the other topic, and return how many the broker has acknowledged."""
    errors: list[KafkaError | None] = []
    settings = {"bootstrap.servers": site.brokers.bootstrap("OPEN"), "log_level": 0, "enable.idempotence": True}
    producer = Producer(settings | {"delivery.timeout.ms": GIVEN_UP_S * 1000})
    for value in values:
        producer.produce(
            topic, value=value, timestamp=WRITTEN_AT_MS + value[0], on_delivery=lambda error, _: errors.append(error)
        )
    assert producer.flush(3 * GIVEN_UP_S) == 0
    return sum(error is None for error in errors)  # KafkaError cannot be compared with None


def findings(site: Site) -> dict[str, Finding]:
    """What the doctor finds, by its name; the user may only read."""
    request = site.request(topics=[TOPIC], name="m", sync_group_offsets=False)
    _, found = inspected(request, {"PASSWORD": site.passwords["reader"]})
    return {one.trouble: one for one in found if one.trouble != "missing-acls"}


def test_a_broker_whose_disk_is_full_is_named_passes_no_verification_and_keeps_what_it_acknowledged(site: Site) -> None:
    brokers, request = site.brokers, site.request(topics=[TOPIC])
    values = [bytes([number]) + os.urandom(RECORD_BYTES) for number in range(RECORDS)]
    log = brokers.folder / "2.log"
    assert written(site, TOPIC, values) == RECORDS
    assert findings(site) == {}

    acknowledged = written(site, REMOTE, values)

    assert 0 < acknowledged < RECORDS
    wait_until("the broker has ended", lambda: not psutil.pid_exists(brokers.pid(2)), otherwise=log.read_text)
    assert FULL in log.read_text()
    wait_until("the others know", lambda: LEADERLESS in findings(site))
    (found,) = findings(site).values()
    assert found.what == f"{REMOTE}-0 has no leader; replicas: brokers 2"
    assert f"`{FULL}` in its log" in found.remedy
    refused = site.verify(request)
    assert (refused.code, refused.report["verdict"]) == (2, "error")
    assert f"{REMOTE}-0 has no leader. Start the brokers that hold the replicas." in refused.errors[-1]

    assert brokers.disk is not None
    brokers.disk.resize(10 * BROKER_BYTES)
    brokers.run(2)
    wait_until("the broker is back", lambda: LEADERLESS not in findings(site), otherwise=log.read_text)
    reader = Consumer({"bootstrap.servers": brokers.bootstrap("OPEN"), "group.id": "ends", "log_level": 0})
    _, held = reader.get_watermark_offsets(TopicPartition(REMOTE, 0), timeout=20)
    reader.close()
    assert held >= acknowledged
    lacking = site.verify(request)
    assert (lacking.code, lacking.report["records_compared"]) == (1, held)
    assert f"records_complete failed: {RECORDS - held} lost in {TOPIC}-0" in lacking.out
    assert written(site, REMOTE, values[held:]) == RECORDS - held
    verdicts = {check["name"]: check["ok"] for check in site.verify(request).report["checks"]}
    assert verdicts["records_complete"] is True
