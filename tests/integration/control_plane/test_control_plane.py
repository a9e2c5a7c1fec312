"""The control plane: ready, closed to others, with real rights, and gone without a trace."""

import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest
import yaml

from sandbox import control_plane
from sandbox.processes import marked
from sandbox.pulumi import Pulumi
from sandbox.state import PROJECT, SandboxState
from sandbox.toolchain import Tools
from tests.support.waiting import at_most, wait_until

from ...support.running_sandbox import Sandbox

STOP_WITHIN_S = 120.0


@pytest.fixture
def other(tmp_path: Path) -> SandboxState:
    """The folder of a second sandbox."""
    return SandboxState(tmp_path / "sandbox")


def command(state: SandboxState, *args: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Run `python -m sandbox` for this folder."""
    return subprocess.run(
        [sys.executable, "-m", "sandbox", *args],
        cwd=PROJECT,
        env={**os.environ, "RT_INVENTORY_SANDBOX": str(state.path)},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def may(sandbox: Sandbox, *question: str) -> bool:
    """The API server's answer to what the operator's identity may do."""
    answer = sandbox.kubectl(
        "auth", "can-i", *question, "--all-namespaces", kubeconfig=sandbox.state.operator_kubeconfig, check=False
    )
    return answer.stdout.strip() == "yes"


def test_it_is_ready_and_says_how_long_it_took(
    sandbox: Sandbox, record_property: Callable[[str, object], None]
) -> None:
    assert sandbox.kubectl("get", "--raw", "/readyz").stdout == "ok"
    seconds = sandbox.state.read_run_info()["ready_seconds"]
    record_property("ready_seconds", seconds)
    assert 0 < seconds < 180  # the figure is 15; the machine may be busy
    assert any("operator: ready" in line for line in sandbox.said)


def test_the_definitions_of_strimzi_olm_and_monitoring_are_served(sandbox: Sandbox) -> None:
    served = sandbox.kubectl("api-resources", "-o", "name").stdout.split()
    expected = {"kafkas", "kafkanodepools", "kafkausers", "kafkatopics", "kafkamirrormaker2s"}
    assert {f"{name}.kafka.strimzi.io" for name in expected} <= set(served)
    assert {f"{name}.operators.coreos.com" for name in ("subscriptions", "operatorgroups")} <= set(served)
    watching = {"podmonitors", "servicemonitors", "prometheusrules", "alertmanagerconfigs"}
    assert {*(f"{name}.monitoring.coreos.com" for name in watching), "scaledobjects.keda.sh"} <= set(served)


def test_a_resource_that_strimzi_would_refuse_is_refused(sandbox: Sandbox) -> None:
    topic = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata: {name: bad}\nspec: {partitions: none}\n"
    answer = sandbox.kubectl("create", "--dry-run=server", "--validate=false", "-f", "-", stdin=topic, check=False)
    assert answer.returncode != 0
    assert "spec.partitions" in answer.stderr


def test_nobody_enters_without_a_certificate_of_this_run(sandbox: Sandbox) -> None:
    server = sandbox.state.read_run_info()["server"]
    trusted = ssl.create_default_context(cafile=str(sandbox.state.plane / "ca.crt"))
    for path in ("/api/v1/secrets", "/readyz", "/version"):
        assert httpx.get(server + path, verify=trusted, trust_env=False).status_code == 401


def test_the_api_server_listens_on_loopback_only_and_etcd_on_no_port(sandbox: Sandbox) -> None:
    (pid,) = [entry.pid for entry in sandbox.processes.entries() if entry.name == "plane"]
    listening = [c.laddr for c in psutil.Process(pid).net_connections(kind="tcp") if c.status == psutil.CONN_LISTEN]
    assert [(address.ip, address.port) for address in listening] == [
        ("127.0.0.1", sandbox.state.read_run_info()["api_port"])
    ]


def test_keys_kubeconfigs_and_the_passphrase_are_the_users_alone(sandbox: Sandbox) -> None:
    state = sandbox.state
    secret = [state.kubeconfig, state.operator_kubeconfig, state.passphrase, *state.plane.glob("*.key")]
    assert len(secret) >= 6
    assert {path.stat().st_mode & 0o777 for path in [*secret, *state.logs.glob("*.log")]} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (state.path, state.plane, state.pulumi)} == {0o700}


def test_no_key_and_no_passphrase_is_in_a_log_or_a_command_line(sandbox: Sandbox) -> None:
    passphrase = sandbox.state.passphrase.read_text()
    assert len(passphrase) > 30
    for log in sandbox.state.logs.glob("*.log"):
        text = log.read_text(errors="replace")
        assert passphrase not in text
        assert "PRIVATE KEY" not in text
    for process in marked(sandbox.state):
        assert passphrase not in " ".join([*process.cmdline(), *process.environ().values()])


@pytest.mark.parametrize(
    "question",
    [
        ("list", "kafkas.kafka.strimzi.io"),
        ("patch", "kafkatopics.kafka.strimzi.io/status"),
        ("create", "secrets"),
        ("watch", "configmaps"),
        ("patch", "configmaps"),
        ("create", "clusterserviceversions.operators.coreos.com"),
    ],
)
def test_the_operator_may_do_its_work(sandbox: Sandbox, question: tuple[str, ...]) -> None:
    assert may(sandbox, *question)


@pytest.mark.parametrize(
    "question",
    [
        ("delete", "secrets"),
        ("create", "pods"),
        ("delete", "namespaces"),
        ("create", "namespaces"),
        ("delete", "kafkas.kafka.strimzi.io"),
        ("create", "kafkausers.kafka.strimzi.io"),
        ("update", "configmaps"),
        ("delete", "configmaps"),
        ("patch", "customresourcedefinitions.apiextensions.k8s.io"),
        ("bind", "clusterroles.rbac.authorization.k8s.io"),
        ("create", "clusterrolebindings.rbac.authorization.k8s.io"),
        ("impersonate", "users"),
    ],
)
def test_the_operator_may_do_nothing_else(sandbox: Sandbox, question: tuple[str, ...]) -> None:
    assert not may(sandbox, *question)
    assert sandbox.kubectl("auth", "can-i", *question).stdout.strip() == "yes"  # the question itself is a right one


RIGHTS = ("ServiceAccount", "Role", "RoleBinding")


@pytest.mark.parametrize("stack", ["europe", "us"])
def test_the_account_of_a_verification_comes_to_no_secret_of_a_cluster(
    sandbox: Sandbox, tmp_path: Path, stack: str
) -> None:
    """A pod mounts any Secret of its namespace: who may make one beside the cluster CA's key has that key."""
    rendered = (PROJECT / "examples" / "verification-in-cluster" / f"expected.{stack}.yaml").read_text(encoding="utf-8")
    documents = [each for each in yaml.safe_load_all(rendered) if each]
    home = next(each["metadata"]["namespace"] for each in documents if each["kind"] == "Kafka")
    rights = [each for each in documents if each["kind"] in RIGHTS]
    namespaces = {home, *(each["metadata"]["namespace"] for each in rights)}
    made = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(namespaces)]
    (tmp_path / "rights.yaml").write_text(yaml.safe_dump_all([*made, *rights]), encoding="utf-8")
    accounts = [each["metadata"] for each in rights if each["kind"] == "ServiceAccount"]
    (account,) = (each for each in accounts if each["name"].endswith("-verify"))  # that of an audit may do nothing
    name = f"system:serviceaccount:{account['namespace']}:{account['name']}"

    def may_account(verb: str, resource: str, namespace: str, *more: str) -> bool:
        words = ("auth", "can-i", verb, resource, "-n", namespace, "--as", name, *more)
        return sandbox.kubectl(*words, check=False).stdout.strip() == "yes"

    sandbox.kubectl("apply", "-f", str(tmp_path / "rights.yaml"))
    try:
        mirror = next(each["metadata"]["name"] for each in documents if each["kind"] == "KafkaMirrorMaker2")
        assert may_account("get", f"kafkamirrormaker2s.kafka.strimzi.io/{mirror}", home), "else nothing is proven"
        assert may_account("create", "pods", account["namespace"]) is (stack == "us")
        for namespace in (home, "kube-system", "default"):
            for verb in ("create", "patch", "delete"):
                assert not may_account(verb, "pods", namespace)
            for verb in ("get", "list", "watch"):
                assert not may_account(verb, "secrets", namespace)
            for resource, part in (("pods", "exec"), ("pods", "ephemeralcontainers"), ("serviceaccounts", "token")):
                assert not may_account("create", resource, namespace, "--subresource", part)
            for resource in ("jobs.batch", "deployments.apps", "rolebindings.rbac.authorization.k8s.io"):
                assert not may_account("create", resource, namespace)
        assert not may_account("get", "secrets", account["namespace"])
    finally:
        sandbox.kubectl("delete", "namespace", *sorted(namespaces), "--wait=false")


