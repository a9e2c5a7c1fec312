"""Which files configure the policy pack for a stack, and what two of them make together."""

import json
from pathlib import Path

import pytest

from ops.errors import OpsError
from ops.policy import judging


def project(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "Pulumi.yaml").write_text(f"name: {name}\nruntime: python\n", encoding="utf-8")
    return folder


def written(file: Path, content: object) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A pack in the project `shop`, with a configuration for its stack `stg`."""
    project(tmp_path, "shop")
    return written(tmp_path / "pack" / "config.stg.json", {}).parent


def test_the_packs_own_file_counts_first_then_the_one_beside_the_stack_file_then_a_given_one(pack: Path) -> None:
    beside = written(pack.parent / "policy.stg.json", {})
    given = pack.parent / "given.json"
    own = pack / "config.stg.json"
    assert judging.configuration_files(pack, pack.parent, "stg", None) == [own, beside]
    assert judging.configuration_files(pack, pack.parent, "acme/shop/stg", given) == [own, beside, given]
    assert judging.configuration_files(pack, pack.parent, "dev", None) == []


def test_the_packs_own_file_is_not_for_another_projects_stack_of_that_name(pack: Path) -> None:
    other = project(pack.parent / "other", "other")
    beside = written(other / "policy.stg.json", {})
    assert judging.configuration_files(pack, other, "stg", None) == [beside]


def test_one_file_is_given_to_pulumi_as_it_is_and_two_are_merged(tmp_path: Path) -> None:
    first = written(tmp_path / "first.json", {"a": {"minimum": 1, "kinds": []}, "b": "advisory", "c": "disabled"})
    second = written(tmp_path / "second.json", {"a": {"minimum": 2}, "b": {"minimum": 3}, "c": "mandatory"})
    with judging.merged_file([]) as file:
        assert file is None
    with judging.merged_file([first]) as file:
        assert file == first
    with judging.merged_file([first, second]) as file:
        assert file is not None
        assert json.loads(file.read_text(encoding="utf-8")) == {
            "a": {"minimum": 2, "kinds": []},
            "b": {"enforcementLevel": "advisory", "minimum": 3},
            "c": "mandatory",
        }
    assert not file.exists(), "the merged file must not stay"


def test_a_level_for_all_rules_counts_more_than_a_rules_own_in_an_earlier_file(tmp_path: Path) -> None:
    first = written(tmp_path / "first.json", {"a": {"enforcementLevel": "advisory", "minimum": 1}, "b": "disabled"})
    second = written(tmp_path / "second.json", {"all": "mandatory", "c": "advisory"})
    third = written(tmp_path / "third.json", {"all": {"options": 1}, "b": "advisory"})
    assert judging.merge_files([first, second]) == {"a": {"minimum": 1}, "all": "mandatory", "c": "advisory"}
    assert judging.merge_files([first, third])["a"] == {"enforcementLevel": "advisory", "minimum": 1}


def test_a_file_that_holds_no_object_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "given.json", [])
    with pytest.raises(OpsError, match=r"given\.json: must be an object with a key per rule \(got list\)"):
        judging.merge_files([written(tmp_path / "first.json", {}), file])
