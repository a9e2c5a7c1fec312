"""A failover while the source and the bucket of Pulumi's state are lost, with an application at work, and the failback.

Pulumi agrees with it in between. The status of the pair before it is tested first.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.state import PROJECT
from tests.support.waiting import at_most, wait_until

from ...support import records
from ...support.ops_commands import ops
from ...support.pair_at_work import TOPIC, Site, at_work, running_again
from ...support.running_sandbox import Pair, Sandbox

ENDS_S, STOPPED_S = at_most(420), 60
GROUP, FAILBACK = "break-glass-app", ("failback", "--to", "dev")
NAMESPACE, CLIENTS, COPY = "rt-inventory-stg", "mm2-clients", "mm2-break-glass"
NOWHERE = "s3://lost-with-its-region?region=eu-central-1&endpoint=127.0.0.1:1&disableSSL=true&s3ForcePathStyle=true"
UNCHANGED = {"same", "read", "refresh"}


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The pair with an application; afterwards the source is active again."""
    with at_work(sandbox, pair, tmp_path_factory.mktemp("break-glass"), GROUP) as site:
        yield site
        if site.active() == "target":
            site.run(*FAILBACK)


@pytest.fixture
def source_brokers(site: Site) -> Iterator[None]:
    """The source's brokers, which run again afterwards."""
    with running_again(site):
        yield


def command(sandbox: Sandbox, folder: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run pulumi in the folder, or ops on it."""
    program, *rest = words
    line = [sys.executable, "-m", "ops", *rest, "-C", str(folder)] if program == "ops" else [*words, "-s", "stg"]
    return subprocess.run(
        line,
        cwd=PROJECT if program == "ops" else folder,
        env={**sandbox.environment(), **environment},
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        check=False,
    )


def without_state(sandbox: Sandbox) -> dict[str, str]:
    """The environment of Pulumi itself, not of the sandbox's, with a bucket that nobody serves."""
    shim, path = f"{sandbox.state.path / 'bin'}:", sandbox.environment()["PATH"]
    assert path.startswith(shim)
    login = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_EC2_METADATA_DISABLED": "true"}
    return {"PATH": path.removeprefix(shim), "PULUMI_BACKEND_URL": NOWHERE, **login}


def connector_states(sandbox: Sandbox) -> set[str]:
    """The states of the mirror's connectors."""
    connectors = sandbox.mirror(NAMESPACE, "mm2")["status"]["connectors"]
    return {connector["connector"]["state"] for connector in connectors}


def failed_over(sandbox: Sandbox, folder: Path) -> dict[str, Any]:
    """Fail over without the state; return the command's document."""
    words = "ops", "failover", "--to", "stg", "--unplanned", "--break-glass", "--yes", "--json"
    ended = command(sandbox, folder, *words, **without_state(sandbox))
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}\n\n{sandbox.tails()}"
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def test_the_status_of_a_healthy_pair(site: Site) -> None:
    site.work()
    found = ops(site.sandbox, "status", "--stack", "stg")
    assert (found["health"], found["problems"], found["active"]) == ("healthy", [], "source")
    assert found["failover"]["path"] == "planned"
    assert {row["group"] for row in found["groups"]} >= {GROUP}
    # From now on a failover without the source knows the group.
    wait_until("its position is on the target", lambda: records.committed(site.client("stg"), GROUP), STOPPED_S)


def test_a_failover_ends_well_while_the_state_is_lost_and_pulumi_agrees_afterwards(
    site: Site, sandbox: Sandbox, pair: Pair, source_brokers: None
) -> None:
    folder = site.folder
    site.lose_source()
    lost = command(sandbox, folder, "ops", "status", "--json", **without_state(sandbox))
    assert lost.returncode == 2

    done = failed_over(sandbox, folder)

    assert (done["active"], done["clientsSecret"]) == ("target", CLIENTS)
    assert (done["recordsLost"], done["groups"][GROUP]["repeated"]) == (None, None)
    assert TOPIC in done["newestMirrored"]
    assert done["reconcileWith"] == f"pulumi up --refresh -s stg -C {folder}"
    assert sandbox.secret(NAMESPACE, CLIENTS)["bootstrapServers"] == pair.stg["cluster"]["internalBootstrapServers"]
    # Its worker was started a moment ago, and stops them when it is there.
    wait_until("the connectors are stopped", lambda: connector_states(sandbox) == {"STOPPED"}, STOPPED_S)
    assert connector_states(sandbox) == {"STOPPED"}
    entry = yaml.safe_load((folder / "Pulumi.stg.yaml").read_text("utf-8"))["config"]["rt-inventory:mirrors"][0]
    assert (entry["active"], entry["state"]) == ("target", "stopped")
    seen = command(sandbox, folder, "ops", "status", "--break-glass", "--json", **without_state(sandbox))
    assert json.loads(seen.stdout)["active"] == "target", seen.stdout + seen.stderr
    held, stranded = site.go_on_at_target()
    assert stranded
    assert site.application.repeated <= done["groups"][GROUP]["left"]
    site.find_source()

    behind = json.loads(command(sandbox, folder, "ops", "status", "--json").stdout)
    assert [problem for problem in behind["problems"] if "Pulumi's state is behind" in problem]
    old_checkout = sandbox.pulumi.run("stg", "up", "--yes", "--skip-preview", check=False, timeout_s=ENDS_S)
    assert "mirror mm2: active must stay 'target' (got 'source')" in old_checkout.stdout + old_checkout.stderr

    preview = command(sandbox, folder, "pulumi", "preview", "--refresh", "--json", "--non-interactive")
    assert preview.returncode == 0, preview.stdout + preview.stderr
    steps = [step for step in json.loads(preview.stdout)["steps"] if step["op"] not in UNCHANGED]
    changed = {step["urn"].rpartition("::")[2]: step["detailedDiff"] for step in steps if "$kubernetes:" in step["urn"]}
    # A refresh takes over what Pulumi had set before, and a mirror that runs has no state.
    added = {"spec.mirrors[0].sourceConnector.state", "spec.mirrors[0].checkpointConnector.state"}
    assert {name: set(paths) for name, paths in changed.items()} == {"mm2-mirror": added}
    before = sandbox.mirror(NAMESPACE, "mm2")["metadata"]["generation"]
    up = command(sandbox, folder, "pulumi", "up", "--refresh", "--yes", "--skip-preview", "--non-interactive")
    assert up.returncode == 0, up.stdout + up.stderr
    assert sandbox.mirror(NAMESPACE, "mm2")["metadata"]["generation"] == before, "nothing was left to change"
    assert sandbox.pulumi.outputs("stg")["mirrors"]["mm2"]["active"] == "target"
    words = "preview", "--refresh", "--expect-no-changes", "--diff", "--non-interactive"
    again = command(sandbox, folder, "pulumi", *words)
    assert again.returncode == 0, again.stdout + again.stderr
    after = json.loads(command(sandbox, folder, "ops", "status", "--json").stdout)
    assert not [problem for problem in after["problems"] if "Pulumi" in problem]

    back = site.run(*FAILBACK)

    # A record may have been written whose acknowledgement the killed brokers no longer sent.
    assert len(stranded) <= back["recordsBroughtOver"] <= len(site.application.sent - held)
    site.wait_for("source")
    site.work()
    assert site.application.lost == set()
    assert site.application.acknowledged <= site.held("dev") <= site.application.sent
