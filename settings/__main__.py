"""`python -m settings check FILE...`: validates stack files without Pulumi. Exit 0, or 2 with every problem."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from settings.errors import SettingsError
from settings.files import load


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the files named on the command line; return 0 if all are good, 2 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m settings", description="Settings of the stacks.")
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="validate stack files: exit 0, or 2 with every problem and its key")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE", help="Pulumi.<stack>.yaml")
    code = 0
    for path in parser.parse_args(arguments).files:
        try:
            stack = load(path)
        except SettingsError as error:
            sys.stderr.write(f"{path}: {len(error.problems)} problem{'s' * (len(error.problems) > 1)}\n")
            sys.stderr.writelines(f"  {problem}\n" for problem in error.problems)
            code = 2
        else:
            sys.stdout.write(
                f"{path}: good ({len(stack.users)} users, {len(stack.topics)} topics, {len(stack.mirrors)} mirrors)\n"
            )
    return code


if __name__ == "__main__":
    sys.exit(main())
