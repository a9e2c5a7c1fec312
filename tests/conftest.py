"""What all tests share: interrupts that reach the commands which they start, and the order of parallel runs."""

import signal

import pytest
from xdist.scheduler import LoadFileScheduling


class OneSparkSession(LoadFileScheduling):
    """A file is run by one worker, and all files that share Spark's session by the same one."""

    def _split_scope(self, nodeid: str) -> str:
        shared = "tests/spark/"
        return shared if nodeid.startswith(shared) else str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> OneSparkSession:
    return OneSparkSession(config, log)


def pytest_configure() -> None:
    """Take interrupts again: a shell starts background jobs with SIGINT ignored, and what tests start inherits that.

    A request to end is one too: fixtures stop what they started.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
