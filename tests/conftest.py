"""What all tests share: interrupts that reach their commands, parallel runs, the markers of JVM and nightly tests."""

import gc
import signal
import sys
from collections.abc import Iterator

import hypothesis
import pytest

from . import shares
from .support import java_regex
from .support.generated_cases import patient_profile

hypothesis.settings.register_profile("patient", parent=patient_profile())
hypothesis.settings.load_profile("patient")

# Fixtures that start a JVM, or that give a test what it starts one with. Each test below one is marked `jvm`.
JVM_FIXTURES = frozenset({"java", "keytool", "spark", "spark_jvm"})


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option for every case of what the other runs take a sample of."""
    parser.addoption("--nightly", action="store_true", help="also the tests marked `nightly`, and every case of others")


@pytest.fixture(scope="session")
def nightly(pytestconfig: pytest.Config) -> bool:
    """Whether every case is tried, where a run in the day tries a sample."""
    return bool(pytestconfig.getoption("--nightly"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that start a JVM, and leave those to the night that belong there."""
    for item in items:
        if not JVM_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.jvm)
    if config.getoption("--nightly"):
        return
    left = [item for item in items if item.get_closest_marker("nightly")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]


def pytest_configure(config: pytest.Config) -> None:
    """Share the files between the workers of a parallel run, and take interrupts again.

    A shell starts background jobs with SIGINT ignored, and what tests start inherits that. A request to end is an
    interrupt too: fixtures stop what they started.
    """
    shares.register(config)
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
