"""The example of a monitored pair as a whole: brokers, workers, the operator, `ops` and the verification are scraped.

Every expression of every alert and dashboard finds data, and alerts go their way until they are over. Of what is
deployed only the patience is made smaller: how long a rule holds, how long Alertmanager gathers.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from monitoring import stack_monitoring
from monitoring.alerts.rendering import ALERTS, Scope, value_of
from monitoring.dashboards import expressions
from sandbox import monitoring
from sandbox.monitoring import MonitoringFiles
from sandbox.processes import free_ports
from sandbox.state import PROJECT
from settings import parse
from settings.stack import Stack
from tests.support.waiting import wait_until

from ...support import records
from ...support.projects import KEY, TESTER, Project
from ...support.running_sandbox import Sandbox
from ...support.scraped_metrics import ask
from ...support.slack_webhook import Slack, slack

ACTIVE = "ALERTS{"  # there is none while nothing is wrong
EXAMPLE, MIRROR, TOPIC, GROUP, GRAFANA = "monitored", "mm2", "items", "watched-app", "grafana"
SOURCE, TARGET = "dev", "stg"
# Other tests have the example's names for a pair of their own.
NAMES = {"rt-inventory-dev": "watched-dev", "rt-inventory-stg": "watched-stg"}
HOLD, LAG_S, RECORDS, LOAD_RECORDS, PARTITIONS = "4s", 4, 60, 5_000, 3
DATA_S, ALERT_S, CALM_S, STARTS_S, ENDS_S = 150.0, 90.0, 330.0, 60.0, 15.0
# Nothing is compared yet when the stack comes up.
VERIFICATION = {
    "when": "on-change",
    "mirrorWaitSeconds": 60,
    "allowUnknown": [
        *("records_complete", "records_unique", "records_intact", "records_ordered", "records_foreign"),
        *("groups_synced", "groups_no_loss", "groups_reread_bounded", "checkpoints_consistent"),
    ],
}
Body = dict[str, Any]


@dataclass(frozen=True)
class Site:
    """The pair, what watches it, and who is reported."""

    sandbox: Sandbox
    project: Project
    prometheus: str
    slack: Slack

    def found(self, query: str) -> bool:
        """Whether an expression has had a result lately, as a graph would show it, and none of it is no number."""
        results = ask(self.prometheus, f"last_over_time(({query})[5m:2s])")
        return bool(results) and all(each["value"][1] != "NaN" for each in results)

    def settings(self, stack: str) -> Stack:
        """A stack's settings as the program reads them."""
        config = {key.removeprefix(KEY): value for key, value in self.project.config[stack].items()}
        return parse(config, stack)

    def produce(self, count: int) -> None:
        """Write records to the source."""
        producer = Producer(self.project.client(SOURCE))
        for number in range(count):
            producer.produce(TOPIC, key=str(number), value=f"item {number}")
            producer.poll(0)
        assert producer.flush(30) == 0

    def commit(self) -> None:
        """Let a group of the source have read everything."""
        consumer = Consumer({**self.project.client(SOURCE), "group.id": GROUP})
        partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        for each in partitions:
            each.offset = consumer.get_watermark_offsets(each, timeout=20)[1]
        records.commit(consumer, partitions)
        consumer.close()

    @contextlib.contextmanager
    def hanging(self, process: str) -> Iterator[None]:
        """Let a process of the sandbox hang for a while."""
        (pid,) = [entry.pid for entry in self.sandbox.processes.entries() if entry.name == process]
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def path_of(self, alert: str, **labels: str) -> set[str]:
        """The states in which an alert has been, as Prometheus remembers it."""
        own = ",".join(f'{name}="{value}"' for name, value in {"alertname": alert, **labels}.items())
        return {each["metric"]["alertstate"] for each in ask(self.prometheus, f"max_over_time(ALERTS{{{own}}}[10m])")}

    def is_notified(self, alert: str, status: str) -> bool:
        """Whether somebody heard of an alert's beginning or end."""
        titles = [message["attachments"][0]["title"] for message in self.slack.messages]
        return any(title.startswith(f"[{status}") and alert in title for title in titles)

    def goes_its_way(self, alert: str, severity: str) -> None:
        """Wait until an alert was pending, fires, and was delivered."""
        wait_until(f"{alert} fires", lambda: "firing" in self.path_of(alert, mirror=MIRROR), ALERT_S)
        assert self.path_of(alert, mirror=MIRROR) == {"pending", "firing"}
        wait_until(f"{alert} is delivered", lambda: self.is_notified(alert, severity), ALERT_S)

    def is_over(self, alert: str) -> None:
        """Wait until an alert is resolved, and that was delivered."""
        active = f'ALERTS{{alertname="{alert}",mirror="{MIRROR}"}}'
        wait_until(f"{alert} is over", lambda: not ask(self.prometheus, active), ALERT_S)
        wait_until(f"the end of {alert} is delivered", lambda: self.is_notified(alert, "RESOLVED"), ALERT_S)


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    monitoring.check(sandbox.tools, None)
    monitoring.up(sandbox.state, None, lambda _: None)
    sandbox.kubectl("create", "namespace", GRAFANA)
    project = _project(sandbox, tmp_path_factory.mktemp(EXAMPLE))
    with slack() as heard:
        made = Site(sandbox, project, monitoring.urls(sandbox.state)["prometheus"], heard)
        try:
            project.up(SOURCE)
            made.produce(RECORDS)
            made.commit()
            project.up(TARGET)
            for stack in (SOURCE, TARGET):
                _hurry(sandbox, project.namespace(stack), heard.url)
            with Exporter(sandbox, project):
                yield made
        finally:
            project.destroy(TARGET, SOURCE)
            sandbox.kubectl("delete", "namespace", GRAFANA, "--wait=false")
            monitoring.down(sandbox.state)


