"""The exporter answers during every snapshot, reports failed ones, and ends on request, with its collector process."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ops.errors import OpsError
from ops.metrics import collector
from ops.metrics.collector import ERROR, TIMESTAMP, CollectorProcess, MetricsSnapshot, Task, failed, status
from ops.metrics.command import Exporter, host_and_port, serve, with_last_verification
from ops.metrics.mirror_metrics import Family
from tests.support.waiting import wait_until

from ....support.open_metrics import families_of

ROOT = Path(__file__).parents[4]
TASK = Task(stack="stg", mirror=None, folder=".", verified=True)
OPEN = "application/openmetrics-text; version=1.0.0"


def good(*mirrors: str, at: float = 7.0) -> MetricsSnapshot:
    of = [{"stack": "stg", "mirror": mirror} for mirror in mirrors]
    families = [
        Family(name="rt_inventory_mirror_up", text="Up.", samples=[(labels, 1.0) for labels in of]),
        Family(name="rt_inventory_verification_exit_code", text="Code.", samples=[(labels, 0.0) for labels in of]),
    ]
    families += [status(name, value, "stg", one) for one in mirrors for name, value in ((TIMESTAMP, at), (ERROR, 0))]
    return MetricsSnapshot(stack="stg", families=families, mirrors=mirrors)


def values(found: MetricsSnapshot | list[Family]) -> dict[tuple[str, str], float]:
    families = found if isinstance(found, list) else found.families
    return {
        (family.name.removeprefix("rt_inventory_"), labels["mirror"]): value
        for family in families
        for labels, value in family.samples
    }


class Stub:
    """Collections that return what a list says: a snapshot, or an error."""

    task = TASK

    def __init__(self, *brought: MetricsSnapshot | Exception) -> None:
        self.brought = list(brought)
        self.ended = False

    def collect(self, within_s: float) -> MetricsSnapshot:
        one = self.brought.pop(0) if len(self.brought) > 1 else self.brought[0]
        if isinstance(one, Exception):
            raise one
        return one

    def end(self) -> None:
        self.ended = True


def looked(*brought: MetricsSnapshot | Exception) -> tuple[Exporter, list[str]]:
    said: list[str] = []
    stub: Any = Stub(*brought)
    made = Exporter(stub, said.append)
    for _ in brought:
        made.collect()
    return made, said


def test_of_a_snapshot_that_fails_only_the_failure_is_reported_and_what_says_when_it_was() -> None:
    made, said = looked(good("mm2"), OpsError("stack stg: is locked"))
    assert values(made.families) == {
        ("status_error", "mm2"): 1,
        ("status_timestamp_seconds", "mm2"): 7,
        ("verification_exit_code", "mm2"): 0,
    }
    assert said == ["snapshot failed: stack stg: is locked"]


def test_what_stays_true_stays_however_often_snapshots_fail_and_goes_when_they_succeed() -> None:
    broken = OpsError("stack stg: is locked")
    made, said = looked(good("mm2"), broken, broken, broken)
    assert values(made.families)["status_timestamp_seconds", "mm2"] == 7
    assert said == ["snapshot failed: stack stg: is locked"]
    made, said = looked(good("mm2"), broken, good("mm2", at=9))
    assert values(made.families)["status_timestamp_seconds", "mm2"] == 9
    assert values(made.families)["status_error", "mm2"] == 0
    assert said[-1] == "snapshots succeed again"


@pytest.mark.parametrize("error", [OSError(12, "Cannot allocate memory"), KeyError("mirrors")])
def test_an_error_that_nobody_foresaw_ends_no_later_snapshot(error: Exception) -> None:
    made, said = looked(good("mm2"), error, good("mm2", at=9))
    assert values(made.families)["status_timestamp_seconds", "mm2"] == 9
    assert said[-1] == "snapshots succeed again"


def test_a_mirror_that_fails_alone_takes_nothing_from_the_others() -> None:
    half = replace(good("mm2", at=9), mirrors=("lob", "mm2"), errors={"lob": "gone"})
    half.families.append(status(ERROR, 1, "stg", "lob"))
    reported = values(with_last_verification(good("lob", "mm2"), half))
    assert (reported["status_error", "lob"], reported["status_timestamp_seconds", "lob"]) == (1, 7)
    assert (reported["mirror_up", "mm2"], reported["status_timestamp_seconds", "mm2"]) == (1, 9)
    assert ("mirror_up", "lob") not in reported


def test_before_any_snapshot_succeeded_the_error_is_of_the_stack() -> None:
    made, _ = looked(OpsError("no"))
    assert values(made.families) == {("status_error", ""): 1}
    made, _ = looked(OpsError("no"), good("mm2"))
    assert values(made.families)["status_error", "mm2"] == 0
    assert ("status_error", "") not in values(made.families)
    assert failed("stg", "mm2", "no").mirrors == ("mm2",)


class Served:
    """An exporter that serves in a thread of its own, until it is asked to end."""

    def __init__(self, stub: Any) -> None:
        self.said: list[str] = []
        self._over = threading.Event()
        arguments = ("127.0.0.1:0", 0.05, stub, self.said.append, self._over.is_set)
        self._thread = threading.Thread(target=serve, args=arguments)
        self._thread.start()
        until(lambda: self.said)
        self.url = self.said[0].split()[1].removesuffix(",")

    def get(self, accept: str = "*/*", url: str | None = None) -> tuple[str, str]:
        asked = urllib.request.Request(url or self.url, headers={"Accept": accept})  # noqa: S310 - of this test
        with urllib.request.urlopen(asked, timeout=5) as answer:  # noqa: S310 - of this test
            return answer.read().decode(), answer.headers["Content-Type"]

    def end(self) -> None:
        self._over.set()
        self._thread.join(10)
        assert not self._thread.is_alive()


def until(condition: Callable[[], Any], within_s: float = 10.0) -> None:
    wait_until("the exporter", condition, within_s, every_s=0.02)


@pytest.fixture
def serving() -> Iterator[Callable[[Any], Served]]:
    made: list[Served] = []

    def start(stub: Any) -> Served:
        made.append(Served(stub))
        return made[-1]

    yield start
    for one in made:
        one.end()


def test_a_scrape_gets_the_format_that_it_asks_for(serving: Callable[[Any], Served]) -> None:
    served = serving(Stub(good("mm2")))
    until(lambda: "mirror_up" in served.get()[0])
    text, kind = served.get()
    assert kind.startswith("text/plain; version=")
    assert "# EOF" not in text
    text, kind = served.get(OPEN)
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")
    names = {family.name for family in families_of(text)}
    assert "rt_inventory_status_timestamp_seconds" in names


def test_nothing_else_is_served(serving: Callable[[Any], Served]) -> None:
    served = serving(Stub(good("mm2")))
    with pytest.raises(urllib.error.HTTPError, match="404"):
        served.get(url=served.url.replace("/metrics", "/"))
    assert served.get(url=f"{served.url}?x=y")


def test_a_slow_snapshot_keeps_nobody_waiting_and_the_end_neither(serving: Callable[[Any], Served]) -> None:
    class Slow(Stub):
        def collect(self, within_s: float) -> MetricsSnapshot:
            if len(self.brought) == 1:
                time.sleep(60)
            return super().collect(within_s)

    stub = Slow(good("mm2"), good("mm2"))
    served = serving(stub)
    until(lambda: "mirror_up" in served.get()[0])
    began = time.monotonic()
    for _ in range(5):
        assert "mirror_up" in served.get()[0]
    served.end()
    assert time.monotonic() - began < 5
    assert stub.ended


@pytest.mark.parametrize("address", ["127.0.0.1", ":9410", "127.0.0.1:port", "127.0.0.1:70000"])
def test_an_address_that_is_none_is_reported(address: str) -> None:
    with pytest.raises(OpsError, match="--listen: must be ADDRESS:PORT"):
        host_and_port(address)


def test_an_address_that_is_taken_is_reported(serving: Callable[[Any], Served]) -> None:
    taken = serving(Stub(good("mm2"))).url.removeprefix("http://").removesuffix("/metrics")
    stub: Any = Stub(good("mm2"))
    with pytest.raises(OpsError, match="--listen: must be a free address of this machine"):
        serve(taken, 1, stub, lambda _: None, lambda: True)
    assert host_and_port("[::1]:9410") == ("::1", 9410)


CHILD = """
    import json, os, sys, time
    from pathlib import Path
    Path("pid").write_text(str(os.getpid()))
    for line in sys.stdin:
        {act}
        answer = {{"stack": "stg", "mirrors": ["mm2"], "errors": {{"mm2": str(os.getpid())}}}}
        print(json.dumps({{**answer, "unknown": [], "metrics": []}}), flush=True)
