"""The exporter on a real pair: what `ops status` sees, by the names of the alerts, whatever happens to the mirror."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from sandbox.state import PROJECT
from tests.support.http_client import HTTP
from tests.support.waiting import wait_until

from ...support.ops_commands import ops, run
from ...support.running_sandbox import Pair, Sandbox

TOPIC, GROUP = "store.inventory", "metrics-app"
STARTS_S, FOLLOWS_S, SCRAPE_S, ENDS_S = 60, 90, 30, 15
NOTED_S = 12  # twice the mirror's flushOffsetsSeconds
PREFIX = "rt_inventory_"
LABELS = 'mirror="mm2",stack="stg"'
OF_A_HEALTHY_PAIR = {
    *("mirror_up", "mirror_state", "mirror_active", "mirror_lag_records", "mirror_lag_seconds"),
    *("connector_running", "task_running", "group_unsynced_records", "group_checkpoint_age_seconds"),
    *("certificate_expiry_timestamp_seconds", "failover_cost_records", "status_timestamp_seconds", "status_error"),
    *("verification_verdict", "verification_check", "verification_finished_timestamp_seconds"),
}
Values = dict[tuple[str, ...], float]


class Exporter:
    """`ops metrics --listen` as somebody on call would start it, in a folder with reports of its own.

    Those of the project's folder may be of a stack of the same name in another sandbox.
    """

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        command = [sys.executable, "-m", "ops", "metrics", "--stack", "stg", "-C", str(PROJECT)]
        self.process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", "--every", "5"],
            cwd=folder,
            env=sandbox.environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        wait_until("the exporter serves", lambda: self.said, STARTS_S)
        self.url = self.said[0].split()[1].removesuffix(",")

    def _read(self) -> None:
        self.said.extend(self.process.stderr or ())

    def scrape(self) -> Values:
        """Values by name without its prefix and labels other than the stack and the mirror, which must be right."""
        answer = HTTP.get(self.url, headers={"Accept": "application/openmetrics-text; version=1.0.0"}, timeout=SCRAPE_S)
        text = answer.raise_for_status().text
        found: Values = {}
        for family in text_string_to_metric_families(text):  # type: ignore[no-untyped-call]  # has no types
            for sample in family.samples:
                assert (sample.labels["stack"], sample.labels["mirror"]) == ("stg", "mm2"), sample
                own = [sample.labels[name] for name in sorted(sample.labels) if name not in ("stack", "mirror")]
                found[sample.name.removeprefix(PREFIX), *own] = sample.value
        return found

    def after(self, moment: float) -> Values | None:
        """The snapshot that was taken later than a moment, None while there is none."""
        found = self.scrape()
        return found if found.get(("status_timestamp_seconds",), 0) > moment else None

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            assert self.process.wait(ENDS_S) == 0
        finally:
            self.process.kill()
            self._reader.join(ENDS_S)
        assert "Traceback" not in "".join(self.said)


@pytest.fixture(scope="module")
def verified(sandbox: Sandbox, pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the report of a run of `ops verify`, in `reports` of a folder of its own."""
    folder = tmp_path_factory.mktemp("metrics") / "reports" / f"stg-mm2-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    ops(sandbox, "verify", "--stack", "stg", "--report-dir", str(folder))
    return folder


@pytest.fixture(scope="module")
def exporter(sandbox: Sandbox, pair: Pair, verified: Path) -> Iterator[Exporter]:
    made = Exporter(sandbox, verified.parent.parent)
    yield made
    made.end()


@pytest.fixture
def worker(sandbox: Sandbox, pair: Pair) -> Iterator[str]:
    """Name of the mirror's worker, which runs again afterwards."""
    name = next(name for name in sandbox.processes.names() if name.startswith("mirror.") and ".mm2." in name)
    yield name
    released(sandbox, [name])


@pytest.fixture
def source_brokers(sandbox: Sandbox, pair: Pair) -> Iterator[list[str]]:
    """Names of the source's brokers, which run again afterwards."""
    names = sandbox.brokers(pair.dev["cluster"]["namespace"])
    yield names
    released(sandbox, names)


