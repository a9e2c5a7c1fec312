"""The one exception family of the set-up; every message says what to do."""

from pathlib import Path


class ToolchainError(Exception):
    """Something is missing or cannot be built. The message is complete; no traceback is needed."""


class CommandFailedError(ToolchainError):
    """A command of a step ended with another status than 0."""

    def __init__(self, argv: list[str], status: int, log: Path, last_lines: list[str]) -> None:
        self.argv = argv
        self.status = status
        self.log = log
        shown = "\n".join(f"  | {line}" for line in last_lines) or "  | (it wrote nothing)"
        super().__init__(
            f"  command   {' '.join(argv)}\n  status    {status}\n  last lines\n{shown}\n  full log  {log}",
        )


class StoppedError(ToolchainError):
    """The set-up is being stopped, so this step does not go on."""
