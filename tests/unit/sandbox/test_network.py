"""The network between sites: what toxiproxy is told, how it is asked for, and what is said of it."""

import json
from functools import partial
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from sandbox import network
from sandbox.network import BEHIND, Conditions, Network, NetworkError, NetworkFiles, NetworkUsageError, Proxy
from sandbox.network_command import conditions
from sandbox.operator import NotReadyError, kafka_nodes
from sandbox.operator.java_processes import ProcessRegistry, ProcessSupervisor
from sandbox.operator.network import Proxies
from sandbox.processes import Processes
from sandbox.state import SandboxState, write_json
from sandbox.toolchain import Tools

from .test_cli import Command, sandbox  # noqa: F401 - a fixture

LISTENERS = [
    {"name": "tls", "port": 9093, "type": "internal", "tls": True},
    {"name": "external", "port": 9094, "type": "loadbalancer", "tls": True},
]
POOL = {"metadata": {"name": "pool"}, "spec": {"replicas": 2, "roles": ["controller", "broker"]}}
NAME = "ns.dev.0.external-9094"


class Server:
    """Toxiproxy as its API shows it: `cmd/server` 2.12.0 answers with these documents and codes."""

    def __init__(self) -> None:
        self.proxies: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.answers = True

    def handle(self, request: httpx.Request) -> httpx.Response:
        if not self.answers:
            raise httpx.ConnectError("connection refused")
        path = request.url.path
        body = json.loads(request.content) if request.content else {}
        if request.method != "GET":
            self.calls.append(f"{request.method} {path.removeprefix('/proxies/')}")
        _, _, name, *rest = [*path.split("/"), ""]
        if path == "/version":
            return httpx.Response(200, json={"version": "2.12.0"})
        if path == "/proxies":
            if request.method == "GET":
                return httpx.Response(200, json=self.proxies)
            if body["name"] in self.proxies:
                return _error("proxy already exists", 409)
            self.proxies[body["name"]] = {**body, "enabled": True, "toxics": []}
            return httpx.Response(201, json=self.proxies[body["name"]])
        if name not in self.proxies:
            return _error("proxy not found", 404)
        if rest[:1] != ["toxics"]:
            del self.proxies[name]
            return httpx.Response(204)
        return self._toxic(self.proxies[name]["toxics"], request.method, rest[1], body)

    def _toxic(self, toxics: list[dict[str, Any]], method: str, name: str, body: dict[str, Any]) -> httpx.Response:
        found = next((toxic for toxic in toxics if toxic["name"] == (name or body.get("name"))), None)
        if not name:
            if found:
                return _error("toxic already exists", 409)
            toxics.append(body)
        elif found is None:
            return _error("toxic not found", 404)
        elif method == "DELETE":
            toxics.remove(found)
            return httpx.Response(204)
        else:
            found["attributes"] = body["attributes"]
        return httpx.Response(200, json=body)


def _error(words: str, code: int) -> httpx.Response:
    return httpx.Response(code, text=json.dumps({"error": words, "status": code}))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    result = Server()
    monkeypatch.setattr(httpx, "Client", partial(httpx.Client, transport=httpx.MockTransport(result.handle)))
    return result


@pytest.fixture
def files(state: SandboxState, server: Server) -> NetworkFiles:
    """A sandbox with one cluster behind a network, whose toxiproxy has its proxies."""
    found = NetworkFiles(state.network)
    layout = planned(state.clusters / "ns" / "dev", network=True)
    for node in layout.nodes:
        port = node.ports["external-9094"]
        proxy = Proxy("ns", "dev", node.id, "external-9094", port, node.ports["external-9094" + BEHIND])
        server.proxies[proxy.name] = {**proxy.document(), "enabled": True, "toxics": []}
    found.write(Network())
    write_json(found.address, {"address": "127.0.0.1:8474"})
    return found


def planned(folder: Path, *, network: bool) -> kafka_nodes.Layout:
    return kafka_nodes.plan(folder, "ns", "dev", [POOL], LISTENERS, network=network)