def _project(sandbox: Sandbox, folder: Path) -> Project:
    made = Project.of_example(sandbox, EXAMPLE, folder)
    text = yaml.safe_dump(made.config)
    for name, own in NAMES.items():
        text = text.replace(name, own)
    made.config = yaml.safe_load(text)
    for config in made.config.values():
        config[f"{KEY}cluster"]["metrics"] = {}
        config[f"{KEY}monitoring"]["scrapeSeconds"] = 5
        config[f"{KEY}monitoring"]["thresholds"] = {"lagSeconds": LAG_S, "lagCriticalSeconds": 3600}
    made.config[TARGET][f"{KEY}verification"] = {**VERIFICATION, "reportDir": str(folder / "reports")}
    made.entry(TARGET, "mirrors", MIRROR)["metrics"] = {}
    made.config[TARGET][f"{KEY}cluster"]["superUsers"] = [TESTER]
    return made


def _hurry(sandbox: Sandbox, namespace: str, webhook: str) -> None:
    """Give the routes their webhooks, and let rules and routes wait for seconds."""
    addresses = [f"--from-literal={key}={webhook}" for key in ("url", "pager")]
    sandbox.kubectl("create", "secret", "generic", "kafka-alerts", *addresses, "-n", namespace)
    for kind in ("prometheusrules", "alertmanagerconfigs"):
        for found in sandbox.get(kind, "-n", namespace)["items"]:
            place = (kind, found["metadata"]["name"], "-n", namespace)
            spec = json.dumps({"spec": _hasty(found["spec"])})
            sandbox.kubectl("patch", *place, "--type", "merge", "-p", spec)


def _hasty(found: Any) -> Any:
    quick = {"for": HOLD, "groupWait": "0s", "groupInterval": "1s"}
    if isinstance(found, dict):
        return {key: quick.get(key) or _hasty(value) for key, value in found.items()}
    return [_hasty(each) for each in found] if isinstance(found, list) else found


# Nobody audits this pair: test_alert_values.py and test_dashboard_answers.py ask these where an audit is scraped.
OF_AUDIT = "rt_inventory_audit_"


