"""The example of a monitored pair as a whole, and who watches it: Prometheus, Alertmanager, a webhook, `ops metrics`.

Of what is deployed only the patience is made smaller: how long a rule holds, how long Alertmanager gathers.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Consumer, TopicPartition

from sandbox import monitoring
from sandbox.monitoring import MonitoringFiles
from sandbox.processes import free_ports
from sandbox.state import PROJECT
from settings import parse
from settings.stack import Stack

from . import records
from .http_client import HTTP
from .producers import RaisingProducer
from .projects import KEY, TESTER, Project
from .running_sandbox import Sandbox
from .scraped_metrics import ask
from .slack_webhook import Slack, slack
from .waiting import wait_until

EXAMPLE, MIRROR, TOPIC, GROUP, GRAFANA = "monitored", "mm2", "items", "watched-app", "grafana"
SOURCE, TARGET = "dev", "stg"
# Other tests have the example's names for a pair of their own.
NAMES = {"rt-inventory-dev": "watched-dev", "rt-inventory-stg": "watched-stg"}
HOLD, LAG_S, RECORDS, PARTITIONS = "4s", 4, 60, 3
ALERT_S, STARTS_S, ENDS_S = 90.0, 60.0, 15.0
# Its rule stays as it is deployed.
UNHURRIED = "RetentionOvertakesMirror"
# Seconds of retention. Half of them must be longer than the rule's hold of a minute.
RETAINED = {f"retained-{number:02}": 240 + 5 * number for number in range(20)}
CHECKED_EVERY_MS = 1000
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

    def produce(self, count: int, topics: Iterable[str] = (TOPIC,)) -> None:
        """Write records to the source."""
        producer = RaisingProducer(self.project.client(SOURCE))
        for topic in topics:
            for number in range(count):
                producer.produce(topic, key=str(number), value=f"item {number}")
                producer.poll(0)
        producer.deliver()

    def begins(self) -> dict[str, int]:
        """Where the log of each topic with a short retention begins at the source."""
        return self._bounds(SOURCE, 0)

    def copied(self) -> set[int]:
        """Where the copies of these topics end on the target."""
        return {*self._bounds(TARGET, 1).values()}

    def _bounds(self, stack: str, which: int) -> dict[str, int]:
        consumer = Consumer({**self.project.client(stack), "group.id": GROUP})
        try:
            if not RETAINED.keys() <= consumer.list_topics(timeout=20).topics.keys():
                return {}
            return {
                topic: consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)[which] for topic in RETAINED
            }
        finally:
            consumer.close()

    def retain(self, topic: str, seconds: int) -> None:
        """Let the source keep a topic's records for so long."""
        spec = json.dumps({"spec": {"config": {"retention.ms": seconds * 1000}}})
        place = ("kafkatopic", topic, "-n", self.project.namespace(SOURCE))
        self.sandbox.kubectl("patch", *place, "--type", "merge", "-p", spec)

    def ask_for(self, state: str) -> None:
        """Let the operator pause or run the source connector."""
        change = [{"op": "add", "path": "/spec/mirrors/0/sourceConnector/state", "value": state}]
        place = ("kafkamirrormaker2", MIRROR, "-n", self.project.outputs(TARGET)["mirrors"][MIRROR]["namespace"])
        self.sandbox.kubectl("patch", *place, "--type", "json", "-p", json.dumps(change))
        url = self.project.outputs(TARGET)["mirrors"][MIRROR]["connectUrl"]
        status = f"{url}/connectors/es-src->es-tgt.MirrorSourceConnector/status"

        def states() -> set[str]:
            tasks = HTTP.get(status, timeout=20).json().get("tasks", [])
            return {task["state"] for task in tasks}

        wait_until(
            f"the tasks are {state}", lambda: states() == {state.upper()}, ALERT_S, otherwise=lambda: str(states())
        )

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


@contextlib.contextmanager
def watched_pair(sandbox: Sandbox, folder: Path) -> Iterator[Site]:
    """The pair while it is watched; everything is taken away at the end."""
    monitoring.check(sandbox.tools, None)
    monitoring.up(sandbox.state, None, lambda _: None)
    sandbox.kubectl("create", "namespace", GRAFANA)
    project = _project(sandbox, folder)
    with slack() as heard:
        made = Site(sandbox, project, monitoring.urls(sandbox.state)["prometheus"], heard)
        try:
            project.up(SOURCE)
            made.produce(RECORDS, (TOPIC, *RETAINED))
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
        config[f"{KEY}cluster"]["superUsers"] = [TESTER]
    made.config[TARGET][f"{KEY}verification"] = {**VERIFICATION, "reportDir": str(folder / "reports")}
    made.entry(TARGET, "mirrors", MIRROR)["metrics"] = {}
    often = {"log.retention.check.interval.ms": CHECKED_EVERY_MS, "log.initial.task.delay.ms": CHECKED_EVERY_MS}
    cluster = made.config[SOURCE][f"{KEY}cluster"]
    cluster["config"] = {**cluster.get("config", {}), **often}
    made.config[SOURCE][f"{KEY}topics"] += [{"name": topic, "partitions": 1, "replicas": 1} for topic in RETAINED]
    made.entry(TARGET, "mirrors", MIRROR)["topics"].append("retained-.*")
    made.entry(SOURCE, "users", "rt-inv-dev-user")["aclSets"][0]["topics"].extend(RETAINED)
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
    if isinstance(found, dict) and found.get("alert") == UNHURRIED:
        return found
    if isinstance(found, dict):
        return {key: quick.get(key) or _hasty(value) for key, value in found.items()}
    return [_hasty(each) for each in found] if isinstance(found, list) else found


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
