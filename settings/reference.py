"""The reference of all keys of a stack file, as Markdown."""

from pathlib import Path

PATH = Path("docs/settings.md")


def text() -> str:
    """Return the whole document."""
    return ""