class Exporter:
    """`ops metrics` beside the pair, which Prometheus scrapes as what is no pod."""

    def __init__(self, sandbox: Sandbox, project: Project) -> None:
        self._targets = MonitoringFiles(sandbox.state.monitoring).targets / "ops.json"
        (port,) = free_ports(1)
        self._address = f"127.0.0.1:{port}"
        listen = ("--listen", self._address, "--every", "1")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ops", "metrics", "--stack", TARGET, *listen, "--folder", str(project.folder)],
            # Not in the checkout, where reports of other mirrors of this name may lie.
            cwd=project.folder,
            env={**sandbox.environment(), "PYTHONPATH": str(PROJECT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._said: list[str] = []
        self._reader = threading.Thread(target=lambda: self._said.extend(self._process.stderr or ()))

    def __enter__(self) -> None:
        self._reader.start()
        self._targets.parent.mkdir(exist_ok=True)
        self._targets.write_text(json.dumps([{"targets": [self._address]}]), encoding="utf-8")
        wait_until("the exporter of ops serves", lambda: self._said, STARTS_S)

    def __exit__(self, *_: object) -> None:
        self._targets.unlink()
        self._process.terminate()
        try:
            assert self._process.wait(ENDS_S) == 0
        finally:
            self._process.kill()
            self._reader.join(ENDS_S)


@pytest.mark.parametrize("stack", [SOURCE, TARGET])
def test_every_expression_of_every_alert_finds_data(site: Site, stack: str) -> None:
    settings = site.settings(stack)
    namespace = site.project.namespace(stack)
    rules = stack_monitoring.rule_groups(settings, stack, namespace)
    names = {rule["alert"] for group in rules for rule in group["rules"] if "alert" in rule}
    if not settings.mirrors:
        names -= {"StatusFails"}  # `ops` observes stacks with mirrors
    scope = Scope(
        stack=stack,
        mirrors=tuple(stack_monitoring.monitored_mirrors(settings)),
        cluster=stack_monitoring.monitored_cluster(settings),
        operator=True,
    )
    asked = {f"{alert.name} {alert.severity}": value_of(alert, scope) for alert in ALERTS if alert.name in names}
    _all_are_found(site, {what: query for what, query in asked.items() if OF_AUDIT not in query})


def test_every_expression_of_every_dashboard_finds_data(site: Site) -> None:
    chosen = {"stack": f"{SOURCE}|{TARGET}", "mirror": MIRROR, "topic": TOPIC, "group": GROUP}
    asked = {f"{each.dashboard} / {each.panel}: {each.text}": each.filled(chosen) for each in expressions()}
    _all_are_found(
        site, {what: query for what, query in asked.items() if ACTIVE not in query and OF_AUDIT not in query}
    )


def _all_are_found(site: Site, silent: dict[str, str]) -> None:
    """Wait until each expression has had a result; records flow meanwhile, so that rates and latencies have some."""
    assert silent
    waiting = dict(silent)

    def every_one_has_data() -> bool:
        for name in [name for name, query in waiting.items() if site.found(query)]:
            del waiting[name]
        if waiting:
            site.produce(RECORDS)
            site.commit()
        return not waiting

    wait_until("data of every expression", every_one_has_data, DATA_S, otherwise=lambda: "\n".join(waiting))


def test_nothing_is_wrong_with_a_pair_that_is_well(site: Site) -> None:
    def active() -> list[Body]:
        return [each["metric"] for each in ask(site.prometheus, f'ALERTS{{stack=~"{SOURCE}|{TARGET}"}}')]

    # What a busy machine delayed at the start is in what rules look back at for a quarter of an hour.
    wait_until("no alert is active", lambda: not active(), CALM_S, otherwise=lambda: str(active()))


def test_a_task_that_failed_and_the_lag_under_load_are_reported_until_both_are_over(site: Site) -> None:
    url = site.project.outputs(TARGET)["mirrors"][MIRROR]["connectUrl"]
    connector = f"{url}/connectors/es-src->es-tgt.MirrorSourceConnector"
    try:
        # While the operator hangs it calls the mirror Ready.
        with site.hanging("operator"), _refused(AdminClient(site.project.client(TARGET))):
            site.produce(LOAD_RECORDS)
            site.goes_its_way("TaskNotRunning", "CRITICAL")
            site.goes_its_way("MirrorLagSeconds", "WARNING")
            marks = [each.filled() for each in expressions() if ACTIVE in each.text]
            assert marks
            wait_until("dashboards mark it", lambda: all(site.found(query) for query in marks), ALERT_S)
    finally:
        tasks = {"includeTasks": True, "onlyFailed": True}
        httpx.post(f"{connector}/restart", params=tasks, timeout=20, trust_env=False)
    site.is_over("TaskNotRunning")
    site.is_over("MirrorLagSeconds")


@contextlib.contextmanager
def _refused(target: AdminClient) -> Iterator[None]:
    """Refuse the mirror's user to write the topic, which ends its task."""
    place = (ResourceType.TOPIC, TOPIC, ResourcePatternType.LITERAL, "User:rt-inv-stg-user", "*", AclOperation.WRITE)
    for created in target.create_acls([AclBinding(*place, AclPermissionType.DENY)]).values():
        created.result(timeout=20)
    try:
        yield
    finally:
        for deleted in target.delete_acls([AclBindingFilter(*place, AclPermissionType.DENY)]).values():
            deleted.result(timeout=20)


@pytest.mark.nightly
def test_a_worker_that_hangs_is_reported_until_it_answers_again(site: Site) -> None:
    with site.hanging(site.project.worker(TARGET, MIRROR)):
        site.goes_its_way("MirrorDown", "CRITICAL")
    site.is_over("MirrorDown")
