"""Whose credentials a stack exports: those that another stack or a command logs in with, and no others."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from components.verification.verification import _access
from settings.users import User

from ...support.pulumi_engine import Engine, mirror, target, up
from ...support.recorded_program import PASSWORD, SOURCE_OUTPUTS, Run

SIBLING: dict[str, Any] = {
    "name": "back",
    "source": {"stack": "stg", "alias": "a", "user": "reader"},
    "target": {"alias": "b", "user": "other"},
    "topics": ["items"],
    "clients": {"source": "shop", "target": "shop-there"},
}
NAMES = ("reader", "shop", "billing", "writer")


def exported(folder: Path, *mirrors: dict[str, Any], beside: list[dict[str, Any]], **user: Any) -> Run:
    """The program beside a stack file with these mirrors; `user` is set at billing, which no mirror names."""
    (folder / "Pulumi.yaml").write_text("name: rt-inventory\nruntime: python\n")
    (folder / "Pulumi.east.yaml").write_text(yaml.safe_dump({"config": {"rt-inventory:mirrors": beside}}))
    users = [{"name": name, **(user if name == "billing" else {})} for name in NAMES]
    return up(Engine(), target(users=users, mirrors=list(mirrors)), root=folder)


def test_the_users_that_a_mirror_beside_it_names_are_exported_and_no_others(tmp_path: Path) -> None:
    seen = exported(tmp_path, beside=[SIBLING])
    assert seen.exports["userCredentials"] == {name: {"password": PASSWORD} for name in ("reader", "shop")}
    assert seen.exports["userPasswords"] == dict.fromkeys(("reader", "shop"), PASSWORD)
    assert {"userCredentials", "userPasswords"} <= seen.secrets


def test_a_mirror_from_another_stack_names_no_user_of_this_one(tmp_path: Path) -> None:
    elsewhere = {**SIBLING, "source": {**SIBLING["source"], "stack": "dev"}}
    assert exported(tmp_path, beside=[elsewhere]).exports["userCredentials"] == {}


def test_the_users_of_its_own_mirrors_are_exported_for_its_commands(tmp_path: Path) -> None:
    own = mirror(clients={"source": "rt-inv-app-dev-user", "target": "shop"})
    assert sorted(exported(tmp_path, own, beside=[]).exports["userCredentials"]) == ["shop", "writer"]


@pytest.mark.parametrize(
    "user",
    [{"exported": True}, {"aclSets": [{"set": "mirror-source", "topics": ["items"], "groups": ["g"]}]}],
    ids=["said so", "rights of a mirror"],
)
def test_a_user_for_a_stack_that_has_no_file_here_is_exported_if_its_own_settings_say_so(
    tmp_path: Path, user: dict[str, Any]
) -> None:
    assert list(exported(tmp_path, beside=[], **user).exports["userCredentials"]) == ["billing"]


def test_where_a_users_secret_is_stays_an_output_that_says_that_its_credentials_are_none(tmp_path: Path) -> None:
    users = exported(tmp_path, beside=[SIBLING]).exports["users"]
    assert {name: users[name].get("exported") for name in NAMES} == {
        "reader": None,
        "shop": None,
        "billing": False,
        "writer": False,
    }


def test_a_mirror_whose_user_its_source_does_not_export_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    users = {name: {**each, "exported": False} for name, each in SOURCE_OUTPUTS["users"].items()}
    engine = Engine(stacks={"dev": {**SOURCE_OUTPUTS, "users": users, "userCredentials": {}, "userPasswords": {}}})
    with pytest.raises(pulumi.RunError, match=r"source.user must be a user whose credentials stack dev exports"):
        up(engine, target(mirrors=[mirror()]), root=tmp_path)
    assert not engine.resources


def test_exporting_a_user_is_no_reason_to_verify_again() -> None:
    assert _access(User(name="billing", exported=True)) == _access(User(name="billing"))
    assert "exported" not in _access(User(name="billing"))
