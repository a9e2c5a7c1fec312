"""The way back as the program makes it: a mirror from the target to the source while a failback is under way."""

from typing import Any

import pulumi
import pytest

from components.guards import mirror_identity
from settings.mirrors import Mirror

from ...support.component_settings import mirror as settings_of
from ...support.pulumi_engine import Engine, mirror, target, up
from ...support.recorded_program import SOURCE_OUTPUTS, STATUS

BACK = ("stg", "mm2-failback")
STOPPED = {"active": "target", "state": "stopped"}
PREPARED, COPYING = {**STOPPED, "failback": "prepared"}, {**STOPPED, "failback": "copying"}
SETTLING = {"active": "target", "failback": "settling"}


@pytest.fixture(autouse=True)
def switched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RT_INVENTORY_SWITCH", "mm2")


def specs(**settings: Any) -> dict[tuple[str, str], Any]:
    """Specs of the mirrors that the program makes, by namespace and name."""
    engine = Engine()
    up(engine, target(mirrors=[mirror(**settings)]))
    return {place: inputs["spec"] for place, inputs in engine.all("v1:KafkaMirrorMaker2").items()}


def test_a_prepared_mirror_is_stopped_and_names_no_topic() -> None:
    found = specs(**PREPARED)
    assert sorted(name for _, name in found) == ["mm2", "mm2-failback"]
    flow = found[BACK]["mirrors"][0]
    assert flow["topicsPattern"] == "nothing/yet"
    for spec in found.values():
        assert {spec["mirrors"][0][kind]["state"] for kind in ("sourceConnector", "checkpointConnector")} == {"stopped"}


def test_a_copying_mirror_runs_and_the_other_direction_rests() -> None:
    found = specs(**COPYING)
    flow = found[BACK]["mirrors"][0]
    assert flow["topicsPattern"] == "items"
    assert "state" not in flow["sourceConnector"]
    assert "state" not in flow["checkpointConnector"]
    assert found[("stg", "mm2")]["mirrors"][0]["sourceConnector"]["state"] == "stopped"


def test_it_runs_from_the_target_to_the_source_as_the_users_that_the_mirror_has_there() -> None:
    back, forward = specs(**COPYING)[BACK], specs(**COPYING)[("stg", "mm2")]
    for key in ("alias", "bootstrapServers", "tls", "authentication"):
        assert back["target"][key] == forward["mirrors"][0]["source"][key]
        assert back["mirrors"][0]["source"][key] == forward["target"][key]
    assert back["target"]["authentication"]["username"] == "rt-inv-dev-user"


def test_it_has_a_group_and_topics_of_its_own_whose_factor_the_brokers_decide() -> None:
    spec = specs(groupId="mine", offsetStorageTopic="mine", **COPYING)[BACK]
    assert spec["target"]["groupId"] == "mm2-failback"
    assert spec["target"]["offsetStorageTopic"] == "mm2-failback-offsets"
    flow = spec["mirrors"][0]
    configs = (spec["target"]["config"], flow["sourceConnector"]["config"], flow["checkpointConnector"]["config"])
    factors = {value for config in configs for key, value in config.items() if key.endswith("replication.factor")}
    assert factors == {-1}


def test_it_sets_no_groups_acls_or_configurations_and_accepts_a_start_position() -> None:
    flow = specs(syncTopicAcls=True, **COPYING)[BACK]["mirrors"][0]
    source, checkpoint = flow["sourceConnector"], flow["checkpointConnector"]
    assert source["config"]["sync.topic.acls.enabled"] is False
    assert source["config"]["sync.topic.configs.enabled"] is False
    assert checkpoint["config"]["sync.group.offsets.enabled"] is False
    assert checkpoint["config"]["emit.checkpoints.enabled"] is True
    assert source["alterOffsets"] == {"fromConfigMap": {"name": "mm2-failback-connector-offsets"}}


def test_while_it_settles_only_the_mirror_itself_runs() -> None:
    found = specs(**SETTLING)
    assert list(found) == [("stg", "mm2")]
    assert "state" not in found[("stg", "mm2")]["mirrors"][0]["sourceConnector"]


@pytest.mark.parametrize("settings", [{}, STOPPED, PREPARED, COPYING, SETTLING])
def test_while_it_settles_no_group_is_put_where_it_stood_at_a_source_that_was_lost(settings: dict[str, Any]) -> None:
    flow = specs(**settings)[("stg", "mm2")]["mirrors"][0]
    assert (flow["groupsPattern"] == "nothing/yet") is (settings == SETTLING)


@pytest.mark.parametrize("settings", [PREPARED, COPYING])
def test_it_is_exported_with_its_request_like_any_mirror(settings: dict[str, Any]) -> None:
    seen = up(Engine(), target(mirrors=[mirror(**settings)]))
    fact, request = seen.exports["mirrors"]["mm2-failback"], seen.exports["verificationRequests"]["mm2-failback"]
    assert (fact["sourceCluster"], fact["targetCluster"]) == ("kafka-stg", "rt-inventory-dev")
    assert (fact["failback"], fact["active"], fact["state"]) == (
        settings["failback"],
        None,
        "running" if settings is COPYING else "stopped",
    )
    assert (request["source"]["alias"], request["target"]["alias"]) == ("es-tgt", "es-src")
    assert request["target"]["client_config"]["sasl.username"] == "rt-inv-dev-user"
    assert request["mirror"]["replication_factor"] is None
    assert {topic["replication_factor"] for topic in request["mirror"]["internal_topics"]} == {None}
    assert request["mirror"]["sync_group_offsets"] is False
    forward = seen.exports["verificationEnvironment"]["mm2"]
    back = seen.exports["verificationEnvironment"]["mm2-failback"]
    assert back["TARGET_PASSWORD"] == forward["SOURCE_PASSWORD"]
    assert seen.exports["mirrors"]["mm2"]["failback"] == settings["failback"]
    assert "verificationEnvironment" in seen.secrets


