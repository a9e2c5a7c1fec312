"""The API server is killed and comes back, again and again: the operator goes on by itself, and sees what is new."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import control_plane
from sandbox.control_plane import OPERATOR, PLANE
from tests.support.running_sandbox import Sandbox
from tests.support.small_cluster import Kit
from tests.support.waiting import wait_until

PATCHED = "patched"
# Shorter and longer than what a request waits for before it would be given up.
AWAY_S = (0.0, 1.0, 3.0, 6.0, 12.0)
AWAY_BY_DAY_S = (1.0, 12.0)
RECONCILED_WITHIN_S = 60.0


@pytest.fixture(scope="module")
def kit(sandbox: Sandbox) -> Iterator[Kit]:
    """A cluster with one topic."""
    kit = Kit(sandbox.state, namespace="outage-tests")
    kit.create_cluster()
    kit.apply("KafkaTopic", PATCHED, {"partitions": 1, "replicas": 1})
    kit.ready("KafkaTopic", PATCHED)
    yield kit
    kit.remove_cluster(*(("KafkaTopic", name) for name in (PATCHED, *map(made_after, AWAY_S))))


def made_after(away_s: float) -> str:
    return f"made-after-{away_s:.0f}"


def outage(sandbox: Sandbox, away_s: float) -> None:
    """Kill the API server, and start it again as it was started; it has its data in its folder."""
    (entry,) = [each for each in sandbox.processes.entries() if each.name == PLANE]
    sandbox.processes.kill(PLANE)
    time.sleep(away_s)
    context = control_plane.SandboxContext(sandbox.state, sandbox.tools, os.environ, print)
    sandbox.processes.start(PLANE, list(entry.argv), context.inherited(), Path(entry.log))
    wait_until("the API server is ready", lambda: ready(sandbox))


def ready(sandbox: Sandbox) -> bool:
    return sandbox.kubectl("get", "--raw=/readyz", check=False).returncode == 0


def test_after_every_outage_a_new_topic_and_a_changed_one_are_reconciled(
    sandbox: Sandbox, kit: Kit, nightly: bool
) -> None:
    operator = kit.pid(OPERATOR)
    for partitions, away_s in enumerate(AWAY_S if nightly else AWAY_BY_DAY_S, start=2):
        outage(sandbox, away_s)
        began = time.monotonic()
        # Only a watch shows the operator a topic that it has never seen; it looks after those that it knows anyway.
        kit.apply("KafkaTopic", made_after(away_s), {"partitions": 1, "replicas": 1})
        kit.change("KafkaTopic", PATCHED, {"spec": {"partitions": partitions}})
        for name in (made_after(away_s), PATCHED):
            kit.ready("KafkaTopic", name, RECONCILED_WITHIN_S)
        sys.stderr.write(f"away for {away_s:.0f} s: reconciled after {time.monotonic() - began:.1f} s\n")
        assert kit.pid(OPERATOR) == operator
        assert sandbox.processes.alive(OPERATOR), sandbox.tails()