def released(sandbox: Sandbox, names: list[str]) -> None:
    for name in names:
        sandbox.processes.release(name)
    wait_until("the mirror is well again", lambda: run(sandbox, "status", "--stack", "stg").returncode == 0, 180)


def read(sandbox: Sandbox, *arguments: str) -> None:
    ops(sandbox, "consume", "-s", "dev", "-t", TOPIC, "-g", GROUP, *arguments)


def reported(status: dict[str, Any]) -> Values:
    """What a status says, by the names of the metrics."""
    found: Values = {
        ("mirror_state", status["state"]): 1,
        ("mirror_active", status["active"]): 1,
        ("mirror_problems",): len(status["problems"]),
        ("mirror_lag_records",): status["lag"]["records"],
        ("mirror_lag_seconds",): status["lag"]["seconds"],
        ("groups",): len(status["groups"]),
        ("failover_cost_records",): sum(n or 0 for n in status["failover"]["recordsReadAgain"].values()),
    }
    for side in ("source", "target"):
        found["cluster_reachable", side] = status[side]["reachable"]
    for one in status["connectors"]:
        found["connector_running", one["name"]] = one["state"] == "RUNNING"
        for number, task in enumerate(one["tasks"]):
            found["task_running", one["name"], str(number)] = task == "RUNNING"
    names = {"readAgain": "unsynced_records", "skipped": "skipped_records", "unread": "unread_records"}
    for row in status["groups"]:
        for theirs, ours in names.items():
            if row[theirs] is not None:
                found[f"group_{ours}", row["group"]] = row[theirs]
        found["group_partitions_without_position", row["group"]] = len(row["withoutPosition"])
    return found


def test_the_exporter_reports_what_the_status_reports(sandbox: Sandbox, pair: Pair, exporter: Exporter) -> None:
    ops(sandbox, "produce", "-s", "dev", "-t", TOPIC, "-n", "300")
    read(sandbox, "--max", "120")

    def agreed() -> bool:
        before = time.time()
        status = ops(sandbox, "status", "--stack", "stg")
        found = wait_until("a snapshot", lambda: exporter.after(before), FOLLOWS_S)
        missing = OF_A_HEALTHY_PAIR - {key[0] for key in found}
        ours = reported(status)
        return not missing and ours.items() <= found.items() and ("group_unsynced_records", GROUP) in ours

    # A status takes seconds of a core: none before the group is there.
    seen = ("group_unsynced_records", GROUP)
    wait_until("the group is reported", lambda: seen in exporter.scrape(), FOLLOWS_S, every_s=1)
    wait_until("status and metrics agree", agreed, FOLLOWS_S)
    found = exporter.scrape()
    assert (found["mirror_up",], found["status_error",]) == (1, 0)
    now = time.time()
    ends = {key[1]: value for key, value in found.items() if key[0] == "certificate_expiry_timestamp_seconds"}
    assert {name.split(":")[0] for name in ends} == {"source", "target"}
    assert len(ends) >= 2 + 1 + 3, "both authorities, one broker and three"
    assert min(ends.values()) > now
    # Three seconds are what it takes alone; other tests may run beside this one.
    assert 0 < found["status_duration_seconds",] < FOLLOWS_S


def test_the_last_verification_is_reported_and_lies_beside_its_report(
    sandbox: Sandbox, pair: Pair, exporter: Exporter, verified: Path
) -> None:
    report = json.loads((verified / "report.json").read_text("utf-8"))
    found = wait_until("a snapshot", lambda: exporter.after(0), FOLLOWS_S)
    ended = datetime.fromisoformat(report["finished_at"]).timestamp()
    assert (
        found["verification_finished_timestamp_seconds",] >= ended
    )  # other tests of the pair may have verified it since
    assert found["verification_verdict", report["verdict"]] == 1
    assert found["verification_finding_records", "lost"] == 0
    beside = (verified / "metrics.prom").read_text("utf-8")
    assert f'{PREFIX}verification_verdict{{{LABELS},verdict="{report["verdict"]}"}} 1.0' in beside
    assert f"{PREFIX}verification_finished_timestamp_seconds{{{LABELS}}}" in beside


