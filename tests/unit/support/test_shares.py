"""Workers of a parallel run share the test files: each file is in one share, which outlives its worker."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.shares import GROUPS, SESSION, Share, Shares, group, shares

TESTS = Path(__file__).parents[2]
FILES = [file for file in TESTS.rglob("test_*.py") if TESTS / "integration" not in file.parents]


@pytest.mark.parametrize("workers", [1, 3, 4, 6, 40])
@pytest.mark.parametrize("with_jvm", [True, False])
def test_every_file_is_in_one_share(workers: int, with_jvm: bool) -> None:
    found = shares(workers, with_jvm=with_jvm)
    assert len(found) == workers
    assert [sum(group(file) in share for share in found) for file in FILES] == [1] * len(FILES)


def test_every_group_has_files() -> None:
    assert {group(file) for file in FILES} == {name for _, name, _ in GROUPS} | {SESSION}


def test_files_that_share_sparks_session_are_one_group() -> None:
    sharing = {file for file in FILES if re.search(r"\bspark: SparkSession\b", file.read_text("utf-8"))}
    assert {file for file in FILES if group(file) == SESSION} == sharing
    assert len(sharing) > 1


def test_no_worker_has_twice_as_much_as_another() -> None:
    seconds: dict[str, int] = {SESSION: 70}
    for _, name, each in GROUPS:
        seconds[name] = seconds.get(name, 0) + each
    for workers in (3, 4):
        loads = [sum(seconds[name] for name in share) for share in shares(workers, with_jvm=True)]
        assert max(loads) < 2 * min(loads)


def node(**known: Any) -> Any:
    return SimpleNamespace(workerinput=known)


def test_a_worker_in_place_of_one_that_ended_has_its_share() -> None:
    sharing, nodes = Shares(3), [node(), node(), node()]
    for each in nodes:
        sharing.pytest_configure_node(each)
    assert [each.workerinput["share"] for each in nodes] == [0, 1, 2]
    sharing.pytest_testnodedown(nodes[1])
    new = node()
    sharing.pytest_configure_node(new)
    assert new.workerinput["share"] == 1


def workers_of(*words: str) -> list[Any]:
    """The workers' side of a run of three, as it was called."""
    config: Any = SimpleNamespace(invocation_params=SimpleNamespace(dir=TESTS.parent), args=words)
    return [Share(config, groups) for groups in shares(3, with_jvm=True)]


def test_a_file_is_collected_and_its_tests_are_run_by_one_worker() -> None:
    every = workers_of("tests")
    for file in FILES:
        items = [[SimpleNamespace(path=file)] for _ in every]
        for each, kept in zip(every, items, strict=True):
            each.pytest_collection_modifyitems(kept)
        assert sorted(len(kept) for kept in items) == [0, 0, 1]
        assert [each.pytest_ignore_collect(file) for each in every] == [None if kept else True for kept in items]


def test_a_file_that_is_named_may_be_collected_by_all_and_the_folder_of_all_is_never_left_out() -> None:
    name = "tests/unit/support/test_waiting.py"
    for words in ([name], [f"{name}::test_x"]):
        assert not any(each.pytest_ignore_collect(TESTS.parent / name) for each in workers_of(*words))
    assert not any(each.pytest_ignore_collect(TESTS / "unit") for each in workers_of("tests"))


def test_a_folder_is_left_out_unless_a_test_of_the_share_is_in_it_or_named() -> None:
    """Else its conftest.py would be imported for nothing."""
    every = workers_of("tests")
    for folder in {file.parent for file in FILES}:
        inside = [file for file in FILES if folder in file.parents]
        for each in every:
            kept = [file for file in inside if each.pytest_ignore_collect(file) is None]
            assert each.pytest_ignore_collect(folder) is (None if kept else True)
    name = "tests/unit/ops/recovery/test_lease.py"
    for words in ([name], [f"{name}::test_x"]):
        assert not any(each.pytest_ignore_collect((TESTS.parent / name).parent) for each in workers_of(*words))


class WorkerInteractor:
    """Stands for the plugin of this name in xdist's workers."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    @pytest.hookimpl
    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self.sent.append(f"begin of {nodeid}")

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: Any) -> None:
        self.sent.append(f"{report.when} {report.outcome}")


@pytest.mark.parametrize(
    ("options", "fewer"),
    [({"verbose": -1}, True), ({}, False), ({"verbose": -1, "durations": 3}, False)],
    ids=["quiet", "not quiet", "with durations"],
)
def test_a_quiet_run_is_sent_only_what_it_shows(options: dict[str, int], fewer: bool) -> None:
    manager, interactor = pytest.PytestPluginManager(), WorkerInteractor()
    manager.register(interactor)
    option = SimpleNamespace(**{"verbose": 0, "durations": None, "xmlpath": None, **options})
    session: Any = SimpleNamespace(config=SimpleNamespace(option=option, hook=manager.hook))
    workers_of("tests")[0].pytest_sessionstart(session)
    manager.hook.pytest_runtest_logstart(nodeid="a", location=())
    reports = [("setup", "passed"), ("call", "passed"), ("teardown", "passed"), ("setup", "failed"), ("call", "failed")]
    for when, outcome in (*reports, ("setup", "skipped"), ("teardown", "failed")):
        report = SimpleNamespace(when=when, outcome=outcome, passed=outcome == "passed")
        manager.hook.pytest_runtest_logreport(report=report)
    kept = ["call passed", "setup failed", "call failed", "setup skipped", "teardown failed"]
    if fewer:
        assert interactor.sent == kept
    else:
        assert len(interactor.sent) == 8
