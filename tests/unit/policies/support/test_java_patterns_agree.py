"""Two readers of Java's patterns, which share no code: that of settings and job, and that of the policy pack."""

import pytest

from contract import java_patterns as job
from policies.support.java_expressions import MistakeError, compiled
from policies.support.java_patterns import doubt, mistake, unverifiable

from ....support.generated_patterns import Patterns

SEED, PATTERNS = 23, 4000


def refused(pattern: str) -> str | None:
    """Why the policy pack refuses one expression."""
    try:
        return doubt(pattern)
    except MistakeError as error:
        return str(error)


def test_what_one_reader_refuses_the_other_one_refuses_too() -> None:
    patterns = Patterns(SEED)
    found = [(each, job.problem(each), refused(each)) for each, _ in (patterns.pattern() for _ in range(PATTERNS))]
    assert [one for one in found if (one[1] is None) != (one[2] is None)] == []
    assert PATTERNS // 3 < sum(one[1] is None for one in found) < PATTERNS


def test_what_both_can_judge_they_judge_alike() -> None:
    patterns, judged = Patterns(SEED), 0
    for _ in range(PATTERNS):
        pattern, names = patterns.pattern()
        if refused(pattern) is not None or (judge := compiled(pattern)) is None:
            continue
        judged += 1
        for name in filter(str.isascii, names):
            there = job.compiled(pattern).fullmatch(name) is not None
            assert (judge.fullmatch(name) is not None) is there, (pattern, name)
    assert judged > PATTERNS // 4


@pytest.mark.parametrize(
    "entries",
    [
        ["items", r"orders\..*"],
        ["(?i)items", "orders"],
        ["items", "(?i)orders"],
        [r"\Qitems", "orders"],
        [r"items", r"\Qorders"],
        [r"\Qit\E\\Q", "orders"],
        ["(items", "orders)"],
        ["(?<x>a)", "(?<x>b)"],
        ["(a)", r"(b)\1"],
        ["(?i:a)", "[a-c&&[^b]]"],
        ["items", ""],
    ],
)
def test_lists_are_refused_by_both(entries: list[str]) -> None:
    pack = mistake(",".join(entries)) or unverifiable(",".join(entries))
    assert (next(job.list_problems(entries), None) is None) is (pack is None)
