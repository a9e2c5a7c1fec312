"""`python -m examples`: writes the expected manifests of all examples and the README's table anew."""

import sys
from pathlib import Path

from examples.catalog import examples, table

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- topologies: begin -->\n", "<!-- topologies: end -->\n"


def with_table(readme: str) -> str:
    """Return the README with the present table between its marks; raises ValueError without them."""
    before, rest = readme.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    return before + BEGIN + table() + END + after


def main() -> int:
    """Write what is derived from the examples; return 0."""
    for example in examples():
        for stack in example.stacks:
            example.expected(stack).write_text(example.rendered(stack), encoding="utf-8")
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{len(examples())} examples written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