def test_a_round_trip_is_split_and_the_rate_comes_before_the_way(server: Server) -> None:
    del server
    found = Conditions(latency_ms=101, jitter_ms=11, bandwidth_kb=50_000).toxics()
    assert [(toxic["stream"], toxic["type"], toxic["attributes"]) for toxic in found] == [
        ("upstream", "bandwidth", {"rate": 50_000}),
        ("upstream", "latency", {"latency": 50, "jitter": 5}),
        ("downstream", "bandwidth", {"rate": 50_000}),
        ("downstream", "latency", {"latency": 51, "jitter": 6}),
    ]
    faults = Conditions(cut=True, reset=True, slow_close=True).toxics()
    assert [(toxic["name"], toxic["attributes"]) for toxic in faults[:3]] == [
        ("slow_close_upstream", {"delay": 5000}),
        ("reset_peer_upstream", {"timeout": 0}),
        ("timeout_upstream", {"timeout": 0}),
    ]
    assert Conditions().toxics() == []


def test_options_are_read_with_their_units() -> None:
    found = conditions("0.1s", "10ms", "50MB/s", cut=True)
    assert found == Conditions(latency_ms=100, jitter_ms=10, bandwidth_kb=50_000, cut=True)
    assert str(found) == "latency 100 ms, jitter 10 ms, bandwidth 50 MB/s a connection, cut"
    assert conditions("0ms", None, "250 kB") == Conditions(bandwidth_kb=250)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("100", None, None), "--latency: must be a number from 0 to 60000 ms with its unit, one of ms, s (got 100)."),
        (("2m", None, None), "--latency: must be a number from 0 to 60000 ms with its unit, one of ms, s (got 2m)."),
        (("61s", None, None), "--latency: must be a number from 0 to 60000 ms with its unit, one of ms, s (got 61s)."),
        (
            ("-5ms", None, None),
            "--latency: must be a number from 0 to 60000 ms with its unit, one of ms, s (got -5ms).",
        ),
        (
            (None, None, "0MB"),
            "--bandwidth: must be a number from 1 to 1e+08 KB with its unit, one of KB, MB, GB (got 0MB).",
        ),
        (
            ("10ms", "20ms", None),
            "--jitter: must be <= --latency (got 20 ms, latency 10 ms). Nothing arrives before it is sent.",
        ),
    ],
)
def test_an_option_that_cannot_be_meant_is_one_sentence(
    given: tuple[str | None, str | None, str | None], message: str
) -> None:
    with pytest.raises(NetworkUsageError) as error:
        conditions(*given)
    assert str(error.value) == message


def test_conditions_are_of_all_clusters_or_of_one() -> None:
    far = Conditions(latency_ms=100)
    found = Network().changed(far, None).changed(Conditions(cut=True), "dev")
    assert (found.of("stg"), found.of("dev")) == (far, Conditions(cut=True))
    assert str(found) == "latency 100 ms; dev: cut"
    assert str(found.changed(Conditions(), "dev")) == "latency 100 ms; dev: healthy"
    assert found.changed(Conditions(), None) == Network()


def test_a_change_takes_faults_out_first_and_leaves_what_stays(
    state: SandboxState, files: NetworkFiles, server: Server
) -> None:
    network.change(state, Conditions(latency_ms=20, cut=True), None, print)
    server.calls.clear()
    network.change(state, Conditions(latency_ms=20, cut=True), None, print)
    assert server.calls == []
    network.change(state, Conditions(bandwidth_kb=5), "dev", print)
    assert [call for call in server.calls if call.startswith(("DELETE " + NAME, "POST " + NAME))] == [
        f"DELETE {NAME}/toxics/{name}"
        for name in ("timeout_downstream", "timeout_upstream", "latency_downstream", "latency_upstream")
    ] + [f"POST {NAME}/toxics", f"POST {NAME}/toxics"]
    assert files.read() == Network(Conditions(latency_ms=20, cut=True), {"dev": Conditions(bandwidth_kb=5)})
    server.calls.clear()
    network.change(state, Conditions(bandwidth_kb=6), "dev", print)
    assert f"POST {NAME}/toxics/bandwidth_upstream" in server.calls
    network.change(state, Conditions(), None, print)
    assert all(proxy["toxics"] == [] for proxy in server.proxies.values())


def test_a_cluster_that_is_not_there_is_refused_with_those_that_are(state: SandboxState, files: NetworkFiles) -> None:
    with pytest.raises(NetworkUsageError, match=r"^--cluster: must be one of the sandbox's \(got x, allowed dev\)\.$"):
        network.change(state, Conditions(), "x", print)
    assert files.read() == Network()


