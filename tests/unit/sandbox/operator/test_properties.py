"""The text of a Java properties file."""

from sandbox.operator.java_processes import properties


def test_a_value_with_line_ends_or_backslashes_stays_one_property() -> None:
    assert properties({"a": "x\ny\\z", "b c": True}) == "a=x\\ny\\\\z\nb\\ c=true\n"
