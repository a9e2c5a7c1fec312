"""docs/settings.md names every key, says what it means, and is what the models say."""

from pathlib import Path

import pytest

from settings.__main__ import REFERENCE, main, meanings, models, reference
from settings.stack import Stack


def test_the_page_is_fresh() -> None:
    reported = "docs/settings.md is not what the models say: run `venv/bin/python -m settings reference`"
    assert REFERENCE.read_text(encoding="utf-8") == reference(), reported


def test_every_key_has_a_meaning() -> None:
    fields = {model: set(model.model_fields) for model in (Stack, *models())}
    assert {model: {name for name, words in meanings(model).items() if words} for model in fields} == fields


def test_every_top_level_key_is_described() -> None:
    reported = reference()
    assert all(f"- [`{field.alias}`](#" in reported for field in Stack.model_fields.values())


@pytest.mark.parametrize(
    "row",
    [
        "| `naming` | `identity`, `prefixed` | `identity` |",
        "| `readySeconds` | whole number, 1 to 86400 | `900` |",
        "| `partitions` | whole number, 1 or more | must be given |",
        "| `bootstrapServers` | list of: host:port | must be given |",
        "| `topicsExclude` | list of: regular expression | `mm2.*\\.internal`, `.*\\.replica`, `__.*` |",
        "| `storage` | [Storage](#storage) |  |",
        "| `protect` | true or false | `true` |",
        "| `xmx` | an amount of memory as Java writes it, such as 512m or 2g |  |",
    ],
)
def test_a_row_has_the_value_and_the_default(row: str) -> None:
    assert row in reference()


def test_the_page_is_written_where_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reference", "--out", str(tmp_path / "x.md")]) == 0
    assert (tmp_path / "x.md").read_text(encoding="utf-8") == reference()
    assert capsys.readouterr().out == f"{tmp_path / 'x.md'}: written\n"
