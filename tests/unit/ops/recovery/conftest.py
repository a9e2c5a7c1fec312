"""The pair of stacks on which the commands of a recovery are typed."""

from pathlib import Path

import pytest

from tests.support.recovery_pair import Kept, known
from tests.support.recovery_project import AFTER, FAILED_OVER, Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


@pytest.fixture
def returned(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The pair after a failover, with two records at the source that were not copied."""
    monkeypatch.setattr("ops.recovery.failback.Failback.to_be_emptied", lambda _: {"items-0": 2})
    project.pair, project.journal = known(active="target", state="stopped"), Kept(FAILED_OVER)
    project.declare(AFTER)
    return project
