from pathlib import Path

from sandbox.operator.layout import properties, write_private


def test_a_private_file_is_its_owners_alone_from_the_start(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "secret"
    assert write_private(file, "x")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert not write_private(file, "x")


def test_a_value_with_line_ends_or_backslashes_stays_one_property() -> None:
    assert properties({"a": "x\ny\\z", "b c": True}) == "a=x\\ny\\\\z\nb\\ c=true\n"