@pytest.mark.parametrize("settings", [PREPARED, COPYING, SETTLING])
def test_an_up_verifies_neither_direction(settings: dict[str, Any]) -> None:
    engine = Engine()
    seen = up(engine, target(mirrors=[mirror(**settings)], verification={"when": "always"}))
    assert set(seen.exports["verifications"].values()) == {None}


def test_nothing_is_written_into_what_comes_back() -> None:
    canary = {"when": "never", "canary": {"topic": "items"}}
    requests = up(Engine(), target(mirrors=[mirror()], verification=canary)).exports["verificationRequests"]
    assert requests["mm2"]["mirror"]["canary"]["topic"] == "items"
    requests = up(Engine(), target(mirrors=[mirror(**COPYING)], verification=canary)).exports["verificationRequests"]
    assert {name: request["mirror"]["canary"] for name, request in requests.items()} == {
        "mm2": None,
        "mm2-failback": None,
    }


def test_no_secret_is_copied_that_the_mirror_does_not_need_itself() -> None:
    engines = [Engine(), Engine()]
    for engine, settings in zip(engines, (STOPPED, COPYING), strict=True):
        up(engine, target(mirrors=[mirror(namespace="mirrors", **settings)]))
    assert engines[0].secrets() == engines[1].secrets()
    assert set(engines[1].all("v1:KafkaMirrorMaker2")) == {("mirrors", "mm2"), ("mirrors", "mm2-failback")}


def shipped(**settings: Any) -> Mirror:
    return settings_of(**mirror(**settings))


def before(*mirrors: Mirror) -> dict[str, Any]:
    """Outputs of this stack when it was last up."""
    known = {each.name: {**mirror_identity(each).document(), "failback": each.failback} for each in mirrors}
    return {"dev": SOURCE_OUTPUTS, "stg": {"mirrors": known}}


def test_its_coming_and_going_copies_nothing_again() -> None:
    forward = shipped(**PREPARED)
    for known, now in (
        ([shipped(**STOPPED)], PREPARED),
        ([forward, forward.failback_mirror()], COPYING),
        ([forward, forward.failback_mirror()], {}),
        ([forward, forward.failback_mirror()], {"reverse": {"topics": ["back"]}}),
    ):
        up(Engine(stacks=before(*known)), target(mirrors=[mirror(**now)]))


@pytest.mark.parametrize("now", [{}, SETTLING, STOPPED])
def test_one_that_copies_must_be_stopped_before_it_goes(now: dict[str, Any]) -> None:
    forward = shipped(**COPYING)
    engine = Engine(stacks=before(forward, forward.failback_mirror()))
    with pytest.raises(pulumi.RunError, match="mirror mm2: failback must be prepared for one `pulumi up`"):
        up(engine, target(mirrors=[mirror(**now)]))
    assert not engine.resources
    up(Engine(stacks=before(forward, forward.failback_mirror())), target(mirrors=[mirror(**PREPARED)]))


EVENT_STREAMS = {
    "type": "event-streams",
    "version": "11.2.0",
    "license": {"accept": True, "use": "CloudPakForIntegrationNonProduction"},
}


@pytest.mark.parametrize(
    ("settings", "of_mirror", "rest", "alters"),
    [
        ({}, {}, "stopped", True),
        ({}, {"configDefaults": False}, "stopped", False),
        ({"platform": {"type": "strimzi", "version": "0.45.0"}}, {}, "stopped", True),
        ({"platform": {**EVENT_STREAMS, "version": "11.5.0"}}, {}, "stopped", False),
        ({"platform": EVENT_STREAMS}, {}, "paused", False),
    ],
    ids=["Strimzi", "bare", "Strimzi 0.45", "Event Streams 11.5", "Event Streams 11.2"],
)
def test_commands_get_the_operators_capabilities(
    settings: dict[str, Any], of_mirror: dict[str, Any], rest: str, alters: bool
) -> None:
    engine = Engine(status={**STATUS, "kafkaListeners": STATUS["listeners"]})
    reported = up(engine, target(mirrors=[mirror(**of_mirror)], **settings)).exports["mirrors"]["mm2"]
    assert (reported["restState"], reported["altersOffsets"]) == (rest, alters)


@pytest.mark.parametrize("of_mirror", [{}, {"exactlyOnce": True}])
def test_commands_get_whether_records_are_copied_in_transactions(of_mirror: dict[str, Any]) -> None:
    engine = Engine(status={**STATUS, "kafkaListeners": STATUS["listeners"]})
    reported = up(engine, target(mirrors=[mirror(**of_mirror)])).exports["mirrors"]["mm2"]
    assert reported.get("exactlyOnce", False) is bool(of_mirror)
