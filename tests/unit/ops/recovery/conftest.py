"""The pair of stacks on which the commands of a recovery are typed."""

from pathlib import Path

import pytest

from tests.support.recovery_pair import Kept, known
from tests.support.recovery_project import AFTER, FAILED_OVER, Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


@pytest.fixture
def returned(project: Project) -> Project:
    """The pair after a failover."""
    project.pair, project.journal = known(active="target", state="stopped"), Kept(FAILED_OVER)
    project.declare(AFTER)
    return project
