"""An `up` that would change the active side without a command is refused before anything happens."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from components.guards import unrequested_switches
from components.kubernetes_objects import KubernetesAccess, UnreadableError
from settings.mirrors import SWITCH_VARIABLE
from settings.users import ACTIVE_LABEL

from ...support.component_settings import mirror as settings_of
from ...support.pulumi_engine import Engine, mirror, target, up
from ...support.recorded_program import SOURCE_OUTPUTS

AT_TARGET = {"active": "target", "state": "stopped"}


def before(active: str | None, name: str = "mm2") -> dict[str, Any]:
    """Outputs of this stack when it was last up, by a version that exported who is active or did not."""
    facts = {} if active is None else {"active": active}
    return {"dev": SOURCE_OUTPUTS, "stg": {"mirrors": {name: facts}}}


@pytest.fixture(autouse=True)
def nobody_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH_VARIABLE, raising=False)


@pytest.mark.parametrize(("known", "now"), [("target", {}), ("source", AT_TARGET)])
def test_an_up_without_a_command_is_refused_with_what_to_do(known: str, now: dict[str, Any]) -> None:
    engine = Engine(stacks=before(known))
    with pytest.raises(pulumi.RunError) as error:
        up(engine, target(mirrors=[mirror(**now)]))
    reported = str(error.value)
    assert f"mirror mm2: active must stay '{known}' (got '{now.get('active', 'source')}')" in reported
    for part in ("`python -m ops failover`", "`python -m ops failback`", "acceptSwitch: true"):
        assert part in reported
    assert not engine.resources


def test_a_preview_warns_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_, **__: said.append(text))
    engine = Engine(stacks=before("target"), preview=True)
    up(engine, target())
    assert ("stg", "mm2") in engine.all("v1:KafkaMirrorMaker2")
    assert [text for text in said if "mirror mm2: active must stay 'target'" in text]


@pytest.mark.parametrize("known", ["source", "target"])
def test_the_command_switches_the_mirror_that_it_names(monkeypatch: pytest.MonkeyPatch, known: str) -> None:
    monkeypatch.setenv(SWITCH_VARIABLE, "mm2")
    now = AT_TARGET if known == "source" else {}
    seen = up(Engine(stacks=before(known)), target(mirrors=[mirror(**now)]))
    assert seen.exports["mirrors"]["mm2"]["active"] == now.get("active", "source")


def test_it_switches_no_other_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH_VARIABLE, "other")
    with pytest.raises(pulumi.RunError, match="mirror mm2: active must stay"):
        up(Engine(stacks=before("target")), target())


def test_a_switch_that_the_mirror_accepts_is_made() -> None:
    seen = up(Engine(stacks=before("target")), target(mirrors=[mirror(acceptSwitch=True)]))
    assert seen.exports["mirrors"]["mm2"]["active"] == "source"


@pytest.mark.parametrize("known", [None, "target"])
def test_what_was_not_exported_and_what_stays_are_no_switch(known: str | None) -> None:
    seen = up(Engine(stacks=before(known)), target(mirrors=[mirror(**AT_TARGET)]))
    assert seen.exports["mirrors"]["mm2"]["active"] == "target"


def there(side: str) -> Callable[..., SimpleNamespace]:
    """The API server's Secret with the break-glass copy, whose label names a side."""
    return lambda *_: SimpleNamespace(metadata=SimpleNamespace(labels={ACTIVE_LABEL: side}))


def test_what_a_break_glass_failover_switched_is_no_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KubernetesAccess, "secret", there("target"))
    seen = up(Engine(stacks=before("source")), target(mirrors=[mirror(**AT_TARGET)]))
    assert seen.exports["mirrors"]["mm2"]["active"] == "target"


def test_an_old_checkout_does_not_undo_a_break_glass_failover(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KubernetesAccess, "secret", there("target"))
    with pytest.raises(pulumi.RunError, match=r"mirror mm2: active must stay 'target' \(got 'source'\)"):
        up(Engine(stacks=before("source")), target())


def test_a_preview_of_what_does_not_switch_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(KubernetesAccess, "secret", lambda *place: asked.append(place))
    up(Engine(stacks=before("source"), preview=True), target())
    assert not asked


def test_a_copy_that_cannot_be_read_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise UnreadableError("the API server answers 403")

    monkeypatch.setattr(KubernetesAccess, "secret", fail)
    with pytest.raises(pulumi.RunError, match="active must stay 'source'"):
        up(Engine(stacks=before("source")), target(mirrors=[mirror(**AT_TARGET)]))


def test_a_new_mirror_may_begin_with_either_side() -> None:
    assert unrequested_switches([settings_of(active="target")], before("source", "other")["stg"]["mirrors"], {}) == []


def test_both_kinds_of_accidents_are_reported_together() -> None:
    engine = Engine(stacks={"dev": SOURCE_OUTPUTS, "stg": {"mirrors": {"mm2": {"active": "target", "naming": "x"}}}})
    with pytest.raises(pulumi.RunError) as error:
        up(engine, target())
    assert "active must stay" in str(error.value)
    assert "naming must stay" in str(error.value)


def test_a_mirror_at_rest_is_not_verified_and_its_request_is_still_exported() -> None:
    for settings in (
        {"when": "on-change"},
        {"run": {"how": "job", "image": "registry.example.com/verification:1.2.3"}},
    ):
        engine = Engine()
        seen = up(engine, target(mirrors=[mirror(**AT_TARGET)], verification=settings))
        assert seen.exports["verifications"] == {"mm2": None}
        assert seen.exports["verificationRequests"]["mm2"]["mirror"]["name"] == "mm2"
        assert seen.exports["verificationEnvironment"]["mm2"]["SOURCE_PASSWORD"] == "source password"
        assert not {"verification:Run", "v1:Job"} & set(engine.kinds())
        running = Engine()
        up(running, target(verification=settings))
        assert {"verification:Run", "v1:Job"} & set(running.kinds())


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        (["items"], None, "failedOver must stay items (got none)"),
        (None, {"topics": ["items"]}, "failedOver must stay none (got items)"),
        (["items"], {"topics": ["items", "stock"]}, "failedOver must stay items (got items, stock)"),
    ],
)
def test_topics_that_are_failed_over_alone_change_by_a_command_only(
    monkeypatch: pytest.MonkeyPatch, was: list[str] | None, now: dict[str, Any] | None, words: str
) -> None:
    stacks = before("source")
    if was is not None:
        stacks["stg"]["mirrors"]["mm2"]["failedOver"] = {"topics": was}
    topics = ["items", "stock", "orders"]
    wanted = target(mirrors=[mirror(topics=topics, **({"failedOver": now} if now else {}))])
    monkeypatch.setattr(KubernetesAccess, "secret", there("source"))
    with pytest.raises(pulumi.RunError) as caught:
        up(Engine(stacks=stacks), wanted)
    assert words in str(caught.value)
    up(Engine(stacks=stacks, preview=True), wanted)
    monkeypatch.setenv(SWITCH_VARIABLE, "mm2")
    up(Engine(stacks=stacks), wanted)


def test_a_break_glass_failover_of_the_rest_clears_what_was_failed_over_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stacks = before("source")
    stacks["stg"]["mirrors"]["mm2"]["failedOver"] = {"topics": ["items"]}
    monkeypatch.setattr(KubernetesAccess, "secret", there("target"))
    seen = up(Engine(stacks=stacks), target(mirrors=[mirror(**AT_TARGET)]))
    assert "failedOver" not in seen.exports["mirrors"]["mm2"]
