"""`python -m monitoring write`: writes the dashboards, the rule file and the tables of docs/monitoring.md.

`python -m monitoring check` exits with 1 and names what is stale; nothing is changed.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from monitoring import dashboards, tables
from monitoring.alerts import rendering
from monitoring.alerts.rendering import RUNBOOK_URL
from monitoring.dashboards import Documents, cluster, fleet, groups, mirror, pages, verification

ROOT = Path(__file__).parent.parent
PAGES = (fleet, mirror, groups, verification, cluster)
_HINT = "Run `venv/bin/python -m monitoring write` and commit what it writes.\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return 0, or 1 if something is stale."""
    parser = argparse.ArgumentParser(prog="python -m monitoring", description="What is generated for monitoring.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write", help="write dashboards, the rule file and the tables of docs/monitoring.md")
    commands.add_parser("check", help="exit 1 and name what is not as it would be written")
    return write() if parser.parse_args(arguments).command == "write" else check()


def write() -> int:
    """Write what is stale; return 0."""
    for path, text in stale():
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{_shown(path)}: {'removed' if text is None else 'written'}\n")
    return 0


def check() -> int:
    """Name what is stale; return 1 if anything is."""
    found = [path for path, _ in stale()]
    sys.stdout.writelines(f"{_shown(path)}: stale\n" for path in found)
    if found:
        sys.stderr.write(_HINT)
    return 1 if found else 0


def stale() -> Iterator[tuple[Path, str | None]]:
    """Yield each file that is not as it should be, with what it should hold; None where it should not be."""
    for path, text in _generated():
        if text is None or not path.exists() or path.read_text(encoding="utf-8") != text:
            yield path, text


def built() -> Documents:
    """Return every dashboard as it is drawn now, by its uid and in the order of the committed ones."""
    drawn = (pages.finished(each.page(RUNBOOK_URL).build()) for each in PAGES)
    return {document["uid"]: document for document in sorted(drawn, key=lambda each: str(each["uid"]))}


def _generated() -> Iterator[tuple[Path, str | None]]:
    drawn = built()
    files = {dashboards.FOLDER / f"{uid}.json": dashboards.text(document) for uid, document in drawn.items()}
    yield from files.items()
    yield from ((path, None) for path in sorted(dashboards.FOLDER.glob("*.json")) if path not in files)
    yield rendering.PATH, rendering.text()
    yield tables.PATH, tables.with_tables(tables.PATH.read_text(encoding="utf-8"), drawn)


def _shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


if __name__ == "__main__":
    sys.exit(main())
