"""Java's expressions, judged as a Java 17 judged them when these tables were written."""

import pytest

from policies.rules.support.java_expressions import MistakeError, compiled, tokens

JUDGED = [
    ("items", "items", True),
    ("items", "items2", False),
    ("items.inventory", "itemsXinventory", True),
    (r"items\.inventory", "itemsXinventory", False),
    (r"\Qitems.inventory\E", "items.inventory", True),
    (r"\Qitems.inventory\E", "itemsXinventory", False),
    (r"\Qitems.inventory", "items.inventory", True),
    (r"a\Qbc\E+", "abcc", True),
    (r"a\Qbc\E+", "abcbc", False),
    (r"a\Q\E*", "aa", True),
    ("a*+a", "aaa", False),
    ("a++", "aaa", True),
    ("(?>a|ab)c", "abc", False),
    ("a{2}", "aa", True),
    ("a{2,}", "aaa", True),
    ("a{2147483647}", "aaa", False),
    ("(" * 50 + "a" + ")" * 50, "a", True),
    ("[a" * 50 + "]" * 50, "a", None),
    ("^items$", "items", True),
    (r"\Aitems\z", "items", True),
    (r"\p{Lower}+", "items", True),
    (r"\p{Lower}+", "Items", False),
    (r"\p{Lu}\p{IsAlphabetic}+", "Items", True),
    (r"\pL+", "Items", True),
    (r"\P{Alpha}+", "1.2-3", True),
    (r"\p{Punct}", "|", True),
    (r"\p{IsP}", ".", True),
    (r"\p{IsP}", "|", False),
    (r"[\p{Alnum}_.]+", "a_1.B", True),
    (r"[^\p{Alnum}]+", "a", False),
    (r"\h", "\t", True),
    (r"[\w.-]+", "a_b.c-d", True),
    ("[a-]", "-", True),
    ("[]a]", "]", True),
    (r"[\Q]-\E]", "-", True),
    (r"\x61\u0062\x{63}", "abc", True),
    ("(?i)items|ORDERS", "orders", True),
    ("(?i:i)tems", "Items", True),
    ("(?i:i)tems", "iTems", False),
    ("(?u)items", "items", True),
    (r"(?<first>a)\k<first>", "aa", True),
    ("(?!items).*", "orders", True),
    ("(?!items).*", "items", False),
    (r".*(?<!\.internal)", "a.internal", False),
    ("{2}", "a", None),
    ("[a-z&&[^x]]", "a", None),
    ("[a[bc]]", "b", None),
    (r"[\D.]", "a", True),
    (r"[\P{Alpha}.]", "a", None),
    (r"\R", "a", None),
    (r"\ca", "a", None),
    (r"\N{LATIN SMALL LETTER A}", "a", None),
    (r"\b{g}a", "a", None),
    (r"\p{IsGreek}", "a", None),
    ("a(?i)b", "aB", None),
    ("(?x) a", "a", None),
    ("(?-i:a)", "a", None),
    ("(?<=a|bc)d", "d", None),
    ("^?a", "a", None),
]
REFUSED = [
    ("*items", "* repeats nothing"),
    ("(+a)", "+ repeats nothing"),
    ("a**", "* repeats nothing"),
    ("a|?", "? repeats nothing"),
    ("(?i)*", "* repeats nothing"),
    ("(a", "a ( has no )"),
    ("a)", "a ) has no ("),
    ("[a", "a [ has no ]"),
    ("[]", "a [ has no ]"),
    ("[a[b]", "a [ has no ]"),
    ("[z-a]", "the range z-a runs backwards"),
    (r"[a-\d]", r"the range a-\d has no end"),
    ("a{3,2}", "the repetition {3,2} runs backwards"),
    ("a{,2}", r"a { begins a repetition such as {3}; one that means itself is written \{"),
    ("{stage}", r"a { begins a repetition such as {3}; one that means itself is written \{"),
    ("(?P<n>a)", "Java does not know the group (?P<"),
    ("(?P=n)", "Java does not know the group (?P="),
    ("(?#note)a", "Java does not know the group (?#n"),
    ("(a)(?(1)b|c)", "Java does not know the group (?(1"),
    ("(?<a_b>c)", "Java does not know the group (?<a"),
    (r"\y", r"Java does not know \y"),
    (r"a\E", r"Java does not know \E"),
    (r"[\g]", r"Java does not know \g"),
    (r"\xg", r"\x needs a hexadecimal number"),
    (r"\x{110000}", r"\x{110000} is no character"),
    (r"\k1", r"\k needs the name of a group: \k<name>"),
    (r"\p1", r"\p needs the name of a class: \p{Alpha}"),
    ("items\\", "it ends in a backslash"),
    ("a{2147483648}", "a repetition has at most 2147483647"),
    ("a{1," + "9" * 5000 + "}", "a repetition has at most 2147483647"),
    ("(" * 3000 + "a" + ")" * 3000, "more than 50 groups or sets stand within each other"),
    ("[a" * 3000 + "]" * 3000, "more than 50 groups or sets stand within each other"),
    ("[items\\", "a [ has no ]"),
]


@pytest.mark.parametrize(("expression", "name", "expected"), JUDGED)
def test_a_name_is_judged_as_java_does_or_not_at_all(expression: str, name: str, expected: bool | None) -> None:
    judge = compiled(expression)
    assert (None if judge is None else judge.fullmatch(name) is not None) is expected


@pytest.mark.parametrize(("expression", "reason"), REFUSED)
def test_what_java_refuses_is_refused_with_a_reason(expression: str, reason: str) -> None:
    with pytest.raises(MistakeError) as refused:
        tokens(expression)
    assert str(refused.value) == reason
