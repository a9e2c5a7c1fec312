"""Files appear whole, and those of a report for their owner alone."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.files import NewFile, replace_files


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_report_is_its_owners_alone_whatever_the_mask_and_the_file_before(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        replace_files([NewFile(path=path, parts=["{", "}"])])
    finally:
        os.umask(before)
    assert (path.read_text(encoding="utf-8"), mode(path)) == ("{}", 0o600)


def test_a_report_that_cannot_be_made_leaves_the_one_before_and_nothing_else(tmp_path: Path) -> None:
    def parts() -> Iterator[str]:
        yield "half"
        raise ValueError("the rest")

    (tmp_path / "report.json").write_text("old", encoding="utf-8")
    with pytest.raises(ValueError, match="the rest"):
        replace_files([NewFile(path=tmp_path / "report.json", parts=parts())])
    assert [(path.name, path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()] == [("report.json", "old")]
