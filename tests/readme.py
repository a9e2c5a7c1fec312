"""The commands that the README shows, read from its `sh` blocks."""

from pathlib import Path

from tests import shown

README = Path(__file__).parent.parent / "README.md"
# Commands that are whole runs of their own: where each is run instead of line by line.
RUN_ELSEWHERE = {
    "make demo": "tests/sandbox/test_demo.py",
    "make demo KEEP=1": "tests/sandbox/test_demo.py",
    "make test": ".ci/run",
    "kind create cluster": ".github/workflows/kind.yml",
    "make strimzi": "tests/plane/test_demo_stack_files.py",
    "make demo CLUSTER=current": "tests/sandbox/test_demo_current.py",
}


def commands() -> list[str]:
    """Every command line of every `sh` block, in order, comments and blank lines left out."""
    return shown.in_blocks(README)
