"""The network between the sites of a running sandbox: toxiproxy, in front of what clusters expose to the outside.

A site's own connections (internal listeners, brokers among themselves) stay direct. Everything else reaches a broker by
an advertised address that is a proxy's: the mirror at the other site, and applications and commands from anywhere.
Owns what is asked for and toxiproxy's API. Does not own the process and its proxies, which are the operator's.

Toxiproxy ends each TCP connection at itself. So it delays what is sent, and the TCP window of a long line is not seen.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from sandbox.state import SandboxState, read_json, write_json

PROCESS = "network"
# What follows a listener's name in a layout where the broker listens behind a proxy that has the advertised port.
BEHIND = ".behind-network"
SLOW_CLOSE_MS = 5000
READY_WITHIN_S, ANSWER_S, REPORT_EVERY_S = 180.0, 30.0, 10.0
_POLL_S = 0.2

Report = Callable[[str], None]
Document = dict[str, Any]


class NetworkError(Exception):
    """The network is not what was asked for; the message says what is missing and what to do."""


class NetworkUsageError(NetworkError):
    """An option that cannot be meant."""


@dataclass(frozen=True)
class Conditions:
    """What happens on the line of a cluster; nothing by default.

    `latency_ms` and `jitter_ms` are of a round trip, half of it in each direction. `bandwidth_kb` is in 1000 bytes a
    second, of each connection in each direction. `cut` drops all that is sent, silently, as a line does that is broken.
    `reset` resets each connection at the next bytes in it. `slow_close` closes connections 5 s later than asked.
    """

    latency_ms: int = 0
    jitter_ms: int = 0
    bandwidth_kb: int = 0
    cut: bool = False
    reset: bool = False
    slow_close: bool = False

    def toxics(self) -> list[Document]:
        """The documents of toxiproxy's API, in the order of the way: the line's rate, then its length, then its end."""
        result = []
        for stream, up in (("upstream", True), ("downstream", False)):
            wanted: list[tuple[str, dict[str, int]]] = []
            if self.bandwidth_kb:
                wanted.append(("bandwidth", {"rate": self.bandwidth_kb}))
            if self.latency_ms:
                halves = {"latency": _half(self.latency_ms, up=up), "jitter": _half(self.jitter_ms, up=up)}
                wanted.append(("latency", halves))
            if self.slow_close:
                wanted.append(("slow_close", {"delay": SLOW_CLOSE_MS}))
            if self.reset:
                wanted.append(("reset_peer", {"timeout": 0}))
            if self.cut:
                wanted.append(("timeout", {"timeout": 0}))  # that is: drop, and close nothing by itself
            result += [
                {"name": f"{kind}_{stream}", "type": kind, "stream": stream, "toxicity": 1.0, "attributes": attributes}
                for kind, attributes in wanted
            ]
        return result

    def __str__(self) -> str:
        words = []
        if self.latency_ms:
            words.append(f"latency {self.latency_ms} ms")
        if self.jitter_ms:
            words.append(f"jitter {self.jitter_ms} ms")
        if self.bandwidth_kb:
            words.append(f"bandwidth {self.bandwidth_kb / 1000:g} MB/s a connection")
        words += [name.replace("_", " ") for name in ("cut", "reset", "slow_close") if getattr(self, name)]
        return ", ".join(words) or "healthy"


def _half(milliseconds: int, *, up: bool) -> int:
    return milliseconds // 2 if up else milliseconds - milliseconds // 2


@dataclass(frozen=True)
class Network:
    """Conditions of all clusters, and of clusters by name that have others."""

    everywhere: Conditions = Conditions()
    clusters: Mapping[str, Conditions] = field(default_factory=dict)

    def of(self, cluster: str) -> Conditions:
        """The conditions of a cluster's line."""
        return self.clusters.get(cluster, self.everywhere)

    def changed(self, conditions: Conditions, cluster: str | None) -> "Network":
        """The network with other conditions: of one cluster, or of all, which forgets what single ones have."""
        if cluster is None:
            return Network(conditions)
        return replace(self, clusters={**self.clusters, cluster: conditions})

    def __str__(self) -> str:
        own = [f"{name}: {conditions}" for name, conditions in sorted(self.clusters.items())]
        return "; ".join([str(self.everywhere), *own])


