"""Parallel runs: each worker collects and runs a share of the test files, and imports only what these need.

With pytest-xdist's own ways to distribute tests, every worker collects all of them, which takes 4 s of a core in each.
Here the shares are made before the run, of groups of files that import the same: each group goes to the worker that has
the least to do.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import EachScheduling

HERE = Path(__file__).parent
# Seconds that each group takes one worker, waits included; the first prefix of a file's path decides.
PROGRAMS, SPARK = "Pulumi programs", "Spark without a session"
GROUPS: tuple[tuple[str, str, int], ...] = (
    ("unit/ops/test_new.py", PROGRAMS, 4),
    ("unit/examples/", PROGRAMS, 13),
    ("unit/components/", PROGRAMS, 65),
    ("unit/spark/", SPARK, 70),
    ("unit/ops/recovery/", "recovery", 33),
    ("unit/ops/test_pipeline", "pipelines", 46),
    ("unit/ops/", "other commands", 85),
    ("unit/sandbox/", "sandbox", 65),
    ("unit/support/", "support", 19),
    ("unit/policies/", "policies", 17),
    ("", "the rest", 45),
)
# Files that share Spark's session are one group, so that there is one session.
SESSION, SESSION_S = "Spark's session", {True: 70, False: 2}
SPARK_SESSION = re.compile(r"\bspark: SparkSession\b")


@cache
def group(file: Path) -> str:
    """Return the group of a test file."""
    place = file.relative_to(HERE).as_posix() if file.is_relative_to(HERE) else ""
    found = next(name for prefix, name, _ in GROUPS if place.startswith(prefix))
    return SESSION if found == SPARK and SPARK_SESSION.search(file.read_text("utf-8")) else found


def shares(workers: int, *, with_jvm: bool) -> list[set[str]]:
    """Return the groups of each worker. `with_jvm`: whether tests that start a JVM are run too."""
    seconds = {SESSION: SESSION_S[with_jvm]}
    for _, name, each in GROUPS:
        seconds[name] = seconds.get(name, 0) + each
    found: list[set[str]] = [set() for _ in range(workers)]
    for name in sorted(seconds, key=lambda name: -seconds[name]):
        min(found, key=lambda share: sum(seconds[each] for each in share)).add(name)
    return found


class Share:
    """In a worker: collects the files of its share, and of those given by name keeps the tests of its share."""

    def __init__(self, config: pytest.Config, groups: set[str]) -> None:
        self._groups = groups
        self._given = {config.invocation_params.dir / word.partition("::")[0] for word in config.args}

    @cached_property
    def _others(self) -> set[Path]:
        """Folders whose tests are all of other shares: what their conftest.py imports is not needed either."""
        files = [*HERE.rglob("test_*.py")]
        kept = [file for file in files if file in self._given or group(file) in self._groups]
        return _folders(files) - _folders(kept)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out a file of another share, and a folder that has nothing else."""
        if collection_path.suffix != ".py":
            return True if collection_path in self._others else None
        if collection_path in self._given:
            return None
        return None if group(collection_path) in self._groups else True

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Send nothing that a quiet run does not show: for a short test, sending takes as long as running it.

        That is the begin and the end of each test, and reports of fixtures that passed.
        """
        option = session.config.option
        if option.verbose >= 0 or option.durations or option.xmlpath:
            return
        hooks = session.config.hook
        for hook in (hooks.pytest_runtest_logstart, hooks.pytest_runtest_logfinish, hooks.pytest_runtest_logreport):
            for each in hook.get_hookimpls():
                if type(each.plugin).__name__ == "WorkerInteractor":
                    quiet: Any = _without_fixtures(each.function) if hook.name.endswith("logreport") else _unsent
                    each.function = quiet  # type: ignore[misc]  # pluggy has no other way

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out tests of another share."""
        items[:] = [item for item in items if group(item.path) in self._groups]


def _folders(files: Iterable[Path]) -> set[Path]:
    """The folders above files."""
    return {folder for file in files for folder in file.parents}


def _unsent(nodeid: str, location: object) -> None:
    """Begin or end of a test."""


def _without_fixtures(send: Callable[..., object]) -> Callable[[pytest.TestReport], None]:
    """Return a function that sends a report unless it is of fixtures that passed."""

    def sending(report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            send(report)

    return sending


class Shares:
    """In the process that starts workers: gives each the number of a share, and to one that replaces it the same."""

    def __init__(self, workers: int) -> None:
        self._free = list(range(workers))

    def pytest_configure_node(self, node: Any) -> None:
        """Take the next share."""
        node.workerinput["share"] = self._free.pop(0)

    def pytest_testnodedown(self, node: Any) -> None:
        """Leave the share to the one that goes on."""
        self._free.insert(0, node.workerinput["share"])

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> EachScheduling:
        """Let each worker run whatever it has collected."""
        return _Counting(config, log)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember where the number of tests is kept."""
        _Counting.session = session


class _Counting(EachScheduling):
    """Progress is of all tests, where each worker's collection is not taken for the whole."""

    session: pytest.Session

    def schedule(self) -> None:
        self.session.testscollected = sum(map(len, self.node2collection.values()))
        super().schedule()


def register(config: pytest.Config) -> None:
    """Share the files if this run is parallel, or a worker of one."""
    known = getattr(config, "workerinput", None)
    if known is not None:
        with_jvm = "not jvm" not in (config.option.markexpr or "")
        groups = shares(known["workercount"], with_jvm=with_jvm)[known["share"]]
        config.pluginmanager.register(Share(config, groups), "share")
    elif workers := _workers(config.getoption("tx", None)):
        config.pluginmanager.register(Shares(workers), "shares")


def _workers(specifications: Sequence[str] | None) -> int:
    """How many workers options ask for: `-n 3` is `--tx 3*popen`."""
    return sum(int(one.partition("*")[0]) if "*" in one else 1 for one in specifications or ())
