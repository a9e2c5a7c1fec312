"""Topics that MirrorMaker takes for internal: by Kafka's own class, and never left out in silence."""

import os
import subprocess
from pathlib import Path

import pytest

from contract.verification_request import Mirror
from kafka.cluster import Topic
from sandbox.toolchain import pins
from sandbox.toolchain.paths import cache_root
from spark.checks.topics import topics_present
from tests.support.java_regex import QUICK

PROGRAM = Path(__file__).with_name("InternalNames.java")
NAMES = (
    *("items", "_x", "__x", ".x", "x.internal", "x-internal", "orders.eu.internal", "mm2x.internal", "mm2x-internal"),
    *("mm2-offset-syncs.a.internal", "a.checkpoints.internal", "c.checkpoints.internal", "heartbeats", "x_internal"),
)


def mirror(version: str | None, topics: tuple[str, ...] = (".*",)) -> Mirror:
    return Mirror(
        name="m", source_alias="a", target_alias="b", topics=topics, topics_exclude=(r"none",), version=version
    )


@pytest.mark.parametrize(("version", "folder"), [(pins.KAFKA, "kafka"), (pins.KAFKA_BEFORE, "kafka-before")])
def test_what_is_internal_is_so_for_kafkas_own_policy(java: str, version: str, folder: str) -> None:
    folders = sorted((cache_root(os.environ) / folder).glob(f"{version}-*/libs"))
    if not folders:
        pytest.skip("needs Kafka's jars, which `make setup` fetches")
    command = [java, *QUICK, "-cp", f"{folders[-1]}/*", str(PROGRAM), *NAMES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    judged = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert {name: str(not mirror(version).carries_topic(name)).lower() for name in NAMES} == judged


@pytest.mark.parametrize(
    ("version", "carried", "doubtful"),
    [("3.9.1", False, False), ("2.8.2", False, False), ("4.0.0", True, False), ("4.10.0", True, False)]
    + [(unknown, False, True) for unknown in (None, "", "latest")],
)
def test_names_that_end_like_connects_own_are_copied_since_kafka_4(
    version: str | None, carried: bool, doubtful: bool
) -> None:
    for name in ("x.internal", "x-internal"):
        assert (mirror(version).carries_topic(name), mirror(version).is_doubtful(name)) == (carried, doubtful)
    for name in ("items", "__x", "mm2x.internal", "a.checkpoints.internal"):
        assert not mirror(version).is_doubtful(name)
    assert not mirror(version, topics=("items",)).is_doubtful("x.internal")


def test_up_to_kafka_3_another_separator_makes_more_names_internal() -> None:
    """DefaultReplicationPolicy.isMM2InternalTopic of 3.9: every name that ends in separator and `internal`."""
    for version, carried in (("3.9.1", False), ("4.0.0", True)):
        asked = mirror(version).model_copy(update={"checkpoints_topic": "a_checkpoints_internal"})
        assert asked.carries_topic("x_internal") == carried


@pytest.mark.parametrize(("version", "got"), [(None, "none"), ("latest", "latest")])
def test_a_topic_of_which_nobody_knows_whether_it_is_copied_is_unknown_and_named_with_what_settles_it(
    version: str | None, got: str
) -> None:
    there = {"items": Topic("items", {0: 1}, False)}
    check = topics_present(mirror(version), there, there, doubtful=["x.internal", "y-internal"])
    assert check.ok is None
    assert check.observed == (
        f"mirror.version must be the release of Kafka of the mirror's workers (got {got}): whether they copy "
        "x.internal, y-internal depends on it, up to 3.9 they do not. Set it in the request, or leave these topics out "
        "(topics_exclude). A stack's mirror gets it with `pulumi up`, from its version or its cluster's; topicsExclude "
        "leaves topics out"
    )
    assert {"doubtful": "x.internal"} in check.evidence
    assert topics_present(mirror(None), there, {}, doubtful=["x.internal"]).ok is False
    assert topics_present(mirror("4.3.1"), there, there).ok is True
