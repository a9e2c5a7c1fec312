"""The commands that a page shows: the lines of its `sh` blocks, and those that stand in its text."""

import re
from pathlib import Path

_BLOCK = re.compile(r"^( *)```sh\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_PROGRAM = re.compile(r"(?:pulumi|kubectl|make|venv/bin/\S+|python) ")
_WORDS_OF_A_COMMAND = 3
"""In a text `pulumi up` names something; with its stack it is to be typed."""


def in_blocks(page: Path) -> list[str]:
    """Every command line of every `sh` block, in order, comments and blank lines left out."""
    blocks = [block for _, block in _BLOCK.findall(page.read_text(encoding="utf-8"))]
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def in_text(page: Path) -> list[str]:
    """Every whole command that stands between backticks in a line of text."""
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", page.read_text(encoding="utf-8"))
    return [span for span in spans if _PROGRAM.match(span) and len(span.split()) >= _WORDS_OF_A_COMMAND]
