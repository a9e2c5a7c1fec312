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


@dataclass(frozen=True)
class Subject:
    """An object of a stack file that messages are about.

    Attributes:
        key: Path of its key, such as `users[0]`; empty for the whole file.
        name: What messages call it, such as `user shop`.
    """

    key: str
    name: str

    def inside(self, path: str) -> "Subject":
        """Return a part of the object, which messages call by the object's name."""
        return Subject(f"{self.key}{'.' * bool(self.key)}{path}", self.name)

    def problem(
        self, field: str, rule: str, got: object = "", fix: str = "", *, why: str = "", key: str | None = None
    ) -> Problem:
        """Return a problem in the one form of all: `user shop: field must ... (got value; why). Fix.`

        Args:
            field: The field, as the message calls it.
            rule: What must be otherwise, from `must` on.
            got: The value, and behind it what is allowed.
            fix: One or more sentences.
            why: Reason of the rule, behind the value.
            key: Path of the field below the object, where it is not `field`.
        """
        value = "; ".join(part for part in (f"got {got}" if got != "" else "", why) if part)
        return self.hint(field if key is None else key, f"{field} {rule} ({value}). {fix.strip()}".rstrip())

    def hint(self, path: str, message: str) -> Problem:
        """Return a message about a field in words of its own."""
        return Problem((self.inside(path) if path else self).key, f"{self.name}: {message}")


class SettingsError(Exception):
    """A stack file that cannot be used; `problems` holds everything that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))