def test_a_denied_request_is_really_refused(sandbox: Sandbox) -> None:
    answer = sandbox.kubectl(
        "create", "namespace", "made-by-operator", kubeconfig=sandbox.state.operator_kubeconfig, check=False
    )
    assert answer.returncode != 0
    assert "forbidden" in answer.stderr


def test_a_deleted_namespace_goes_with_all_that_is_in_it(sandbox: Sandbox) -> None:
    sandbox.kubectl("create", "namespace", "plane-goes")
    sandbox.kubectl("-n", "plane-goes", "create", "configmap", "a", "--from-literal=b=c")
    sandbox.kubectl("delete", "namespace", "plane-goes", "--timeout=60s")
    assert sandbox.kubectl("get", "namespace", "plane-goes", check=False).returncode != 0


def test_what_an_object_owns_is_deleted_with_it(sandbox: Sandbox) -> None:
    sandbox.kubectl("create", "configmap", "plane-owner", "--from-literal=a=b")
    uid = sandbox.get("configmap", "plane-owner")["metadata"]["uid"]
    sandbox.kubectl(
        "create",
        "-f",
        "-",
        stdin="apiVersion: v1\nkind: Secret\nmetadata:\n  name: plane-owned\n  ownerReferences:\n"
        f"  - {{apiVersion: v1, kind: ConfigMap, name: plane-owner, uid: {uid}}}\n",
    )
    sandbox.kubectl("delete", "configmap", "plane-owner")
    wait_until(
        "the garbage collector to delete the Secret",
        lambda: sandbox.kubectl("get", "secret", "plane-owned", check=False).returncode != 0,
        deadline_s=60,
    )


