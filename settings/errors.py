"""Problems of a stack file: one line each, with the path of the key."""

from collections.abc import Iterable
from dataclasses import dataclass

NAMESPACE = "rt-inventory"


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong: the key below `rt-inventory:` (empty for the whole file), and what must be otherwise."""

    key: str
    message: str

    def __str__(self) -> str:
        return f"{NAMESPACE}:{self.key}: {self.message}" if self.key else self.message


class SettingsError(Exception):
    """A stack file that cannot be used; `problems` holds everything that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))
