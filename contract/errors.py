"""Errors that a verification and the commands share. None of them ever carries a secret."""


class VerificationError(Exception):
    """Base of all errors that end a verification with exit code 2."""


class RequestError(VerificationError):
    """The request is wrong; carries every problem found, not only the first."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))
