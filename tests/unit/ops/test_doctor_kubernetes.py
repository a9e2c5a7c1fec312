"""What Kubernetes tells of a mirror, by a real client against a small server that answers as an API server does."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from contract.verification_request import Resource
from kafka.connector_status import ResourceStatus, from_status, resource_status
from ops.doctor import connect_probes
from ops.doctor.connect_probes import connector, others_and_logs, readiness
from ops.doctor.observations import KubernetesObservations
from ops.errors import OpsError

from ...support.mirror_symptoms import CHECKPOINT, EXPIRED, SOURCE

WANTED = Resource(api_version="kafka.strimzi.io/v1", kind="KafkaMirrorMaker2", namespace="ns", name="mm2")
CONDITION = {"type": "Ready", "status": "True"}
TASK = {"id": 0, "state": "FAILED", "trace": EXPIRED}
OWN: dict[str, Any] = {
    "metadata": {"namespace": "ns", "name": "mm2", "uid": "1"},
    "spec": {},
    "status": {
        "conditions": [CONDITION],
        "labelSelector": "app=mm2",
        "connectors": [{"name": SOURCE, "connector": {"state": "RUNNING"}, "tasks": [TASK]}],
    },
}
OTHER = {
    "metadata": {"namespace": "ns", "name": "back", "uid": "2"},
    "spec": {"target": {"bootstrapServers": "b:1"}, "mirrors": [{"source": {"bootstrapServers": "a:1"}}]},
}
ONE = "/apis/kafka.strimzi.io/v1/namespaces/ns/kafkamirrormaker2s/mm2"
ALL = "/apis/kafka.strimzi.io/v1/kafkamirrormaker2s"
FIRST = "/apis/kafka.strimzi.io/v1beta2/kafkamirrormakers"
PODS, LOG = "/api/v1/namespaces/ns/pods", "/api/v1/namespaces/ns/pods/mm2-0/log"


class Server:
    """Answers of an API server by path: a document, a text, or a status code that refuses."""

    def __init__(self, folder: Path) -> None:
        self.answers: dict[str, Any] = {
            ONE: OWN,
            ALL: {"items": [OWN, OTHER]},
            FIRST: 404,
            PODS: {"items": [{"metadata": {"name": "mm2-0"}}]},
            LOG: "WARN Expiring 3 record(s) for items-0:4000 ms has passed\n",
        }
        self.delays_s: dict[str, float] = {}
        self.asked: list[str] = []
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        server = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.kubeconfig = folder / "kubeconfig"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "c", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        }
        self.kubeconfig.write_text(json.dumps(document))

    @property
    def environment(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.kubeconfig)}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                answer = server.answers[self.path.split("?")[0]]
                time.sleep(server.delays_s.get(self.path.split("?")[0], 0))
                self.send_response(answer if isinstance(answer, int) else 200)
                kind = "text/plain" if isinstance(answer, str) else "application/json"
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(answer.encode() if isinstance(answer, str) else json.dumps(answer).encode())

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    threading.Thread(target=made.http.serve_forever, daemon=True).start()
    yield made
    made.http.shutdown()
    made.http.server_close()


def around(wanted: Resource, environment: dict[str, str]) -> KubernetesObservations:
    """What Kubernetes has around a mirror whose resource can be read."""
    own = resource_status(wanted, [SOURCE, CHECKPOINT], environment)
    found = others_and_logs(lambda: own, environment)
    assert found is not None, own.silent
    return found


def test_pods_of_event_streams_are_found_by_its_own_labels(server: Server) -> None:
    of_ibm = Resource(api_version="eventstreams.ibm.com/v1beta2", kind="KafkaMirrorMaker2", namespace="ns", name="mm2")
    unlabelled = {**OWN, "status": {"conditions": [CONDITION]}}
    group = "/apis/eventstreams.ibm.com/v1beta2"
    server.answers[f"{group}/namespaces/ns/kafkamirrormaker2s/mm2"] = unlabelled
    server.answers[f"{group}/kafkamirrormakers"] = 404
    server.answers[f"{group}/kafkamirrormaker2s"] = {"items": [unlabelled]}
    around(of_ibm, server.environment)
    (asked,) = (path for path in server.asked if path.startswith(f"{PODS}?"))
    assert "eventstreams.ibm.com/cluster%3Dmm2%2Ceventstreams.ibm.com/kind%3DKafkaMirrorMaker2" in asked


def test_the_resource_its_connectors_other_mirrors_and_logs_are_reported(server: Server) -> None:
    own = resource_status(WANTED, [SOURCE, CHECKPOINT], server.environment)
    assert readiness(own).ready
    source, checkpoint = (connector(one.name, one.reported, {}) for one in own.connectors)
    assert (source.parts[1].state, source.parts[1].trace) == ("FAILED", EXPIRED)
    assert checkpoint.parts[0].state == "MISSING"
    found = others_and_logs(lambda: own, server.environment) or KubernetesObservations()
    assert [one.name for one in found.others] == ["KafkaMirrorMaker2 ns/back"]
    (log,) = found.logs
    assert "Expiring 3 record(s)" in log.text
    assert any(path.startswith(PODS) and "labelSelector=app%3Dmm2" in path for path in server.asked)
    assert any(path.startswith(LOG) and "sinceSeconds=900" in path for path in server.asked)
    assert found.notes == ()
    assert server.asked.count(ONE) == 1


@pytest.mark.parametrize("kind", [{"type": "NotReady", "status": "True"}, {"type": "Ready", "status": "False"}])
def test_what_is_not_ready_is_reported_with_its_reason_in_either_form_that_operators_write(
    kind: dict[str, str],
) -> None:
    status = {"conditions": [{**kind, "reason": "TimeoutException", "message": "no answer"}]}
    found = readiness(replace(from_status(WANTED, [], status), document={"status": status}))
    assert (found.ready, found.reason) == (False, "TimeoutException: no answer")


@pytest.mark.parametrize("key", ["include", "whitelist"])
def test_mirror_maker_1_is_looked_for_beside_mirror_maker_2(server: Server, key: str) -> None:
    spec = {
        "replicas": 1,
        key: "items|orders",
        "consumer": {"bootstrapServers": "a:9093, b:9093", "groupId": "one"},
        "producer": {"bootstrapServers": "c:9093"},
    }
    server.answers[FIRST] = {"items": [{"metadata": {"namespace": "old", "name": "one", "uid": "9"}, "spec": spec}]}
    *_, one = around(WANTED, server.environment).others
    assert (one.name, one.is_first, one.keeps_names) == ("KafkaMirrorMaker old/one", True, True)
    assert (one.source, one.target) == (frozenset({"a:9093", "b:9093"}), frozenset({"c:9093"}))
    assert one.topics == ("items|orders",)


def test_what_may_not_be_read_besides_the_resource_is_a_note(server: Server) -> None:
    server.answers |= {ALL: 403, LOG: 403}
    found = around(WANTED, server.environment)
    assert (found.others, found.logs) == ((), ())
    assert any(note.startswith("other mirrors:") for note in found.notes)
    assert any(
        note.startswith("workers' logs: 0 of 1 read: pods and pods/log of namespace ns (403") for note in found.notes
    )


def test_a_mirror_without_pods_says_how_to_give_a_log(server: Server) -> None:
    server.answers[PODS] = {"items": []}
    assert "give --worker-log" in around(WANTED, server.environment).notes[0]


def test_logs_that_are_slow_take_nothing_else_away(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = LOG.replace("mm2-0", "mm2-1"), LOG.replace("mm2-0", "mm2-2")
    server.answers[PODS] = {"items": [{"metadata": {"name": f"mm2-{number}"}} for number in range(3)]}
    server.answers |= {slow: "late\n", quick: "in time\n"}
    server.delays_s[slow] = 1
    monkeypatch.setattr(connect_probes, "CALL_S", 0.5)
    found = around(WANTED, server.environment)
    assert len(found.others) == 1
    assert [log.name for log in found.logs] == ["log of pod mm2-0", "log of pod mm2-2"]
    assert "workers' logs: 2 of 3 read: Kubernetes does not answer for pod mm2-1" in found.notes[0]
    monkeypatch.setattr(connect_probes, "LOGS_S", 0.0)
    (note,) = around(WANTED, server.environment).notes
    assert note == "workers' logs: 0 of 3 read: no more than 0 s are spent on them; give --worker-log"


def test_workers_beyond_the_limit_are_reported(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answers[PODS] = {"items": [{"metadata": {"name": f"mm2-{number}"}} for number in range(2)]}
    monkeypatch.setattr(connect_probes, "WORKERS_MAX", 1)
    (note,) = around(WANTED, server.environment).notes
    assert note == "workers' logs: 1 of 2 read: no more than 1 are read; give --worker-log"


def test_a_mirror_whose_resource_cannot_be_read_has_nothing_around(server: Server) -> None:
    server.answers[ONE] = 404
    own = resource_status(WANTED, [SOURCE], server.environment)
    assert own.silent == "not found in this Kubernetes cluster (the kubeconfig's current context)"
    assert others_and_logs(lambda: own, server.environment) is None
    assert others_and_logs(lambda: None, server.environment) is None
    assert len(server.asked) == 1


def test_what_is_refused_around_the_resource_is_reported(server: Server) -> None:
    own = ResourceStatus(resource=WANTED, document=OWN)
    server.answers[ALL] = 500
    with pytest.raises(
        OpsError, match=r"KafkaMirrorMaker2 ns/mm2: must be readable by the kubeconfig's current context \(got 500"
    ):
        others_and_logs(lambda: own, server.environment)
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(OpsError, match="Kubernetes does not answer"):
        others_and_logs(lambda: own, server.environment)
