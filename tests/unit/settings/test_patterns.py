"""Regular expressions are judged as MirrorMaker does: by Java, against whole names."""

import pytest

from contract.java_patterns import problem
from settings import names


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("items", "items", True),
        ("items", "items.inventory", False),
        ("items.*", "items.inventory", True),
        (r"items\.inventory", "items-inventory", False),
        ("items.inventory", "items-inventory", True),
        ("a|b", "b", True),
        ("a|b", "ab", False),
        ("[ab].+", "b1", True),
        ("(?i)items", "ITEMS", True),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, name: str, expected: bool) -> None:
    assert problem(pattern) is None
    assert names.matches(pattern, name) is expected


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("a++b", "aab", "aa"),
        ("a*+b", "b", "a"),
        ("a?+b", "ab", "aab"),
        ("(?>a|ab)c", "ac", "abc"),
        (r"(?<line>a|b)-\k<line>", "a-a", "a-b"),
        (r"\Qa.b\E.*", "a.bc", "axbc"),
        (r"\Qa.b", "a.b", "axb"),
        (r"\p{Lower}+", "abc", "ABC"),
        (r"\P{Lower}+", "ABC", "abc"),
        (r"[\p{Alpha}_]+", "a_B", "a1"),
        (r"\pL\d", "a1", "11"),
        (r"a\z", "a", "ab"),
        ("(?<!x)a", "a", "xa"),
        # Python reads these too, and otherwise.
        ("[a-z&&[^b]]+", "ac", "ab"),
        ("[a-c&&[^b]]", "c", "b"),
        ("[a&&b]?", "", "a"),
        ("[a[bc]]", "c", "d"),
        ("[a-b[c]]", "c", "c]"),
        ("[[a]b]", "b", "ab]"),
        ("[[:alpha:]]", "l", "b"),
        (r"[\w&&[^bc]]", "a", "b"),
        (r"[\P{Lower}]", "A", "a"),
        (r"\0141", "a", "\x0c1"),
        (r"\p{Sc}.*", "$a", "a$"),
        (r"\H+", "ab", "a b"),
        (r"\h", "\u00a0", "\n"),
        (r"\x{61}", "a", "x{61}"),
        ("a(?i)b|c", "C", "AB"),
        ("(?-i)a", "a", "A"),
        ("(?i)k", "K", "\u212a"),
        (".", "a", "\u0085"),
        (r"\d", "1", "\u0663"),
    ],
)
def test_what_only_java_knows_or_reads_otherwise_is_understood(pattern: str, good: str, bad: str) -> None:
    assert problem(pattern) is None
    assert names.matches(pattern, good)
    assert not names.matches(pattern, bad)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"\X", "cannot be translated"),
        (r"\R", "cannot be translated"),
        (r"\bitems", "Java 17 and Java 19"),
        (r"\p{IsLatin}", "cannot be translated"),
        (r"(?i)\p{Lower}", "from one version of Java to the next"),
        ("(?x)a b", "flag x"),
        ("(?<=a+)b", "look-behind"),
        ("(?:ab|a)++", "possessive of a group"),
        (r"(a)+\1", "in the same alternative"),
        ("a{2}{3}", "{3} repeats nothing"),
        ("a{99999999999}", "at most 32767"),
        ("(?:a{3000}){3000}", "at most 32767"),
        ("(" * 60 + ")" * 60, "are nested"),
        ("[" * 60 + "a" + "]" * 60, "are nested"),
        (r"[a\[^b]", r"\^"),
        ("[a&b]", r"\&"),
        (r"\ud800", "surrogate"),
    ],
)
def test_what_cannot_be_translated_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    assert reason in str(problem(pattern))
    # Its message is the only one: it matches all and excludes nothing.
    assert names.matches(pattern, "anything")
    assert names.copied("anything", [".*"], [pattern])


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?P<name>a)", "(?<name>...)"),
        ("(?P=name)", "(?<name>...)"),
        ("(?<a_b>x)", "letters and digits"),
        ("(?#x)a", "no such comments"),
        ("(a)(?(1)b)", "no conditions"),
        ("(?a)b", "flags a and L"),
        ("(?iL)b", "flags a and L"),
        ("a{,3}", "{3}, {3,} or {3,5}"),
        ("a{", "{3}, {3,} or {3,5}"),
        ("a(", "unterminated"),
        ("*", "nothing to repeat"),
        ("[a", "unterminated character set"),
    ],
)
def test_what_java_refuses_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    assert reason in str(problem(pattern))


@pytest.mark.parametrize("pattern", [r"a\{x", "[{]a", "a{2}", "a{2,}", r"\p{Alpha}", r"\Q{\E"])
def test_braces_that_java_reads_are_no_mistake(pattern: str) -> None:
    assert problem(pattern) is None


def test_what_is_excluded_is_not_copied() -> None:
    assert names.copied("items", ["items", "orders"], ["orders"])
    assert not names.copied("orders", ["items", "orders"], ["or.*"])
    assert not names.copied("other", ["items", "orders"])


@pytest.mark.parametrize(
    ("pattern", "name", "bare"),
    [
        ("items", "items", False),
        (r"items\.eu", "items.eu", False),
        ("items.eu", "items.eu", True),
        ("items.*", None, False),
        ("items.+", None, False),
        ("items.{2}", None, False),
        ("a|b", None, False),
    ],
)
def test_a_plain_pattern_stands_for_one_name(pattern: str, name: str | None, bare: bool) -> None:
    assert names.literal(pattern) == name
    assert names.has_bare_dot(pattern) is bare


@pytest.mark.parametrize(
    ("ours", "theirs", "both"),
    [
        (["items"], ["orders"], []),
        (["items"], ["items"], ["items"]),
        (["items"], ["it.*", "items"], ["items"]),
        (["it.*"], ["items", "orders"], ["items"]),
        ([".*"], ["a|b"], [".*"]),
        (["a|b"], [".*"], ["a|b"]),
        (["a|b"], ["a|b"], ["a|b"]),
        (["a|b"], ["c|d"], []),
    ],
)
def test_two_lists_overlap_where_both_may_match(ours: list[str], theirs: list[str], both: list[str]) -> None:
    assert names.may_overlap(ours, theirs) == both