@dataclass(frozen=True)
class NetworkFiles:
    """Paths below one folder."""

    folder: Path

    @property
    def request(self) -> Path:
        """Written by the command line: that there is a network, and its conditions."""
        return self.folder / "conditions.json"

    @property
    def address(self) -> Path:
        """Written by the operator: where toxiproxy's API listens."""
        return self.folder / "address.json"

    def read(self) -> Network | None:
        """The network that was asked for, None if none was."""
        found = read_json(self.request)
        if not found:
            return None
        clusters = {name: Conditions(**conditions) for name, conditions in found["clusters"].items()}
        return Network(Conditions(**found["everywhere"]), clusters)

    def write(self, network: Network) -> None:
        """Ask for this network."""
        write_json(self.request, asdict(network))


@dataclass(frozen=True)
class Proxy:
    """A broker's listener: the port that it advertises, and the one that it listens on."""

    namespace: str
    cluster: str
    node: int
    listener: str
    port: int
    behind: int

    @property
    def name(self) -> str:
        """What toxiproxy calls it."""
        return f"{self.namespace}.{self.cluster}.{self.node}.{self.listener}"

    def document(self) -> Document:
        """What makes it, by toxiproxy's API."""
        return {"name": self.name, "listen": f"127.0.0.1:{self.port}", "upstream": f"127.0.0.1:{self.behind}"}


class Toxiproxy:
    """The API of a toxiproxy; every method raises NetworkError if it does not answer or refuses."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def proxies(self) -> dict[str, Document]:
        """All proxies by name, with their toxics."""
        answer: dict[str, Document] = self._call("GET", "/proxies").json()
        return answer

    def answers(self) -> bool:
        """Whether it is up."""
        try:
            return self._client.get("/version").is_success
        except httpx.HTTPError:
            return False

    def add(self, proxy: Proxy, conditions: Conditions) -> None:
        """Make a proxy with the conditions of its line."""
        self._call("POST", "/proxies", proxy.document())
        self.set_toxics(proxy.name, [], conditions)

    def remove(self, name: str) -> None:
        """Remove a proxy; its connections are closed."""
        self._call("DELETE", f"/proxies/{name}")

    def set_toxics(self, proxy: str, present: list[Document], conditions: Conditions) -> None:
        """Change a proxy's toxics to those of the conditions."""
        wanted = {toxic["name"]: toxic for toxic in conditions.toxics()}
        path, known = f"/proxies/{proxy}/toxics", {toxic["name"]: toxic for toxic in present}
        # What ends connections goes first: while a line drops everything, the others cannot be taken out of it.
        faults = [name for name in sorted(known) if name.startswith(("timeout", "reset"))]
        for name in [name for name in (*faults, *sorted(known.keys() - set(faults))) if name not in wanted]:
            self._call("DELETE", f"{path}/{name}", may_be=httpx.codes.NOT_FOUND)
        for name, toxic in wanted.items():
            if name not in known:
                self._call("POST", path, toxic, may_be=httpx.codes.CONFLICT)
            elif known[name]["attributes"] != toxic["attributes"]:
                self._call("POST", f"{path}/{name}", toxic)

    def _call(self, method: str, path: str, body: Document | None = None, may_be: int | None = None) -> httpx.Response:
        try:
            answer = self._client.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise NetworkError(
                f"network: toxiproxy must answer at {self._client.base_url} (got {type(error).__name__}). "
                "See: venv/bin/python -m sandbox logs network."
            ) from error
        if not answer.is_success and answer.status_code != may_be:
            raise NetworkError(f"network: toxiproxy must accept {method} {path} (got: {answer.text.strip()}).")
        return answer


@contextmanager
def toxiproxy(files: NetworkFiles, timeout_s: float = ANSWER_S) -> Iterator[Toxiproxy | None]:
    """A client of the toxiproxy of this sandbox; None if the operator has not started one yet."""
    address = read_json(files.address).get("address")
    if address is None:
        yield None
        return
    with httpx.Client(base_url=f"http://{address}", timeout=timeout_s, trust_env=False) as client:
        yield Toxiproxy(client)


