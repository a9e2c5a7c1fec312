"""In which order brokers get new authorities and certificates; what runs is recorded instead of started."""

from pathlib import Path
from typing import Any, cast

import pytest

from sandbox import pki
from sandbox.operator import admin, java_processes, kafka_nodes, kafkas
from sandbox.operator.certificates import CLUSTER_CA, RENEW, REPLACE
from sandbox.operator.java_processes import ProcessRegistry, ProcessSupervisor
from sandbox.operator.kafkas import Kafkas
from sandbox.operator.kubernetes_api import Kubernetes
from sandbox.operator.metrics_config import Exporter
from sandbox.operator.reconcile import OperatorMetrics
from sandbox.state import write_private
from tests.support.api_objects import MemoryKubernetes

KAFKA: dict[str, Any] = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {"kafka": {"listeners": []}}}
EVERYONE = frozenset({0, 1, 2})


class Rolls:
    """What each roll ran with: the trusted authorities and the issuer of every broker's certificate."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kubernetes = MemoryKubernetes()
        pool = {"metadata": {"name": "pool"}, "spec": {"replicas": 3, "roles": ["broker", "controller"]}}
        self.plan = kafka_nodes.plan(folder, "ns", "c", [pool], [])
        self.seen: list[tuple[list[str], set[str]]] = []
        self.alive = EVERYONE
        java = java_processes.Jvm(Path("java"), Path("libs"), {}, Path("logging"))
        supervisor = ProcessSupervisor(cast(ProcessRegistry, None))
        kubernetes = cast(Kubernetes, self.kubernetes)
        agent = Path("agent.jar")
        self.kafkas = Kafkas(kubernetes, admin.Clusters(), supervisor, java, OperatorMetrics(), agent, folder, folder)
        monkeypatch.setattr(Kafkas, "_run", lambda *_: self._record())

    def _record(self) -> admin.Health:
        trusted = (
            (self.plan.folder / kafka_nodes.TRUSTED).read_text(encoding="utf-8").split("-----END CERTIFICATE-----")
        )
        authorities = [part.strip() + "\n-----END CERTIFICATE-----\n" for part in trusted if part.strip()]
        leaves = [(self.plan.home(node) / "broker.crt").read_text(encoding="utf-8") for node in self.plan.nodes]
        issuers = {pki.common_name(ca) for ca in authorities for leaf in leaves if pki.is_issued_by(leaf, ca)}
        self.seen.append(([pki.common_name(ca) for ca in authorities], issuers))
        return admin.Health(self.alive, True)

    def reconcile(self) -> list[tuple[list[str], set[str]]]:
        self.seen.clear()
        self.kafkas._secure_and_run(self.plan, KAFKA)
        return list(self.seen)


@pytest.fixture
def rolls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rolls:
    return Rolls(tmp_path, monkeypatch)


OLD, NEW = "c-cluster-ca v0", "c-cluster-ca v1"
BOTH = [NEW, OLD]


def test_nothing_is_rolled_twice_while_nothing_is_asked(rolls: Rolls) -> None:
    assert rolls.reconcile() == rolls.reconcile() == [([OLD], {OLD})]


def test_a_replaced_key_is_trusted_everywhere_before_it_signs_and_alone_only_afterwards(rolls: Rolls) -> None:
    rolls.reconcile()
    rolls.kubernetes.annotate("c-cluster-ca", REPLACE)
    assert rolls.reconcile() == [(BOTH, {OLD}), (BOTH, {NEW}), ([NEW], {NEW})]
    assert rolls.reconcile() == [([NEW], {NEW})]


def test_a_replacement_waits_at_its_first_step_for_a_broker_that_is_down(rolls: Rolls) -> None:
    rolls.reconcile()
    rolls.kubernetes.annotate("c-cluster-ca", REPLACE)
    rolls.alive = EVERYONE - {2}
    assert rolls.reconcile() == rolls.reconcile() == [(BOTH, {OLD})]
    rolls.alive = EVERYONE
    assert rolls.reconcile() == [(BOTH, {OLD}), (BOTH, {NEW}), ([NEW], {NEW})]


def test_a_renewed_authority_takes_one_roll(rolls: Rolls) -> None:
    rolls.reconcile()
    before = rolls.kubernetes.secrets[f"c-{CLUSTER_CA}-cert"].values["ca.crt"]
    rolls.kubernetes.annotate(f"c-{CLUSTER_CA}-cert", RENEW)
    assert rolls.reconcile() == [([OLD], {OLD})]
    assert (rolls.plan.folder / kafka_nodes.PUBLISHED).read_text(encoding="utf-8") != before


def test_users_get_certificates_of_an_authority_only_once_all_brokers_run_with_it(rolls: Rolls) -> None:
    rolls.alive = EVERYONE - {0}
    rolls.reconcile()
    assert not (rolls.plan.folder / kafka_nodes.CLIENTS_ISSUER).exists()
    rolls.alive = EVERYONE
    rolls.reconcile()
    assert (rolls.plan.folder / kafka_nodes.CLIENTS_ISSUER).exists()


def test_new_rules_of_the_exporter_restart_brokers_and_no_rules_change_nothing(tmp_path: Path) -> None:
    pool = {"metadata": {"name": "pool"}, "spec": {"replicas": 1, "roles": ["broker", "controller"]}}
    plan = kafka_nodes.plan(tmp_path, "ns", "c", [pool], [])
    node = plan.nodes[0]
    for path in (plan.home(node) / "server.properties", plan.home(node) / "broker.crt"):
        write_private(path, "x")
    for name in (kafka_nodes.TRUSTED, kafka_nodes.CLIENTS):
        write_private(plan.folder / name, "x")
    digests = []
    for metrics in (None, Exporter("rules: []\n"), Exporter("rules: [1]\n"), None):
        kafkas._write_rules(plan, metrics)
        digests.append(kafkas._digest(plan, node))
    assert len(set(digests)) == 3
    assert digests[0] == digests[3]
