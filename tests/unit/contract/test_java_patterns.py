"""The reader of Java's patterns beside java.util.regex itself, on thousands of patterns and names by chance."""

from dataclasses import dataclass, field

import pytest

from contract.java_character_class import InvalidPatternError
from contract.java_patterns import compiled, problem

from ...support import java_regex
from ...support.generated_patterns import Patterns

SEED, PATTERNS = 19, 6000


@dataclass
class Outcome:
    """What came of all patterns."""

    compared: int = 0
    names: int = 0
    matched: int = 0
    refused_by_both: int = 0
    refused_here_only: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, pattern: str, names: list[str], said: list[bool] | str) -> None:
        """Hold one pattern against what Java says of it."""
        reason = problem(pattern)
        if reason is not None:
            self.refused_by_both += isinstance(said, str)
            self.refused_here_only += not isinstance(said, str)
            if isinstance(reason, InvalidPatternError) and not isinstance(said, str):
                self.wrong.append(f"{pattern!r} is good for Java (got {reason})")
            return
        if isinstance(said, str):
            self.wrong.append(f"{pattern!r} is {said}")
            return
        found = [compiled(pattern).fullmatch(name) is not None for name in names]
        self.compared += 1
        self.names += len(names)
        self.matched += sum(found)
        differing = [name for name, here, there in zip(names, found, said, strict=True) if here != there]
        if differing:
            self.wrong.append(f"{pattern!r} differs for {differing!r}")


def test_every_pattern_matches_what_java_matches_or_is_refused(java: str, capsys: pytest.CaptureFixture[str]) -> None:
    patterns = Patterns(SEED)
    cases = [patterns.pattern() for _ in range(PATTERNS)]
    outcome = Outcome()
    for (pattern, names), said in zip(cases, java_regex.judged(java, cases), strict=True):
        outcome.add(pattern, names, said)
    with capsys.disabled():
        print(  # noqa: T201 - the numbers are part of what the test says
            f"\n{PATTERNS} patterns (seed {SEED}): {outcome.compared} compared on {outcome.names} names, of which "
            f"{outcome.matched} match; refused by Java too {outcome.refused_by_both}, here only "
            f"{outcome.refused_here_only}; {len(outcome.wrong)} wrong"
        )
    assert not outcome.wrong
    assert outcome.compared > PATTERNS // 3
    assert outcome.matched > outcome.names // 10
