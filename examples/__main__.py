"""`python -m examples`: writes the expected manifests of all examples and the README's table anew.

`python -m examples copy NAME FOLDER [--small]` makes a project of one's own from an example.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from examples.catalog import CopyError, copy, examples, table

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- topologies: begin -->\n", "<!-- topologies: end -->\n"


def with_table(readme: str) -> str:
    """Return the README with the present table between its marks; raises ValueError without them."""
    before, rest = readme.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    return before + BEGIN + table() + END + after


def write() -> None:
    """Write what is derived from the examples."""
    for example in examples():
        for stack in example.stacks:
            example.expected(stack).write_text(example.rendered(stack), encoding="utf-8")
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{len(examples())} examples written\n")


def main(arguments: Sequence[str]) -> int:
    """Run the command; return 0, or 2 if an example cannot be copied."""
    by_name = {example.name: example for example in examples()}
    parser = argparse.ArgumentParser(prog="python -m examples", description="Without a command: write derived files.")
    command = parser.add_subparsers(dest="command").add_parser("copy", help="make a project of one's own")
    command.add_argument("name", choices=by_name, metavar="NAME", help="name of the example")
    command.add_argument("folder", type=Path, metavar="FOLDER", help="new folder of the project")
    command.add_argument("--small", action="store_true", help="one broker a cluster, short intervals, no approval")
    given = parser.parse_args(arguments)
    if given.command is None:
        write()
        return 0
    try:
        files = copy(by_name[given.name], given.folder.absolute(), small=given.small)
    except CopyError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write("".join(f"{file}\n" for file in files))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
