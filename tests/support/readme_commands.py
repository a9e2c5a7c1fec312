"""The commands that the README shows, read from its `sh` blocks."""

from pathlib import Path

from tests.support import page_commands as shown

README = Path(__file__).parents[2] / "README.md"
# Commands that are whole runs of their own: where each is run instead of line by line.
RUN_ELSEWHERE = {
    "make demo": "tests/integration/demo/test_demo.py",
    "make demo KEEP=1": "tests/integration/demo/test_demo.py",
    "make test": ".ci/run",
    "kind create cluster": ".github/workflows/kind.yml",
    "make strimzi": "tests/unit/sandbox/demo/test_stack_files.py",
    "make demo CLUSTER=current": "tests/integration/demo/test_demo_current.py",
}


def commands() -> list[str]:
    """Every command line of every `sh` block, in order, comments and blank lines left out."""
    return shown.in_blocks(README)
