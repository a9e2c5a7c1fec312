"""The table of docs/doctor.md, written from the troubles: `python -m ops.doctor.page` brings the page up to date."""

import sys
from pathlib import Path

from ops.doctor.troubles import TROUBLES, remedy

PATH = Path(__file__).resolve().parents[2] / "docs" / "doctor.md"
BEGIN, END = "<!-- troubles: begin -->", "<!-- troubles: end -->"


def table() -> str:
    """Return a row a trouble; what a finding fills into its remedy stands there in capitals."""
    rows = ["| trouble | sign | remedy |", "|---|---|---|"]
    rows += [
        f"| `{one.name}` ({one.severity}) | {_cell(one.sign)} | {_cell(remedy(one))} |" for one in TROUBLES.values()
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
