"""A whole setting is written into a stack file and taken out again; not a character of the rest changes."""

from pathlib import Path

import pytest
import yaml

from ops.errors import OpsError
from ops.pulumi.stack_setting import change_setting, changed
from sandbox.state import PROJECT

KEY, VALUE = "rt-inventory:fence", {"topics": ["items", "a: b #"], "prefixes": ["store."]}
FILES = sorted({*PROJECT.glob("Pulumi.*.yaml"), *PROJECT.glob("examples/*/Pulumi.*.yaml")})
FORMS = {
    "comment at the end": "config:\n  a: 1\n  # of nothing\n",
    "no line end": "config:\n  a: {b: 1}",
    "windows": "config:\r\n  a: 1\r\n",
    "something behind": "config:\n  a:\n    - x: 1\nencryptionsalt: v1:x\n",
    "block of text": "config:\n  a: |\n    text\nencryptionsalt: v1:x\n",
    "list in braces": "config:\n  a: [1,\n    2] # both\n# end\n",
}


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_of_every_stack_file_of_this_repository(file: Path) -> None:
    text = file.read_text("utf-8")
    written = changed(text, KEY, VALUE, "why")
    assert yaml.safe_load(written)["config"][KEY] == VALUE
    assert f"{KEY}: # why" in written
    other = changed(written, KEY, {"topics": ["other"]}, "why")
    assert yaml.safe_load(other)["config"][KEY] == {"topics": ["other"]}
    assert changed(other, KEY, None, "why") == text == changed(text, KEY, None, "why")


@pytest.mark.parametrize("form", FORMS)
def test_of_files_in_other_forms(form: str) -> None:
    text = FORMS[form]
    written = changed(text, KEY, VALUE, "why")
    wanted = yaml.safe_load(text)
    wanted["config"][KEY] = VALUE
    assert yaml.safe_load(written) == wanted
    assert ("\r\n" in text) == ("\r\n" in written)
    assert changed(written, KEY, None, "why").rstrip("\n") == text.rstrip("\n")


@pytest.mark.parametrize("text", ["config: {a: 1}\n", "config:\n", "a: 1\n", "[]\n"])
def test_a_form_that_cannot_be_changed_in_place_is_named_with_what_to_write(tmp_path: Path, text: str) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises(OpsError, match=r'Write it by hand \(.*"prefixes": \["store\."\]'):
        change_setting(file, "fence", VALUE, "why")
    assert file.read_text("utf-8") == text


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OpsError, match="must be writable"):
        change_setting(tmp_path / "Pulumi.dev.yaml", "fence", VALUE, "why")
