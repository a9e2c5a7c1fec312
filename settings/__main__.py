"""`python -m settings check FILE...`: validates stack files without Pulumi. Exit 0, or 2 with every problem.

`python -m settings reference` writes docs/settings.md, which names every key.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from settings import hints, reference
from settings.errors import SettingsError
from settings.files import check, read_values, stack_name
from settings.text import format_count, wrap_for_stream


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return 0, or 2 if a file has problems."""
    parser = argparse.ArgumentParser(prog="python -m settings", description="Settings of the stacks.")
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="validate stack files: exit 0, or 2 with every problem and its key")
    checking.add_argument("files", nargs="+", type=Path, metavar="FILE", help="Pulumi.<stack>.yaml")
    writing = commands.add_parser("reference", help="write the reference of all keys")
    writing.add_argument("--out", type=Path, default=reference.PATH, metavar="FILE", help="default: %(default)s")
    given = parser.parse_args(arguments)
    if given.command == "reference":
        given.out.write_text(reference.text(), encoding="utf-8")
        sys.stdout.write(f"{given.out}: written\n")
        return 0
    return max([_check(path) for path in given.files])


def _check(path: Path) -> int:
    """Judge one file beside its siblings."""
    try:
        stack, others = check(path)
    except SettingsError as error:
        count = len(error.problems)
        sys.stderr.write(f"{path}: {count} problem{'s' * (count > 1)}\n")
        sys.stderr.writelines(f"{wrap_for_stream(f'  {problem}', sys.stderr)}\n" for problem in error.problems)
        return 2
    parts = [
        format_count(len(of), noun)
        for of, noun in ((stack.users, "user"), (stack.topics, "topic"), (stack.mirrors, "mirror"))
    ]
    sys.stdout.write(f"{path}: good ({', '.join(parts)})\n")
    found = hints(read_values(path), stack_name(path), others)
    sys.stdout.writelines(f"{wrap_for_stream(f'  hint: {hint}', sys.stdout)}\n" for hint in found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