def test_up_on_a_running_sandbox_changes_nothing(sandbox: Sandbox) -> None:
    before = [(entry.name, entry.pid) for entry in sandbox.processes.entries()]
    kubeconfig = sandbox.kubeconfig.read_bytes()
    answer = command(sandbox.state, "up")
    assert answer.returncode == 0
    assert "already up" in answer.stderr
    assert [(entry.name, entry.pid) for entry in sandbox.processes.entries()] == before
    assert sandbox.kubeconfig.read_bytes() == kubeconfig


def test_status_names_what_is_real_and_what_stands_in(sandbox: Sandbox) -> None:
    answer = command(sandbox.state, "status")
    assert answer.returncode == 0
    rows = {line.split()[0]: line for line in answer.stdout.splitlines() if line}
    assert "real" in rows["plane"]
    assert "stand-in" in rows["operator"]


def test_a_killed_operator_is_missed_and_can_be_started_again(sandbox: Sandbox) -> None:
    assert command(sandbox.state, "kill", "operator").returncode == 0
    try:
        assert command(sandbox.state, "status").returncode == 1
    finally:
        assert command(sandbox.state, "start", "operator").returncode == 0
    assert command(sandbox.state, "status").returncode == 0


def test_the_shell_environment_makes_plain_kubectl_and_pulumi_use_the_sandbox(sandbox: Sandbox) -> None:
    exports = command(sandbox.state, "env").stdout
    script = f"{exports}\nkubectl get namespace default -o name && pulumi version && pulumi whoami -v"
    answer = subprocess.run(
        ["bash", "-euc", script], cwd=PROJECT, capture_output=True, text=True, timeout=at_most(60), check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert "namespace/default" in answer.stdout
    assert str(sandbox.state.pulumi) in answer.stdout


def test_a_killed_plane_is_followed_by_a_fresh_start_and_down_stops_everything_in_time(
    other: SandboxState, tools: Tools
) -> None:
    context = control_plane.SandboxContext(other, tools, os.environ, lambda _: None)
    try:
        control_plane.up(context)
        assert command(other, "kill", "plane").returncode == 0
        assert not control_plane.is_up(other)
        assert control_plane.up(context)
        assert control_plane.is_up(other)
        assert len({process.pid for process in marked(other)}) == 2
        Pulumi(other, tools).write_shim()
        assert len(marked(other)) >= 2
        began = time.monotonic()
        assert command(other, "down").returncode == 0
        assert time.monotonic() - began < STOP_WITHIN_S  # the figure is 10; the machine may be busy
        assert not marked(other)
        assert {path.name for path in other.path.iterdir()} == {"lock", "logs", "reports", "sandbox.json"}
        again = command(other, "down")
        assert again.returncode == 0
        assert "not running" in again.stderr
    finally:
        control_plane.down(other, lambda _: None)
    assert not marked(other)


@pytest.mark.parametrize(
    ("number", "code"), [pytest.param(signal.SIGINT, 130, marks=pytest.mark.nightly), (signal.SIGTERM, 143)]
)
def test_an_interrupted_up_leaves_no_process_and_no_key(other: SandboxState, number: signal.Signals, code: int) -> None:
    starting = subprocess.Popen(
        [sys.executable, "-m", "sandbox", "up"],
        cwd=PROJECT,
        env={**os.environ, "RT_INVENTORY_SANDBOX": str(other.path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until("the control plane to start", lambda: marked(other), deadline_s=30)
        time.sleep(1)
        starting.send_signal(number)
        _, errors = starting.communicate(timeout=60)
        assert starting.returncode == code, errors
        assert "Traceback" not in errors
        assert not marked(other)
        assert {path.name for path in other.path.iterdir()} <= {"lock", "logs", "reports", "sandbox.json"}
    finally:
        starting.kill()
        starting.wait()
        control_plane.down(other, lambda _: None)
