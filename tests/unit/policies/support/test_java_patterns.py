"""Patterns as MirrorMaker reads them, confirmed against the filters of Kafka 4.2 and 4.3."""

import pytest

from policies.support.java_patterns import (
    EVERYTHING,
    GROUPS_EXCLUDE,
    TOPICS_EXCLUDE,
    Beginning,
    Selection,
    alternatives,
    beginnings,
    matches,
    mistake,
    overlap,
    parts,
    samples,
    selects,
    with_dots_escaped,
)


def test_a_pattern_is_a_list_cut_at_its_commas() -> None:
    assert parts(" items , orders,a{1,2}") == ["items", "orders", "a{1", "2}"]
    assert parts(" ") == []
    assert matches(" items , orders", "orders") is True
    assert matches("(items,orders)", "orders") is True


def test_a_repetition_with_a_comma_is_a_mistake_because_it_is_cut() -> None:
    assert mistake("a{1,2}") == (
        r"a { begins a repetition such as {3}; one that means itself is written \{; "
        "MirrorMaker cuts the value at every comma, also within {1,2}"
    )
    assert matches("a{1,2}", "aa") is None


@pytest.mark.parametrize("pattern", ["items,", ",items", "items,,orders", ","])
def test_an_empty_entry_is_a_mistake(pattern: str) -> None:
    assert mistake(pattern) == "an entry of the list is empty"


@pytest.mark.parametrize("pattern", ["", "items", "items,orders", "items|orders", ".*", "[a-z&&[^x]]", TOPICS_EXCLUDE])
def test_what_java_compiles_is_no_mistake(pattern: str) -> None:
    assert mistake(pattern) is None


def test_an_expression_that_java_refuses_is_a_mistake() -> None:
    assert mistake("items,*") == "* repeats nothing"


def test_an_empty_pattern_matches_nothing() -> None:
    assert matches("", "items") is False
    assert matches("", "") is False


def test_a_name_beyond_ascii_is_not_judged() -> None:
    assert matches(".*", "überweisung") is None


def test_a_mirror_takes_what_is_included_and_not_excluded() -> None:
    assert selects("items|orders", "orders", "items") is True
    assert selects("items|orders", "orders", "orders") is False
    assert selects("items|orders", "orders", "other") is False


def test_one_pattern_that_cannot_be_judged_leaves_open_only_what_the_other_does_not_decide() -> None:
    unclear = r"\R"
    assert selects(unclear, "orders", "items") is None
    assert selects("items", unclear, "items") is None
    assert selects(unclear, "items", "items") is False
    assert selects("items", unclear, "orders") is False


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("items", True),
        ("__consumer_offsets", False),
        ("mm2-offset-syncs.a.internal", False),
        ("a.replica", False),
        ("a.checkpoints.internal", True),
        ("connect-configs", True),
    ],
)
def test_the_default_topics_are_those_of_kafka(name: str, taken: bool) -> None:
    assert Selection(EVERYTHING, TOPICS_EXCLUDE).selects(name) is taken


@pytest.mark.parametrize(("name", "taken"), [("shop", True), ("connect-x", False), ("console-consumer-1", False)])
def test_the_default_groups_are_those_of_kafka(name: str, taken: bool) -> None:
    assert Selection(EVERYTHING, GROUPS_EXCLUDE).selects(name) is taken


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"items|retail\..*", [("items", True), ("retail.", False)]),
        (r"(?:retail|shop)\..*", [("retail.", False), ("shop.", False)]),
        (r"(?<lob>retail|shop)\..*", [("retail.", False), ("shop.", False)]),
        (r"retail\.(orders|.*)", [("retail.orders", True), ("retail.", False)]),
        ("orders?", [("order", False)]),
        ("orders+", [("orders", False)]),
        ("orders{2}x", [("orders", False)]),
        ("orders{0}x", [("order", False)]),
        ("(retail)?shop", [("", False)]),
        ("(retail)+shop", [("retail", False)]),
        (r"retail\Q\E*", [("retai", False)]),
        ("(?=a)retail", [("", False)]),
        (r"\bretail", [("", False)]),
        ("retail|(?i)shop", [("", False)]),
        ("(?i:retail)", [("", False)]),
        ("retail.*|", [("retail", False), ("", True)]),
        (".*", [("", False)]),
        ("(a", [("", False)]),
        ("", []),
    ],
)
def test_every_alternative_has_the_prefix_of_its_names(pattern: str, texts: list[tuple[str, bool]]) -> None:
    assert sorted(beginnings(pattern), key=str) == sorted((Beginning(*each) for each in texts), key=str)


def test_alternatives_of_groups_that_multiply_without_end_are_cut_short() -> None:
    pattern = "(a|b)" * 20
    assert len(beginnings(pattern)) < 1000
    assert all(not each.whole for each in beginnings(pattern))


@pytest.mark.parametrize(
    ("first", "second", "candidates", "name"),
    [
        ("items|orders", "orders|stock", [], "orders"),
        (r"orders\..*", r".*\.eu", ["items", "orders.eu"], "orders.eu"),
        (r"orders\..*", "orders.*", [], "orders."),
        ("orders.+", "orders.*", [], "ordersx"),
        ("run-[0-9]", "run.*", [], "run-1"),
        (".*", ".*", [], "x"),
        (r"retail\..*", r"logistics\..*", [], None),
        (r"orders\..*", r".*\.eu", [], None),
        ("items", "items", ["other"], "items"),
        ("items", "", ["items"], None),
        (r"items|\R", "items", [], None),
    ],
)
def test_a_name_that_two_patterns_share_is_found_among_what_they_spell_out(
    first: str, second: str, candidates: list[str], name: str | None
) -> None:
    assert overlap(first, second, candidates) == name


def test_what_either_excludes_is_not_shared() -> None:
    assert overlap("items|orders", "items|orders", [], ["items"]) == "orders"
    assert overlap("items", "items", [], ["orders", "items"]) is None
    assert overlap("items", "items", [], [r"\R"]) is None


def test_alternatives_are_reported_as_they_are_written() -> None:
    assert alternatives(r"a\Q.|b\E*|[c|d]|(e|f)||\Qg") == [r"a\Q.|b\E*", "[c|d]", "(e|f)", r"\Qg"]


def test_samples_are_what_patterns_spell_out_and_begin_with() -> None:
    assert samples(["items", r"items|orders\..*", ""]) == ["items", "orders.", "orders.x", "orders.1"]


@pytest.mark.parametrize(
    ("pattern", "read"),
    [
        (r"items|\Q\E", ["items", r"\Q\E"]),
        (r"\Qa.b\E|\Q\E|c.d", [r"\Qa.b\E", r"\Q\E", "c.d"]),
        (r"\c\Q|a", [r"\c" + "\\", "a"]),
    ],
)
def test_quotations_that_are_empty_or_within_an_escape_can_be_cut(pattern: str, read: list[str]) -> None:
    assert alternatives(pattern) == read
    assert [with_dots_escaped(each) for each in read if "d" in each] == [r"c\.d"] * ("d" in pattern)
    assert with_dots_escaped(r"\Q\E") == ""
