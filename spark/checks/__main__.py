"""`python -m spark.checks`: writes what follows from the checks: the names in `contract` and the table in the docs."""

import sys
from pathlib import Path

from spark.checks.registry import definitions

PROJECT = Path(__file__).resolve().parents[2]
NAMES = PROJECT / "contract" / "check_names.py"
PAGE = PROJECT / "docs" / "verification.md"
BEGIN, END = "<!-- checks: begin -->\n", "<!-- checks: end -->\n"


def names() -> str:
    """Return the module with the names, as contract/check_names.py holds it."""
    listed = "".join(f'    "{name}",\n' for name in definitions())
    return (
        '"""The names of the verification\'s checks in the report\'s order, written by `python -m spark.checks`."""\n\n'
        "from typing import Literal, get_args\n\n"
        f"CheckName = Literal[\n{listed}]\nCHECK_NAMES: tuple[CheckName, ...] = get_args(CheckName)\n"
    )


def page(text: str) -> str:
    """Return a page with its table of checks as they are now."""
    before, _, rest = text.partition(BEGIN)
    _, _, behind = rest.partition(END)
    rows = "".join(
        f"| `{one.name}` | {'' if one.needs_records else 'yes'} | {one.remedy.text} |\n"
        for one in definitions().values()
    )
    head = "| check | judged without records | what to do if it fails |\n|---|---|---|\n"
    return f"{before}{BEGIN}{head}{rows}{END}{behind}"


def main() -> int:
    """Write both files."""
    NAMES.write_text(names(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
