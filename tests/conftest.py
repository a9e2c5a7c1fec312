"""What all tests share: interrupts that reach their commands, the order of parallel runs, the marker of JVM tests."""

import gc
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

from .support import java_regex
from .support.generated_cases import patient_profile

hypothesis.settings.register_profile("patient", parent=patient_profile())
hypothesis.settings.load_profile("patient")

ROOT = Path(__file__).parent.parent
# What takes longest comes first, so that no worker is left with it at the end: folders and files by their path.
LONGEST = (
    "tests/unit/spark/test_bulk.py",
    "tests/unit/spark/test_killed_jvm.py",
    "tests/unit/ops/test_new.py",
    "tests/unit/support/test_lanes.py",
    "tests/unit/spark/",
    "tests/unit/ops/test_pipeline_state_bucket.py",
    "tests/unit/ops/test_promote_command.py",
    "tests/unit/examples/",
    "tests/unit/sandbox/toolchain/test_setup_command.py",
    "tests/unit/components/",
    "tests/unit/ops/",
    "tests/unit/sandbox/",
)


# Fixtures that start a JVM, or that give a test what it starts one with. Each test below one is marked `jvm`.
JVM_FIXTURES = frozenset({"java", "keytool", "spark", "spark_jvm"})
# An argument of a test or fixture that starts Spark's session.
SPARK_SESSION = re.compile(r"\bspark: SparkSession\b")


class OneSparkSession(LoadFileScheduling):
    """A file is run by one worker, and all files that share Spark's session by the same one."""

    def __init__(self, config: pytest.Config, log: object) -> None:
        super().__init__(config, log)
        found = (ROOT / "tests" / "unit" / "spark").glob("test_*.py")
        self._with_session = {file.name for file in found if SPARK_SESSION.search(file.read_text("utf-8"))}

    def _split_scope(self, nodeid: str) -> str:
        file = Path(nodeid.partition("::")[0])
        if file.parent.name == "spark" and file.name in self._with_session:
            return "Spark's session"
        return str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> OneSparkSession:
    return OneSparkSession(config, log)


@pytest.fixture(scope="session", autouse=True)
def prompt_engine() -> Iterator[None]:
    """Pulumi's SDK spends a third of a program's time on what no stand-in for the engine needs."""
    if "pulumi.runtime.mocks" not in sys.modules:
        yield
        return
    from .support.prompt_engine import answering_at_once

    with answering_at_once():
        yield


@pytest.fixture(scope="session")
def java() -> str:
    """The `java` of a JDK, which compiles its source; without one the test is skipped."""
    found = java_regex.program()
    if found is None:
        pytest.skip("no JDK: JAVA_HOME, or java on PATH, must have jdk.compiler, which runs a source file (no JRE has)")
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start a JVM, and sort files by how long they take; the order within a file stays."""
    for item in items:
        if not JVM_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.jvm)
    items.sort(key=lambda item: _place(item.nodeid))


def _place(nodeid: str) -> int:
    return next((place for place, start in enumerate(LONGEST) if nodeid.startswith(start)), len(LONGEST))


def pytest_configure(config: pytest.Config) -> None:
    """Keep that order in parallel runs too, and take interrupts again.

    A shell starts background jobs with SIGINT ignored, and what tests start inherits that. A request to end is an
    interrupt too: fixtures stop what they started.
    """
    config.option.loadscopereorder = False
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    gc.disable()  # until all is collected: modules and tests stay to the end


def pytest_collection_finish() -> None:
    """Look for garbage only among what tests make, and less often.

    Passing over all modules again and again takes a fifth of the time of tests that run whole programs.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()