def test_what_is_missing_is_waited_for_and_named(
    state: SandboxState, files: NetworkFiles, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    del files
    said: list[str] = []
    monkeypatch.setattr(network, "READY_WITHIN_S", 0.3)
    monkeypatch.setattr(network, "REPORT_EVERY_S", 0.0)
    del server.proxies[NAME]
    planned(state.clusters / "ns" / "stg", network=False)
    with pytest.raises(NetworkError, match=rf"within 0 s \(missing: cluster stg, {NAME}\)\. See: .* logs operator"):
        network.change(state, Conditions(cut=True), None, said.append)
    assert said[0].startswith(f"network: waiting for cluster stg, {NAME} (")
    assert server.proxies["ns.dev.1.external-9094"]["toxics"]


def test_what_toxiproxy_refuses_or_does_not_answer_is_one_sentence(
    state: SandboxState, files: NetworkFiles, server: Server
) -> None:
    with network.toxiproxy(files) as api:
        assert api is not None
        with pytest.raises(NetworkError, match=r'must accept DELETE /proxies/x \(got: \{"error": "proxy not found"'):
            api.remove("x")
    assert network.described(state) == "healthy (proxies: 2)"
    server.answers = False
    assert (
        network.described(state) == "healthy was asked for (toxiproxy does not answer: what the lines do is not known)"
    )
    assert network.document(state) == {**json.loads(files.request.read_text(encoding="utf-8")), "proxies": None}


def test_a_proxy_that_differs_from_what_was_asked_for_is_named(
    state: SandboxState, files: NetworkFiles, server: Server
) -> None:
    network.change(state, Conditions(latency_ms=20), None, print)
    server.proxies[NAME]["toxics"].pop()
    assert network.described(state) == f"latency 20 ms (proxies: 2, not as asked for: {NAME})"
    found = network.document(state)
    assert found is not None
    assert found["everywhere"]["latency_ms"] == 20
    assert len(found["proxies"][NAME]["toxics"]) == 1
    left = server.proxies.pop(NAME)
    assert network.described(state) == f"latency 20 ms (proxies: 1, missing: {NAME})"
    server.proxies[NAME] = left
    files.address.unlink()
    assert network.described(state) == "latency 20 ms (no proxy yet: no cluster is exposed)"


def test_what_is_exposed_keeps_its_port_and_moves_behind_it(tmp_path: Path) -> None:
    before, after = planned(tmp_path, network=False).nodes[1], planned(tmp_path, network=True).nodes[1]
    assert before.bound == before.ports
    assert {key: after.ports[key] for key in before.ports} == before.ports
    assert {key: port for key, port in after.bound.items() if port == before.ports[key]}.keys() == {
        kafka_nodes.CONTROL_PLANE,
        kafka_nodes.REPLICATION,
        "tls-9093",
    }
    plan = planned(tmp_path, network=True)
    rendered = kafka_nodes.server_properties(plan, after, {"listeners": LISTENERS})
    assert f"EXTERNAL-9094://127.0.0.1:{after.bound['external-9094']}" in str(rendered["listeners"])
    assert f"EXTERNAL-9094://127.0.0.1:{before.ports['external-9094']}" in str(rendered["advertised.listeners"])
    assert "behind" not in str(rendered)


class Registry:
    """A process registry in which a program is named and never run."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.is_held = False

    def alive(self, name: str) -> bool:
        return name in self.started

    def held(self, name: str) -> bool:
        del name
        return self.is_held

    def start(self, name: str, argv: list[str], env: dict[str, str], log: Path) -> None:
        del argv, env, log
        self.started.append(name)


@pytest.fixture
def proxies(state: SandboxState) -> Proxies:
    supervisor = ProcessSupervisor(cast(ProcessRegistry, Registry()))
    return Proxies(supervisor, Path("/nowhere"), NetworkFiles(state.network), state.log("network"))


def test_the_operator_makes_missing_proxies_with_the_conditions_of_their_cluster(
    state: SandboxState, server: Server, proxies: Proxies
) -> None:
    assert not proxies.are_wanted()
    proxies.files.write(Network(Conditions(), {"dev": Conditions(cut=True)}))
    layout = planned(state.clusters / "ns" / "dev", network=True)
    assert proxies.are_wanted()
    assert proxies.keep(layout) == proxies.keep(layout) == []
    assert [call for call in server.calls if call == "POST /proxies"] == ["POST /proxies"] * 2
    assert {toxic["type"] for proxy in server.proxies.values() for toxic in proxy["toxics"]} == {"timeout"}
    server.proxies[NAME]["upstream"] = "127.0.0.1:1"  # of a cluster that was here before
    assert proxies.keep(layout) == []
    assert server.proxies[NAME]["upstream"] == f"127.0.0.1:{layout.nodes[0].bound['external-9094']}"
    proxies.remove("ns", "other")
    assert len(server.proxies) == 2
    proxies.remove("ns", "dev")
    assert not server.proxies


def test_a_broker_that_still_has_its_port_is_left_for_the_next_pass(
    state: SandboxState, server: Server, proxies: Proxies, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxies.files.write(Network())
    layout = planned(state.clusters / "ns" / "dev", network=True)
    taken = layout.nodes[0].ports["external-9094"]
    monkeypatch.setattr("sandbox.processes.is_free_port", lambda port: port != taken)
    assert proxies.keep(layout) == [f"{NAME} needs the port 127.0.0.1:{taken}, which another process uses"]
    assert list(server.proxies) == ["ns.dev.1.external-9094"]


def test_without_exposed_listeners_nothing_is_started(state: SandboxState, proxies: Proxies) -> None:
    layout = kafka_nodes.plan(state.clusters / "ns" / "c", "ns", "c", [POOL], LISTENERS[:1], network=True)
    assert proxies.keep(layout) == []
    assert cast(Registry, proxies.supervisor.processes).started == []


def test_a_toxiproxy_that_is_held_makes_the_cluster_not_ready(
    state: SandboxState, server: Server, proxies: Proxies
) -> None:
    del server
    cast(Registry, proxies.supervisor.processes).is_held = True
    layout = planned(state.clusters / "ns" / "dev", network=True)
    with pytest.raises(NotReadyError, match="Kafka dev: network: toxiproxy does not run"):
        proxies.keep(layout)


def test_the_command_shows_sets_and_heals(
    sandbox: Command,  # noqa: F811
    state: SandboxState,
    files: NetworkFiles,
    tools: Tools,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sandbox.network_command.is_up", lambda _: True)
    monkeypatch.setattr("sandbox.network_command.locate", lambda: tools)
    missing = sandbox(state, "network", "--cut")
    assert (missing.returncode, missing.stderr) == (
        2,
        "network: toxiproxy must be installed (it is not). Run `make setup`.\n",
    )
    tools.toxiproxy.touch()
    assert sandbox(state, "network", "--latency", "100ms", "--jitter", "10ms").stderr == (
        "network: latency 100 ms, jitter 10 ms\n"
    )
    assert sandbox(state, "network").stdout == "network: latency 100 ms, jitter 10 ms (proxies: 2)\n"
    assert "network: latency 100 ms, jitter 10 ms (proxies: 2)" in sandbox(state, "status").stdout
    assert sandbox(state, "network", "--cut", "--cluster", "dev").returncode == 0
    assert json.loads(sandbox(state, "status", "--json").stdout)["network"]["clusters"]["dev"]["cut"] is True
    assert sandbox(state, "network", "heal").stderr == "network: healthy\n"
    assert files.read() == Network()
    assert sandbox(state, "network", "--cluster", "dev").returncode == 2
    assert sandbox(state, "network", "--latency", "5").returncode == 2


def test_without_a_sandbox_the_command_says_how_to_start_one(
    sandbox: Command,  # noqa: F811
    state: SandboxState,
    processes: Processes,
) -> None:
    del processes
    answer = sandbox(state, "network", "--cut")
    assert answer.returncode == 1
    assert answer.stderr.startswith("network: the sandbox must be up (got nothing running in ")
    assert sandbox(state, "network").stdout == "network: none was asked for\n"
    assert sandbox(state, "network", "heal").stderr == "network: none was asked for\n"
    assert sandbox(state, "demo", "--latency", "5").returncode == 2
