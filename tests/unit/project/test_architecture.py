"""The pages that lead a reader through the code name files that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NAMED = re.compile(r"`((?:[\w.]+/)*[\w.]+\.(?:py|yaml|yml|json))`")
PAGES = ("CONTRIBUTING.md", "docs/architecture.md")
# Made by a test or a run, or a name with a place in it.
NOT_COMMITTED = {"alertmanager.yml", "index.json", "report.json", "policy.json"}


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page: str) -> None:
    names = set(NAMED.findall((ROOT / page).read_text(encoding="utf-8"))) - NOT_COMMITTED
    assert names
    packages = [path for path in ROOT.iterdir() if (path / "__init__.py").is_file()]
    missing = {
        name
        for name in names
        if not (ROOT / name).exists() and not any(next(package.rglob(name), None) for package in packages)
    }
    assert not missing
