"""`make help` names every target that has an explanation, in lines of 80 characters."""

import re

from tests.support.make_targets import ROOT, make


def test_the_list_of_targets_fits_80_columns_and_leaves_none_out() -> None:
    shown = make("help").stdout
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert re.findall(r"^  make ([a-z-]+)", shown, re.MULTILINE) == targets
    assert max(map(len, shown.splitlines())) <= 80
