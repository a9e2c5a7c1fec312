"""The commands that the README shows, read from its `sh` blocks."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
# Commands that are whole runs of their own: where each is run instead of line by line.
RUN_ELSEWHERE = {
    "make demo": "tests/sandbox/test_demo.py",
    "make demo KEEP=1": "tests/sandbox/test_demo.py",
    "make test": ".ci/run",
}


def commands() -> list[str]:
    """Every command line of every `sh` block, in order, comments and blank lines left out."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", README.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]
