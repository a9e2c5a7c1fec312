"""What all tests share: interrupts that reach the commands which they start."""

import signal


def pytest_configure() -> None:
    """Take interrupts again: a shell starts background jobs with SIGINT ignored, and what tests start inherits that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
