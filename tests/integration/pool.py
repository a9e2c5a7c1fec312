"""A pytest plugin: several pytest processes share a pool of test files, and each takes the next one when it is free.

A file is taken by creating a file of its name in the folder `--pool`, which succeeds for one process only. Files of
`EVERYWHERE` are run by each process that has them.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

# Searches what all tests before it left in its own sandbox.
EVERYWHERE = ("test_secrets.py",)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that names the folder."""
    parser.addoption("--pool", type=Path, help="run only the test files that this process is the first to claim there")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests of claimed files; None, for pytest's own loop, if there is no pool."""
    folder: Path | None = session.config.getoption("--pool")
    if folder is None or session.config.option.collectonly or session.testsfailed:
        return None
    items = _claimed(session.items, folder)
    item = next(items, None)
    while item is not None:
        following = next(items, None)  # fixtures that it needs too are kept
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


def _claimed(items: list[pytest.Item], folder: Path) -> Iterator[pytest.Item]:
    for path, of_file in groupby(items, key=lambda item: item.path):
        if path.name in EVERYWHERE or _is_first(folder / path.name):
            yield from of_file


def _is_first(claim: Path) -> bool:
    try:
        claim.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
