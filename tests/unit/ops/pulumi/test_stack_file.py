"""A setting changes in the stack file's text, one of a mirror or a whole one, and nothing else of the text does."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from contract import files
from ops.errors import OpsError
from ops.pulumi import stack_file
from ops.pulumi.stack_file import change_mirror, change_setting, changed, with_setting
from sandbox.state import PROJECT
from tests.support.stack_files import shipped

# In nobody's formatting: other indentation, quotes, spaces and comments wherever they may stand.
OWN = """\
# asked about this pair: the platform team
config:
    rt-inventory:mirrors:
    # the other line of business
    - name: 'other'   # never touched
      state: running
    -   name: "mm2"   # the one that counts

        # which side applications use
        active:   source      # `ops failover` changes it
        # set aside for the move of the data centre
        state: stopped # until monday
        # what is copied
        topics: [ items,   'items\\\\.inventory' ]
        resources:   # of each worker
            requests: { cpu: 500m,   memory: 1Gi }
    # how it is judged
    rt-inventory:verification: { when: on-change }
"""
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


def test_a_value_changes_where_it_stands() -> None:
    wanted = OWN.replace("active:   source ", "active:   target ")
    assert changed(OWN, "mm2", {"active": "target"}) == wanted


def test_a_new_setting_comes_behind_the_name_and_its_comment() -> None:
    wanted = OWN.replace(
        '"mm2"   # the one that counts\n', '"mm2"   # the one that counts\n        failback: copying\n'
    )
    assert changed(OWN, "mm2", {"failback": "copying"}) == wanted


def test_a_setting_goes_with_its_line_and_no_other() -> None:
    assert changed(OWN, "mm2", {"state": None}) == OWN.replace("        state: stopped # until monday\n", "")


def test_what_is_as_wanted_or_not_there_stays_as_it_is() -> None:
    assert changed(OWN, "mm2", {"active": "source", "failback": None}) == OWN


def test_several_settings_change_at_once() -> None:
    wanted = OWN.replace("active:   source ", "active:   target ")
    wanted = wanted.replace("        state: stopped # until monday\n", "")
    wanted = wanted.replace("# the one that counts\n", "# the one that counts\n        failback: prepared\n")
    assert changed(OWN, "mm2", {"active": "target", "state": None, "failback": "prepared"}) == wanted


def test_line_ends_of_windows_and_a_missing_last_one_stay(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.stg.yaml"
    text = "config:\r\n  rt-inventory:mirrors:\r\n    - name: mm2"
    file.write_bytes(text.encode())
    change_mirror(file, "mm2", {"state": "stopped"})
    assert file.read_bytes() == f"{text}\r\n      state: stopped".encode()
    change_mirror(file, "mm2", {"state": "running"})
    assert file.read_bytes() == f"{text}\r\n      state: running".encode()


@pytest.mark.parametrize(
    ("entry", "values", "wanted"),
    [
        ("{ name: mm2, topics: [a] }", {"state": "stopped"}, "{ name: mm2, state: stopped, topics: [a] }"),
        ("{ name: mm2, state: stopped }", {"state": None}, "{ name: mm2 }"),
        ("{state: stopped, name: mm2}", {"state": None}, "{name: mm2}"),
        ("{state: stopped, name: mm2}", {"state": "running"}, "{state: running, name: mm2}"),
        ("state: stopped\n      name: mm2", {"state": None}, "name: mm2"),
        ("name: mm2", {"state": "on"}, 'name: mm2\n      state: "on"'),
    ],
)
def test_other_forms_of_an_entry(entry: str, values: dict[str, str | None], wanted: str) -> None:
    head = "config:\n  rt-inventory:mirrors:\n    - "
    assert changed(f"{head}{entry}\n", "mm2", values) == f"{head}{wanted}\n"


@pytest.mark.parametrize("file", shipped(), ids=lambda file: f"{file.parent.name}-{file.name}")
def test_a_failover_and_its_way_back_leave_a_shipped_file_as_it_was(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    for mirror in yaml.safe_load(text)["config"].get("rt-inventory:mirrors") or []:
        name, before = mirror["name"], {key: mirror.get(key) for key in ("active", "state", "failback")}
        over = changed(text, name, {"active": "target", "state": "stopped", "failback": "copying"})
        entries = {each["name"]: each for each in yaml.safe_load(over)["config"]["rt-inventory:mirrors"]}
        assert entries[name] == {**mirror, "active": "target", "state": "stopped", "failback": "copying"}
        assert changed(over, name, before) == text


@pytest.mark.parametrize(
    "entry",
    [
        "<<: *base\n      name: mm2",
        "name: mm2\n      state: |\n        stopped\n      # what is copied\n      topics: [a]",
        "name: mm2\n      state: *word",
    ],
    ids=["merged", "a block", "an alias"],
)
def test_a_setting_that_stands_elsewhere_is_left_and_reported(tmp_path: Path, entry: str) -> None:
    file = tmp_path / "Pulumi.stg.yaml"
    text = f"base: &base\n  state: &word stopped\nconfig:\n  rt-inventory:mirrors:\n    - {entry}\n"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(OpsError, match=r"settings of mirror mm2 must stand in its own entry, .* \(without state\)"):
        change_mirror(file, "mm2", {"state": None})
    assert file.read_text(encoding="utf-8") == text


def test_a_link_to_the_file_stays_a_link_and_the_file_keeps_its_mode(tmp_path: Path) -> None:
    file, link = tmp_path / "real.yaml", tmp_path / "Pulumi.stg.yaml"
    file.write_text(OWN, encoding="utf-8")
    file.chmod(0o640)
    link.symlink_to(file)
    change_mirror(link, "mm2", {"active": "target"})
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert "target" in file.read_text(encoding="utf-8")


def test_edits_at_the_same_time_lose_nothing_of_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "Pulumi.stg.yaml"
    file.write_text("config: []\n")
    monkeypatch.setattr(files, "LOOK_S", 0.001)

    def add(name: str) -> None:
        def change(text: str) -> str:
            time.sleep(0.005)  # others begin meanwhile
            return f"{text}# {name}\n"

        stack_file.edit(file, change, "")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, map(str, range(16))))
    assert sorted(file.read_text().splitlines()) == sorted(["config: []", *(f"# {number}" for number in range(16))])


def test_a_file_that_another_command_does_not_leave_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "Pulumi.stg.yaml"
    file.write_text("config: []\n")
    monkeypatch.setattr(files, "LOCK_S", 0.1)
    with (
        files.alone_in(tmp_path),
        pytest.raises(OpsError, match=r"\(another process writes there for"),
    ):
        stack_file.edit(file, lambda text: f"{text}#\n", "")
    assert file.read_text() == "config: []\n"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OpsError, match=r"Pulumi.no.yaml: must be writable \(No such file"):
        change_mirror(tmp_path / "Pulumi.no.yaml", "mm2", {"state": "stopped"})


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_of_every_stack_file_of_this_repository(file: Path) -> None:
    text = file.read_text("utf-8")
    written = with_setting(text, KEY, VALUE, "why")
    assert yaml.safe_load(written)["config"][KEY] == VALUE
    assert f"{KEY}: # why" in written
    other = with_setting(written, KEY, {"topics": ["other"]}, "why")
    assert yaml.safe_load(other)["config"][KEY] == {"topics": ["other"]}
    assert with_setting(other, KEY, None, "why") == text == with_setting(text, KEY, None, "why")


@pytest.mark.parametrize("form", FORMS)
def test_of_files_in_other_forms(form: str) -> None:
    text = FORMS[form]
    written = with_setting(text, KEY, VALUE, "why")
    wanted = yaml.safe_load(text)
    wanted["config"][KEY] = VALUE
    assert yaml.safe_load(written) == wanted
    assert ("\r\n" in text) == ("\r\n" in written)
    assert with_setting(written, KEY, None, "why").rstrip("\n") == text.rstrip("\n")


@pytest.mark.parametrize("text", ["config: {a: 1}\n", "config:\n", "a: 1\n", "[]\n"])
def test_a_form_that_cannot_be_changed_in_place_is_named_with_what_to_write(tmp_path: Path, text: str) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises(OpsError, match=r'Write it by hand \(.*"prefixes": \["store\."\]'):
        change_setting(file, "fence", lambda _: VALUE, "why")
    assert file.read_text("utf-8") == text


def test_a_file_that_is_not_there_is_named_for_a_whole_setting_too(tmp_path: Path) -> None:
    with pytest.raises(OpsError, match="must be writable"):
        change_setting(tmp_path / "Pulumi.dev.yaml", "fence", lambda _: VALUE, "why")


def test_lists_by_name_are_written_on_one_line_and_taken_out_again() -> None:
    lists = {"topics": ["items"], "groups": ["a, b", 'quoted "c"']}
    text = changed(OWN, "mm2", {"failedOver": lists})
    assert yaml.safe_load(text)["config"]["rt-inventory:mirrors"][1]["failedOver"] == lists
    fewer = changed(text, "mm2", {"failedOver": {"topics": ["items"]}})
    assert len(fewer.splitlines()) == len(OWN.splitlines()) + 1
    assert changed(fewer, "mm2", {"failedOver": None}) == OWN


def test_lists_that_stand_on_lines_of_their_own_are_left() -> None:
    indent = "\n        failedOver:\n            topics: [items]\n        "
    block = OWN.replace("        active:", f"{indent}active:", 1)
    for value in (None, {"topics": ["stock"]}):
        with pytest.raises(ValueError, match=r"failedOver|topics"):
            changed(block, "mm2", {"failedOver": value})
