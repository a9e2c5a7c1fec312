"""`pulumi stack init` leaves the shipped stack files as they are, but for the salt that it adds."""

from pathlib import Path

import pytest

from tests.support.stack_files import ROOT, as_pulumi_writes, shipped


@pytest.mark.parametrize("file", shipped(), ids=lambda file: file.relative_to(ROOT).as_posix())
def test_an_init_adds_its_salt_and_changes_nothing_else(file: Path) -> None:
    assert as_pulumi_writes(file) == file.read_text(encoding="utf-8"), "run `python -m tests.support.stack_files`"
