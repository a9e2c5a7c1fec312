"""The table of known issues in docs/doctor.md: `python -m ops.doctor.reference` writes it."""

import sys
from pathlib import Path

from ops.doctor.known_issues import KNOWN_ISSUES, remedy

PATH = Path(__file__).resolve().parents[2] / "docs" / "doctor.md"
BEGIN, END = "<!-- known issues: begin -->", "<!-- known issues: end -->"


def table() -> str:
    """Return a Markdown table, an issue a row; what a finding fills into its remedy is in capitals."""
    rows = ["| trouble | sign | remedy |", "|---|---|---|"]
    rows += [
        f"| `{one.name}` ({one.severity}) | {_cell(one.sign)} | {_cell(remedy(one))} |" for one in KNOWN_ISSUES.values()
    ]
    return "\n".join(rows)


def text(page: str) -> str:
    """Return a page with the present table between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def _cell(words: str) -> str:
    return words.replace("|", "\\|")


if __name__ == "__main__":
    PATH.write_text(text(PATH.read_text("utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PATH}: written\n")