"""


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], CollectorProcess]]:
    """A collector whose process does what a line of Python says before it answers."""
    made: list[CollectorProcess] = []

    def start(act: str = "pass") -> CollectorProcess:
        (tmp_path / "stand_in.py").write_text(textwrap.dedent(CHILD).format(act=act), "utf-8")
        monkeypatch.setattr(collector, "_MODULE", "stand_in")
        monkeypatch.chdir(tmp_path)
        made.append(CollectorProcess(TASK, {**os.environ, "PYTHONPATH": str(tmp_path)}))
        return made[-1]

    yield start
    for one in made:
        one.end()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_process_makes_all_snapshots(child: Callable[..., CollectorProcess]) -> None:
    one = child()
    first, second = one.collect(30).errors["mm2"], one.collect(30).errors["mm2"]
    assert first == second != str(os.getpid())
    one.end()
    assert not alive(int(first))
    with pytest.raises(OpsError, match="no snapshot must begin any more"):
        one.collect(1)


def test_a_snapshot_that_hangs_is_ended_and_the_next_one_is_made_by_another_process(
    child: Callable[..., CollectorProcess], tmp_path: Path
) -> None:
    one = child("time.sleep(0 if Path('again').exists() else 60)")
    with pytest.raises(OpsError, match="a snapshot must end within 4 s"):
        one.collect(4)
    hung = int((tmp_path / "pid").read_text())
    assert not alive(hung)
    (tmp_path / "again").touch()
    assert one.collect(30).errors["mm2"] != str(hung)


def test_a_process_that_ends_by_itself_is_reported_and_started_anew(
    child: Callable[..., CollectorProcess], tmp_path: Path
) -> None:
    one = child("Path('again').exists() or sys.exit(3)")
    with pytest.raises(OpsError, match=r"must not end by itself \(got exit 3\)"):
        one.collect(30)
    (tmp_path / "again").touch()
    assert one.collect(30).errors


def test_the_collector_process_ends_with_its_input(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "ops.metrics.collector",
        '{"stack": "stg", "mirror": null, "folder": ".", "verified": true}',
    ]
    with subprocess.Popen(
        command, cwd=ROOT, env={"PATH": str(tmp_path)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        shown, _ = process.communicate(b"\n\n", timeout=60)
    assert process.returncode == 0
    first, second = (collector.of_document(json.loads(line)) for line in shown.splitlines())
    assert first == second
    assert "pulumi must be on PATH" in first.errors[""]


def scraped(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - of this test
        return bytes(answer.read())


def test_the_command_serves_until_it_is_reported_to_end(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ops", "metrics", "--listen", "127.0.0.1:0", "--every", "1"]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PATH": str(tmp_path)}, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[1].removesuffix(",")
        until(lambda: b'status_error{mirror="",stack="stg"} 1.0' in scraped(url), 60)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=20)[1]
    assert process.returncode == 0
    assert said.count("snapshot failed: stack stg: pulumi must be on PATH") == 1
    assert "Traceback" not in said
