"""One login for both sides: the source stack's password at the target, a secret, and what its rotation changes."""

import json
from typing import Any

import pytest

from ...support.pulumi_engine import Engine, is_secret, mirror, revealed, target, up
from ...support.recorded_program import PASSWORD, SOURCE_OUTPUTS

SHOP = {**SOURCE_OUTPUTS["users"]["rt-inv-dev-user"], "secretName": "shop", "username": "shop"}
WORD = "the source's password"
USERS = [{"name": "writer"}, {"name": "shop"}]
SHOP_HERE = {
    "name": "shop",
    "acls": [
        {"type": "topic", "names": ["items"], "operations": ["Read", "Write", "Describe"]},
        {"type": "group", "names": ["*"], "operations": ["Read"]},
    ],
}
ADDRESS = {"bootstrapServers", "ca.crt", "client.properties"}


def dev(password: str = WORD, **login: Any) -> dict[str, Any]:
    """Outputs of the source's stack."""
    return {
        **SOURCE_OUTPUTS,
        "users": {**SOURCE_OUTPUTS["users"], "shop": {**SHOP, **login}},
        "userCredentials": {**SOURCE_OUTPUTS["userCredentials"], "shop": {"password": password}},
    }


def made(active: str = "source", source: dict[str, Any] | None = None, **settings: Any) -> Engine:
    engine = Engine(stacks={"dev": source or dev()})
    state = {"state": "stopped"} if active == "target" else {}
    flow = mirror(active=active, clients={"login": "shop"}, **state)
    up(engine, target(mirrors=[flow], **{"users": USERS, **settings}))
    return engine


def test_the_password_is_the_source_stacks_and_none_is_generated() -> None:
    engine = made()
    assert engine.secrets()["stg", "shop-credentials"] == {"password": WORD}
    assert engine.secrets()["stg", "writer-credentials"] == {"password": PASSWORD}
    assert [name for kind, name in engine.resources if "RandomPassword" in kind] == ["users-writer-password"]
    reference = {"name": "shop-credentials", "key": "password"}
    assert user(engine)["authentication"]["password"] == {"valueFrom": {"secretKeyRef": reference}}


def test_it_is_a_secret_wherever_it_goes_and_stands_nowhere_else() -> None:
    engine = made()
    assert is_secret(engine.one("v1:Secret", "shop-credentials")["stringData"])
    plain = {place: inputs for place, inputs in engine.resources.items() if WORD in json.dumps(open_(inputs))}
    assert plain == {}


def open_(value: Any) -> Any:
    """What a reader of the state sees: nothing of a secret."""
    if is_secret(value):
        return None
    if isinstance(value, dict):
        return {key: open_(each) for key, each in value.items()}
    return [open_(each) for each in value] if isinstance(value, list) else value


def test_a_switch_changes_the_address_and_nothing_of_the_login() -> None:
    before, after = (revealed(made(active).one("v1:Secret", "mm2-clients")["data"]) for active in ("source", "target"))
    assert {key for key in before if before[key] != after[key]} == ADDRESS
    assert set(before) == set(after)


def user(engine: Engine) -> Any:
    """The spec of the KafkaUser that both sides have."""
    return next(each["spec"] for each in engine.all("v1:KafkaUser").values() if each["metadata"]["name"] == "shop")


def generation(engine: Engine) -> str:
    return str(user(engine)["template"]["secret"]["metadata"]["annotations"]["rt-inventory/password-generation"])


def test_a_rotation_at_the_source_makes_the_operator_here_read_the_new_password_at_once() -> None:
    first, second = made(), made(source=dev("another", passwordGeneration=2))
    assert (generation(first), generation(second)) == ("dev-1", "dev-2")
    assert second.secrets()["stg", "shop-credentials"] == {"password": "another"}


@pytest.mark.parametrize(("number", "exported"), [(1, None), (2, 2)])
def test_a_stack_exports_which_generation_a_password_is(number: int, exported: int | None) -> None:
    seen = up(Engine(), target(users=[{"name": "writer"}, {"name": "shop", "passwordGeneration": number}]))
    assert seen.exports["users"]["shop"].get("passwordGeneration") == exported


def test_a_rotation_at_the_source_is_passed_on_and_makes_new_pods_of_demo_clients() -> None:
    def started_with(number: int) -> tuple[Any, Any]:
        engine = Engine(stacks={"dev": dev(passwordGeneration=number)})
        clients = {"image": "registry.example.com/demo-clients:1.0.0", "user": "shop", "topic": "items"}
        flow = mirror(clients={"login": "shop"})
        seen = up(engine, target(mirrors=[flow], users=[{"name": "writer"}, SHOP_HERE], demoClients=clients))
        (template, _) = (each["spec"]["template"] for each in engine.all("v1:Deployment").values())
        return template["metadata"]["annotations"], seen.exports["users"]["shop"].get("passwordGeneration")

    assert started_with(1) == ({"rt-inventory/password-generation": "1"}, None)
    assert started_with(2) == ({"rt-inventory/password-generation": "2"}, 2)
