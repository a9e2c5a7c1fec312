"""A mirror of a small cluster to itself that tests make ill, one way after the other, and that the doctor diagnoses."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import httpx
from confluent_kafka import Consumer, KafkaException, TopicPartition

from ops.doctor.known_issues import Finding
from tests.support.http_client import HTTP
from tests.support.mirror_symptoms import inspected
from tests.support.producers import RaisingProducer
from tests.support.small_cluster import PASSWORD, USER, Kit, mirror_spec
from tests.support.waiting import wait_until

NAME, TOPIC, COPY = "copy", "mirrored", "here.mirrored"
SOURCE, CHECKPOINT = "here->there.MirrorSourceConnector", "here->there.MirrorCheckpointConnector"
SYNCS, CHECKPOINTS = "mm2-offset-syncs.there.internal", "here.checkpoints.internal"
BOSS, BOSS_PASSWORD = "boss", "another-password-of-boss"
FLUSH_TIMEOUT = "offset.flush.timeout.ms"
COMMIT_MS = 3000
LOG_END = 4000  # characters
# Longer than the patience of the producer and of the flush, shorter than that of the workers' group.
STANDSTILL_S = 9
STANDSTILLS_MAX = 4
FLOOD = 2000


@dataclass
class Patient:
    """Calls to the mirror, its cluster and the processes of both."""

    kit: Kit

    @property
    def url(self) -> str:
        """Address of Connect."""
        found = self.kit.get("KafkaMirrorMaker2", NAME)
        assert found
        return str(found["status"]["url"])

    def examined(self, *, may_miss: bool = False, **mirror: Any) -> list[Finding]:
        """What the doctor finds, with changes of what the mirror is asked for.

        It must have seen everything, unless it `may_miss` what goes while it looks.
        """
        client = self.kit.client_config()
        config = {key: value for key, value in client.items() if "." in key and "timeout" not in key}
        config["sasl.password"] = {"env": "PASSWORD"}
        own = [{"name": name, "location": "target"} for name in ("copy-configs", "copy-offsets", "copy-status")]
        described = {
            "name": NAME,
            "topics": [TOPIC],
            "naming": "prefixed",
            "connect_url": self.url,
            "connectors": [SOURCE, CHECKPOINT],
            "offset_storage_topic": "copy-offsets",
            "offset_syncs_topic": {"name": SYNCS, "location": "source"},
            "internal_topics": [*own, {"name": SYNCS, "location": "source"}, {"name": CHECKPOINTS}],
            "sync_group_offsets": False,
            "resource": {
                "api_version": "kafka.strimzi.io/v1",
                "kind": "KafkaMirrorMaker2",
                "namespace": self.kit.namespace,
                "name": NAME,
            },
        }
        document = {
            "source": {"alias": "here", "client_config": config},
            "target": {"alias": "there", "client_config": config},
            "mirror": described | mirror,
            "limits": {},
        }
        environment = {"KUBECONFIG": str(self.kit.state.kubeconfig), "PASSWORD": PASSWORD}
        seen, findings = inspected(document, environment, [self.kit.state.log(self.kit.worker(NAME))])
        assert may_miss or not seen.unseen or seen.source.refusal, seen.unseen
        assert PASSWORD not in repr(findings) + repr(seen)
        return findings

    def send(self, signal_number: int, process: str) -> None:
        """Send a signal to a process of the sandbox, by its own id."""
        pid = self.kit.pid(process)
        assert pid
        os.kill(pid, signal_number)

    @contextmanager
    def stopped(self, process: str) -> Iterator[None]:
        """A process that stands still meanwhile."""
        self.send(signal.SIGSTOP, process)
        try:
            yield
        finally:
            self.send(signal.SIGCONT, process)

    def connector(self, method: str, path: str) -> Any:
        """Ask Connect about the source connector."""
        answer = HTTP.request(method, f"{self.url}/connectors/{SOURCE.replace('>', '%3E')}/{path}", timeout=30)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def tasks(self) -> list[str]:
        """States of the source connector's tasks."""
        return [task["state"] for task in self.connector("GET", "status")["tasks"]]

    def state(self) -> str:
        """What Connect says of the source connector, and the end of its worker's log, for the message of a failure.

        The log's lines about calls of Connect's REST interface are left out: the operator asks it every two seconds.
        """
        log = self.kit.state.log(self.kit.worker(NAME)).read_text("utf-8", errors="replace")
        lines = "\n".join(line for line in log.splitlines() if "runtime.rest.RestServer" not in line)
        return f"{json.dumps(self.connector('GET', 'status'))}\n{lines[-LOG_END:]}"

    def restart(self) -> None:
        """Apply the remedy, until the mirror is healthy again; its log is emptied."""
        self.kit.state.log(self.kit.worker(NAME)).write_text("")
        self.connector("POST", "restart?includeTasks=true&onlyFailed=true")
        wait_until("the task runs again", lambda: self.tasks() == ["RUNNING"])
        self.kit.ready("KafkaMirrorMaker2", NAME)

    def configure(self, **options: Any) -> None:
        """Give both connectors these options beside their usual ones, underscores standing for dots."""
        mirrors = patient_spec(self.kit)["mirrors"]
        for connector in ("sourceConnector", "checkpointConnector"):
            mirrors[0][connector]["config"] |= {name.replace("_", "."): value for name, value in options.items()}
        self.kit.change("KafkaMirrorMaker2", NAME, {"spec": {"mirrors": mirrors}})

    def let_commit_take(self, milliseconds: int) -> None:
        """Give the workers this time for a commit of offsets; they are started again for it."""
        worker = self.kit.pid(self.kit.worker(NAME))
        self.kit.change("KafkaMirrorMaker2", NAME, {"spec": {"target": {"config": {FLUSH_TIMEOUT: milliseconds}}}})
        wait_until("the worker is started again", lambda: self.kit.pid(self.kit.worker(NAME)) not in (None, worker))
        wait_until("it runs the task", self._runs, 120)
        self.kit.ready("KafkaMirrorMaker2", NAME)

    def _runs(self) -> bool:
        try:
            return self.tasks() == ["RUNNING"]
        except httpx.HTTPError:
            return False

    def examined_after_standstills(self, wanted: set[str]) -> list[Finding]:
        """What the doctor finds once a task failed in a standstill of the broker, and what is wanted is found.

        A task that failed without that, for a commit of its offsets took less than it may, is started again.
        """
        found: list[Finding] = []
        for _ in range(STANDSTILLS_MAX):
            self._stand_still_under_load()
            if not self._fails_within(5):
                continue
            found = self.examined()
            if wanted <= {one.trouble for one in found}:
                break
            self.connector("POST", "restart?includeTasks=true&onlyFailed=true")
            wait_until("the task runs again", self._runs)
        return found

    def _fails_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.tasks() == ["FAILED"]:
                return True
            time.sleep(0.3)
        return False

    def _stand_still_under_load(self) -> None:
        over, before = threading.Event(), self.written(COPY)
        thread = threading.Thread(target=self.flood, args=(over,))
        thread.start()
        try:
            wait_until("the mirror copies", lambda: self.written(COPY) > before + FLOOD)
            with self.stopped(self.kit.broker()):
                time.sleep(STANDSTILL_S)
        finally:
            over.set()
            thread.join()

    @property
    def boss(self) -> dict[str, Any]:
        """Client properties of a user with all rights."""
        return self.kit.client_config(BOSS, BOSS_PASSWORD)

    def produce(self, count: int) -> None:
        """Write records."""
        producer = RaisingProducer(self.boss)
        for number in range(count):
            producer.produce(TOPIC, key=b"%d" % number, value=b"%d" % number)
        producer.deliver()

    def flood(self, over: threading.Event) -> None:
        """Write faster than the mirror copies, until it is over."""
        producer = RaisingProducer(self.boss | {"queue.buffering.max.messages": 2000})
        while not over.is_set():
            try:
                producer.produce(TOPIC, value=bytes(200))
            except BufferError:
                over.wait(0.05)
            producer.poll(0)
        producer.deliver(60)

    def written(self, topic: str) -> int:
        """How many records were ever written to a topic; waits until its partitions have leaders."""
        return sum(wait_until(f"{topic} reports its ends", lambda: self._ends(topic)))

    @cached_property
    def counter(self) -> Consumer:
        """Kept, because each client that logs in takes processor time here and of the broker."""
        return Consumer(self.boss | {"group.id": "counts"})

    def _ends(self, topic: str) -> list[int]:
        try:
            known = self.counter.list_topics(topic, timeout=10).topics[topic].partitions
            return [self.counter.get_watermark_offsets(TopicPartition(topic, one), timeout=10)[1] for one in known]
        except KafkaException:
            return []


def patient_spec(kit: Kit) -> dict[str, Any]:
    """A mirror that commits its offsets each second, with little patience, and finds new topics after minutes."""
    spec = mirror_spec(kit, USER)
    spec["target"]["config"] |= {"offset.flush.interval.ms": 1000, FLUSH_TIMEOUT: COMMIT_MS}
    spec["mirrors"][0]["sourceConnector"]["config"] |= {
        "refresh.topics.interval.seconds": 600,
    }
    return spec
