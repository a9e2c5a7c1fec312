"""Options that hold regular expressions."""

from policies.support.policy_builder import matches, unreadable


def test_the_whole_value_matches_one_expression_in_any_case() -> None:
    config = {"one": "lat.*", "many": ["main", "v[0-9]+"], "none": []}
    assert matches(config, "one", "Latest")
    assert matches(config, "many", "v12")
    assert not matches(config, "many", "v12-main")
    assert not matches(config, "none", "")


def test_what_cannot_be_read_matches_nothing_and_is_reported() -> None:
    config = {"many": ["*", "main"], "one": "("}
    assert matches(config, "many", "main")
    assert not matches(config, "many", "*")
    assert [*unreadable("topic items", config, "many", "one")] == [
        "topic items: option many must hold regular expressions (got *: nothing to repeat at position 0). "
        "It matches nothing.",
        "topic items: option one must hold regular expressions "
        "(got (: missing ), unterminated subpattern at position 0). It matches nothing.",
    ]
