"""The tables of docs/benchmarks.md are those of the results that are kept."""

import pytest

from benchmarks.tables import DOCUMENT, filled


def test_the_document_shows_the_kept_results() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert filled(text) == text


def test_a_document_without_the_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="must have <!-- verification -->"):
        filled("# Benchmarks\n")
