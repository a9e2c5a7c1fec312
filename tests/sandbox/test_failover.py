"""A failover of a consumer group: nothing is lost, and what comes again is counted by record ids."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import demo_groups
from sandbox.demo_summary import count, read_ids
from tests.waiting import wait_until

from .clients import ops
from .harness import Pair, Sandbox

TOPIC, GROUP = "items", "test-failover"


@pytest.fixture
def source_brokers(sandbox: Sandbox, pair: Pair) -> Iterator[list[str]]:
    """Names of the source's brokers; whatever the test does to them, they run again afterwards and the mirror too."""
    cluster = pair.dev["cluster"]
    prefix = f"kafka.{cluster['namespace']}.{cluster['name']}."
    names = [name for name in sandbox.processes.names() if name.startswith(prefix)]
    assert names
    yield names
    for name in names:
        sandbox.processes.release(name)
    wait_until("the source's brokers run again", lambda: all(map(sandbox.processes.alive, names)), 90)
    # One record through the whole chain says more than a process that runs.
    ops(sandbox, "produce", "-s", "dev", "-t", TOPIC, "-n", "1")
    # The group has read ahead on the target; at the source it follows, or later tests would meet one that skips.
    ops(sandbox, "consume", "-s", "dev", "-t", TOPIC, "-g", GROUP, "--until-end")
    ops(sandbox, "verify", "-s", "stg", "--report-dir", str(sandbox.state.reports / "after-failover"))


def test_a_group_goes_on_at_the_target_and_no_record_is_lost(
    sandbox: Sandbox, pair: Pair, source_brokers: list[str], tmp_path: Path
) -> None:
    files = {name: tmp_path / f"{name}.tsv" for name in ("produced", "before", "after", "target")}
    ops(sandbox, "produce", "-s", "dev", "-t", TOPIC, "-n", "2000", "--keys-out", str(files["produced"]))
    consume = ["consume", "-t", TOPIC, "-g", GROUP]
    ops(sandbox, *consume, "-s", "dev", "--max", "900", "--keys-out", str(files["before"]))
    before, synced = demo_groups.wait_until_synced(pair.dev, pair.stg, GROUP, 90)
    assert all(synced[key] <= offset for key, offset in before.items())
    report = str(tmp_path / "report")
    assert ops(sandbox, "verify", "-s", "stg", "--report-dir", report)["verdict"] == "pass"

    for name in source_brokers:
        sandbox.processes.kill(name, hold=True)
    ops(sandbox, *consume, "-s", "stg", "--until-end", "--keys-out", str(files["after"]))
    audit = ["consume", "-s", "stg", "-t", TOPIC, "-g", f"{GROUP}-audit", "--until-end", "--no-commit"]
    ops(sandbox, *audit, "--keys-out", str(files["target"]))
    outcome = count(*(read_ids(files[name]) for name in ("produced", "target", "before", "after")))
    assert (outcome.lost, outcome.replicated) == (0, 2000)
    assert not any(sandbox.processes.alive(name) for name in source_brokers)