def change(state: SandboxState, conditions: Conditions, cluster: str | None, report: Report) -> Network:
    """Ask for these conditions, of one cluster or of all, and wait until every proxy has them.

    The first time, brokers that run are restarted, one after the other, because their exposed listeners move behind a
    proxy; their addresses stay. Raises NetworkError if it takes longer than 180 s, NetworkUsageError for an unknown
    cluster.
    """
    files = NetworkFiles(state.network)
    known = sorted({entry.parent.name for entry in _layouts(state)})
    if cluster is not None and cluster not in known:
        raise NetworkUsageError(
            f"--cluster: must be one of the sandbox's (got {cluster}, allowed {', '.join(known) or 'none: none runs'})."
        )
    network = (files.read() or Network()).changed(conditions, cluster)
    files.write(network)
    began = reported = time.monotonic()
    while left := _left(state, files, network):
        now = time.monotonic()
        if now > began + READY_WITHIN_S:
            raise NetworkError(
                f"network: must be in front of all clusters within {READY_WITHIN_S:.0f} s (missing: "
                f"{', '.join(left)}). See: venv/bin/python -m sandbox logs operator."
            )
        if now > reported + REPORT_EVERY_S:
            report(f"network: waiting for {', '.join(left)} ({now - began:.0f} s)")
            reported = now
        time.sleep(_POLL_S)
    return network


def _left(state: SandboxState, files: NetworkFiles, network: Network) -> list[str]:
    """Clusters without a network yet, and proxies that are not there; those that are there get their conditions."""
    left, expected = _expected(state)
    with toxiproxy(files) as api:
        if api is None or not api.answers():
            return [*left, *expected]
        present = api.proxies()
        for name in present.keys() & set(expected):
            api.set_toxics(name, present[name]["toxics"], network.of(name.split(".")[1]))
    return [*left, *(name for name in expected if name not in present)]


def _expected(state: SandboxState) -> tuple[list[str], list[str]]:
    """Clusters that are not behind the network, and the names of the proxies that must be there."""
    layouts = {path: read_json(path) for path in _layouts(state)}
    outside = [f"cluster {path.parent.name}" for path, layout in layouts.items() if not layout.get("network")]
    return outside, [proxy.name for path, layout in layouts.items() for proxy in proxies_of(path, layout)]


def proxies_of(layout: Path, content: Mapping[str, Any]) -> list[Proxy]:
    """The proxies of a cluster by its layout file, whose folder is the cluster's, in the namespace's."""
    cluster, namespace = layout.parent.name, layout.parent.parent.name
    return [
        Proxy(namespace, cluster, node["id"], listener, port, node["ports"][listener + BEHIND])
        for node in content["nodes"]
        for listener, port in node["ports"].items()
        if listener + BEHIND in node["ports"]
    ]


def described(state: SandboxState) -> str | None:
    """The network in one line, None if none was asked for. What toxiproxy does not say is said as not known."""
    files = NetworkFiles(state.network)
    network = files.read()
    if network is None:
        return None
    with toxiproxy(files, timeout_s=2.0) as api:
        if api is None:
            return f"{network} (no proxy yet: no cluster is exposed)"
        try:
            present = api.proxies()
        except NetworkError:
            return f"{network} was asked for (toxiproxy does not answer: what the lines do is not known)"
    wrong = sorted(name for name, proxy in present.items() if not _has(proxy, network.of(name.split(".")[1])))
    outside, expected = _expected(state)
    left = [*outside, *(name for name in expected if name not in present)]
    notes = {"not as asked for": wrong, "missing": left}
    words = [f"proxies: {len(present)}", *(f"{what}: {', '.join(names)}" for what, names in notes.items() if names)]
    return f"{network} ({', '.join(words)})"


def document(state: SandboxState) -> Document | None:
    """The same for programs, as JSON values; None if no network was asked for."""
    files = NetworkFiles(state.network)
    network = files.read()
    if network is None:
        return None
    found: Document | None = None
    with toxiproxy(files, timeout_s=2.0) as api:
        if api is not None and api.answers():
            found = {
                name: {"listen": proxy["listen"], "upstream": proxy["upstream"], "toxics": proxy["toxics"]}
                for name, proxy in sorted(api.proxies().items())
            }
    return {**asdict(network), "proxies": found}


def _has(proxy: Document, conditions: Conditions) -> bool:
    found = {toxic["name"]: toxic["attributes"] for toxic in proxy["toxics"]}
    return found == {toxic["name"]: toxic["attributes"] for toxic in conditions.toxics()}


def _layouts(state: SandboxState) -> list[Path]:
    return sorted(state.clusters.glob("*/*/layout.json"))