@pytest.mark.nightly
def test_the_exporter_answers_while_a_worker_is_down_and_reports_what_groups_would_read_again(
    sandbox: Sandbox, pair: Pair, exporter: Exporter, worker: str
) -> None:
    read(sandbox, "--until-end")
    at_the_end = {("group_unsynced_records", GROUP): 0, ("group_checkpoint_age_seconds", GROUP): 0}
    wait_until("the group is carried over", lambda: at_the_end.items() <= exporter.scrape().items(), FOLLOWS_S)
    ops(sandbox, "produce", "-s", "dev", "-t", TOPIC, "-n", "40")
    produced = time.time()
    wait_until("all is copied", lambda: (exporter.after(produced) or {}).get(("mirror_lag_records",)) == 0, FOLLOWS_S)
    time.sleep(NOTED_S)  # a worker that dies before it noted its position copies again

    sandbox.processes.kill(worker, hold=True)
    read(sandbox, "--until-end")
    wait_until("the mirror is reported as down", lambda: exporter.scrape().get(("mirror_up",)) == 0, FOLLOWS_S)
    moved = time.time()
    found = wait_until("a snapshot after it", lambda: exporter.after(moved), FOLLOWS_S)

    assert found["status_error",] == 0
    assert 0 < found["group_unsynced_records", GROUP] <= 40
    age = found["group_checkpoint_age_seconds", GROUP]
    # It cannot have left the checkpoint before the records were there, nor later than it has read them.
    assert 0 < age <= time.time() - produced + 10
    assert found["failover_cost_records",] >= found["group_unsynced_records", GROUP]

    sandbox.processes.release(worker)
    wait_until("the group is carried over again", lambda: at_the_end.items() <= exporter.scrape().items(), FOLLOWS_S)
    wait_until("the mirror is up", lambda: exporter.scrape().get(("mirror_up",)) == 1, FOLLOWS_S)


@pytest.mark.nightly
def test_of_a_source_that_is_lost_only_what_is_known_is_reported(
    sandbox: Sandbox, pair: Pair, exporter: Exporter, source_brokers: list[str], tmp_path: Path
) -> None:
    for name in source_brokers:
        sandbox.processes.kill(name, hold=True)
    lost = ("cluster_reachable", "source")
    wait_until("the source is reported as lost", lambda: exporter.scrape().get(lost) == 0, FOLLOWS_S)
    found = exporter.scrape()
    assert (found["cluster_reachable", "target"], found["status_error",]) == (1, 0)
    assert found["mirror_state", "running"] == 1
    assert not [key for key in found if key[0].startswith(("mirror_lag", "group", "failover"))]
    result = run(sandbox, "metrics", "--stack", "stg", "--file", str(tmp_path / "stg.prom"))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "mirror mm2: lag is unknown: the source does not answer\n"


def test_a_file_is_written_and_no_secret_is_anywhere(
    sandbox: Sandbox, pair: Pair, exporter: Exporter, tmp_path: Path
) -> None:
    file = tmp_path / "stg.prom"
    result = run(sandbox, "metrics", "--stack", "stg", "--file", str(file))
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    text = file.read_text("utf-8")
    assert 'rt_inventory_mirror_up{mirror="mm2",stack="stg"} 1.0' in text
    secrets = [*pair.dev["userPasswords"].values(), *pair.stg["userPasswords"].values()]
    assert not [secret for secret in secrets if secret in text + result.stderr + "".join(exporter.said)]


def test_a_snapshot_that_fails_is_reported_and_ends_with_exit_2(sandbox: Sandbox, pair: Pair, tmp_path: Path) -> None:
    file = tmp_path / "nowhere.prom"
    result = run(sandbox, "metrics", "--stack", "never-made", "--file", str(file))
    assert result.returncode == 2
    assert result.stderr.startswith("snapshot failed: stack never-made: must exist in the backend")
    assert 'rt_inventory_status_error{mirror="",stack="never-made"} 1.0' in file.read_text("utf-8")
    assert len(result.stderr.splitlines()) == 1
