"""What a mirror's settings turn into: names of connectors, namespaces, and the direction the other way round."""

import re
from typing import Any

import pytest

from settings import hints, parse
from settings.errors import SettingsError
from settings.mirrors import BROKERS_DECIDE, Mirror

from ...support.stack_values import SOURCE, TARGET, with_value


def made(**values: object) -> Mirror:
    result = with_value(TARGET, "operator", {"allNamespaces": True})
    for key, value in values.items():
        result = with_value(result, f"mirrors/0/{key}", value)
    return parse(result).mirrors[0]


def test_connectors_are_named_after_both_ends() -> None:
    assert made().connectors == {
        "source": "es-src->es-tgt.MirrorSourceConnector",
        "checkpoint": "es-src->es-tgt.MirrorCheckpointConnector",
    }


def test_a_mirror_lives_with_its_target_unless_it_has_a_namespace_of_its_own() -> None:
    assert made().home("passive") == "passive"
    assert made(namespace="mirrors").home("passive") == "mirrors"


def test_the_opposite_of_a_mirror_runs_the_other_way_round_with_lists_and_names_of_its_own() -> None:
    reverse = {"topics": ["audit"], "topicsExclude": ["x"], "groups": ["app"], "groupsExclude": ["y"]}
    names = {"groupId": "g", "configStorageTopic": "c", "offsetStorageTopic": "o", "statusStorageTopic": "s"}
    mirror = made(naming="prefixed", reverse=reverse, refreshTopicsSeconds=7, replicas=2, **names)
    reversed_mirror = mirror.reverse_mirror()
    assert (reversed_mirror.name, reversed_mirror.reverse) == ("mm2-reverse", None)
    assert (reversed_mirror.source.alias, reversed_mirror.source.stack) == ("es-tgt", None)
    assert (reversed_mirror.target.alias, reversed_mirror.target.user) == ("es-src", "reader")
    assert (reversed_mirror.topics, reversed_mirror.topics_exclude) == (("audit",), ("x",))
    assert (reversed_mirror.groups, reversed_mirror.groups_exclude) == (("app",), ("y",))
    assert reversed_mirror.connect_group == "mm2-reverse"
    assert set(reversed_mirror.storage_topics.values()) == {
        "mm2-reverse-configs",
        "mm2-reverse-offsets",
        "mm2-reverse-status",
    }
    assert (reversed_mirror.naming, reversed_mirror.refresh_topics_seconds, reversed_mirror.replicas) == (
        "prefixed",
        7,
        2,
    )


def test_a_mirror_without_reverse_has_no_opposite() -> None:
    with pytest.raises(ValueError, match="mirror mm2: has no reverse"):
        made().reverse_mirror()


def test_two_directions_of_other_topics_may_keep_their_names() -> None:
    assert made(reverse={"topics": ["audit"]}).reverse is not None


def test_a_mirrors_workers_run_the_clusters_kafka_unless_they_have_a_version_of_their_own() -> None:
    stack = parse(with_value(TARGET, "cluster/version", "4.2.0"))
    assert (stack.kafka_version, stack.mirror_version(stack.mirrors[0])) == ("4.2.0", "4.2.0")
    assert stack.mirror_version(made(version="4.3.0")) == "4.3.0"
    assert parse(TARGET).kafka_version == "4.3.1"


def test_from_where_a_topic_counts_belongs_to_one_direction() -> None:
    mirror = made(naming="prefixed", reverse={"topics": ["audit"]}, countsFrom={"items": {"offsets": {"0": 12}}})
    assert mirror.counts_from["items"].offsets == {"0": 12}
    assert not mirror.reverse_mirror().counts_from


def test_applications_log_in_as_the_user_of_the_active_side() -> None:
    clients = {"source": "reader", "target": "writer"}
    mirror = made(clients=clients)
    assert (mirror.active, mirror.clients_user, mirror.clients_secret) == ("source", "reader", "mm2-clients")
    mirror = made(clients=clients, active="target", state="stopped")
    assert (mirror.clients_user, mirror.clients_secret) == ("writer", "mm2-clients")
    assert mirror.source_users == {"source.user": "reader", "clients.source": "reader"}
    assert (made().clients_user, made().clients_secret, made().source_users) == (None, None, {"source.user": "reader"})


def test_who_is_active_is_said_by_the_forward_direction_only() -> None:
    clients = {"source": "reader", "target": "writer"}
    mirror = made(naming="prefixed", reverse={"topics": ["audit"]}, active="target", clients=clients)
    assert (mirror.reverse_mirror().active, mirror.reverse_mirror().clients) == ("source", None)


@pytest.mark.parametrize(
    ("settings", "rests"),
    [
        ({}, False),
        ({"state": "paused"}, False),
        ({"state": "stopped"}, True),
        ({"state": "stopped", "active": "target"}, True),
        ({"naming": "prefixed", "active": "target"}, False),
        ({"naming": "prefixed", "active": "target", "state": "paused"}, True),
    ],
)
def test_a_mirror_rests_when_it_is_stopped_or_paused_after_a_switch(settings: dict[str, str], rests: bool) -> None:
    assert made(**settings).is_at_rest is rests


@pytest.mark.parametrize(("version", "state"), [("11.2.0", "paused"), ("11.3.0", "stopped")])
def test_a_target_can_be_active_whatever_the_operator_can_do(version: str, state: str) -> None:
    license_ = {"accept": True, "use": "CloudPakForIntegrationNonProduction"}
    platform = {"type": "event-streams", "version": version, "license": license_}
    values = with_value(TARGET, "platform", platform)
    for key, value in {"active": "target", "state": state}.items():
        values = with_value(values, f"mirrors/0/{key}", value)
    assert parse(values).mirrors[0].is_at_rest
    with pytest.raises(SettingsError, match=f"state must be {state} where target is active"):
        parse(with_value(values, "mirrors/0/state", "running"))


def test_clients_of_an_external_source_are_those_of_the_target_only() -> None:
    external = {"name": "cloud", "cluster": {"bootstrapServers": ["cloud:9093"]}, "secret": {"name": "login"}}
    values = with_value(TARGET, "mirrors/0/source", {"alias": "es-src", "external": external})
    mirror = parse(with_value(values, "mirrors/0/clients", {"target": "writer"})).mirrors[0]
    assert (mirror.clients_user, mirror.clients_secret) == (None, None)


@pytest.mark.parametrize(
    ("workers", "source", "refused"),
    [
        ("4.3.1", "2.0.1", True),
        ("4.3.1", "1.1.1", True),
        ("4.0.0", "2.0.1", True),
        ("4.3.1", "2.1.0", False),
        ("4.3.1", "2.10.0", False),
        ("4.3.1", None, False),
        ("3.9.1", "1.1.1", False),
    ],
)
def test_a_source_is_refused_that_the_workers_cannot_read(workers: str, source: str | None, refused: bool) -> None:
    external = {"name": "earlier", "cluster": {"bootstrapServers": ["old:9092"]}, "authentication": "none"}
    external |= {"kafkaVersion": source} if source else {}
    values = with_value(TARGET, "mirrors/0/source", {"alias": "es-src", "external": external})
    values = with_value(values, "mirrors/0/version", workers)
    if not refused:
        assert parse(values).mirrors[0].source.external is not None
        return
    with pytest.raises(SettingsError) as error:
        parse(values)
    reported = f"kafkaVersion must be 2.1.0 or later for workers of Kafka {workers} (got {source}"
    assert reported in str(error.value)
    assert "KIP-896" in str(error.value)


@pytest.mark.parametrize(
    ("login", "reported"),
    [
        ({}, "secret must be given with authentication scram-sha-512 (got nothing)"),
        ({"authentication": "tls"}, "secret must be given with authentication tls (got nothing)"),
        ({"authentication": "none", "username": "me"}, "username must not be given with authentication none"),
        ({"authentication": "none", "secret": {"name": "login"}}, "secret must not be given with authentication none"),
        ({"authentication": "none"}, None),
    ],
)
def test_an_external_source_has_a_secret_unless_it_lets_everybody_in(
    login: dict[str, object], reported: str | None
) -> None:
    external = {"name": "open", "cluster": {"bootstrapServers": ["open:9092"]}, **login}
    values = with_value(TARGET, "mirrors/0/source", {"alias": "es-src", "external": external})
    if reported is None:
        assert parse(values).mirrors[0].source.external is not None
        return
    with pytest.raises(SettingsError) as error:
        parse(values)
    assert reported in str(error.value)


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        ({"items": {}}, "countsFrom.items must have time or offsets (got neither)"),
        ({"items": {"time": "2026-01-31T12:00:00Z", "offsets": {"0": 1}}}, "must have time or offsets (got both)"),
        ({"other": {"offsets": {"0": 1}}}, "countsFrom must name topics that it copies (got other)"),
        ({"items": {"time": "2026-01-31"}}, "a time in UTC in quotes"),
    ],
)
def test_what_does_not_say_from_where_a_topic_counts_is_reported(value: object, reported: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse(with_value(TARGET, "mirrors/0/countsFrom", value))
    assert reported in str(error.value)


def test_the_way_back_runs_the_other_way_round_and_leaves_to_the_source_what_is_declared_there() -> None:
    names = {"groupId": "g", "configStorageTopic": "c", "offsetStorageTopic": "o", "statusStorageTopic": "s"}
    copied = {"syncTopicAcls": True, "syncTopicConfigsSeconds": 5, "internalTopics": "declared", "replicas": 2}
    mirror = made(active="target", state="stopped", failback="copying", **names, **copied)
    back = mirror.failback_mirror()
    assert back.annotations["pulumi.com/patchForce"] == "true", "one of an `up` that was killed is taken over"
    assert (back.name, back.connect_group, back.state, back.active) == (
        "mm2-failback",
        "mm2-failback",
        "running",
        "source",
    )
    assert set(back.storage_topics.values()) == {f"mm2-failback-{kind}" for kind in ("configs", "offsets", "status")}
    assert (back.source.alias, back.target.alias, back.target.user) == ("es-tgt", "es-src", "reader")
    assert (back.topics, back.groups, back.replicas) == (mirror.topics, mirror.groups, 2)
    assert (back.sync_group_offsets, back.emit_checkpoints) == (False, True)
    assert (back.sync_topic_acls, back.sync_topic_configs, back.sync_topic_configs_seconds) == (False, False, None)
    assert (back.replication_factor, back.internal_topics) == (BROKERS_DECIDE, "created")
    assert back.connectors["source"] == "es-tgt->es-src.MirrorSourceConnector"


def test_a_way_back_that_is_prepared_is_stopped_and_matches_no_topic_of_kafka() -> None:
    back = made(active="target", state="stopped", failback="prepared").failback_mirror()
    assert back.state == "stopped"
    assert not re.fullmatch(r"[A-Za-z0-9._-]+", back.topics[0])


@pytest.mark.parametrize("settings", [{}, {"active": "target", "failback": "settling"}])
def test_without_a_way_back_there_is_no_mirror_of_it(settings: dict[str, str]) -> None:
    mirror = made(**settings)
    assert not mirror.has_failback_mirror
    with pytest.raises(ValueError, match="mirror mm2: has no failback under way"):
        mirror.failback_mirror()


@pytest.mark.parametrize(
    ("settings", "verified"),
    [
        ({}, True),
        ({"state": "stopped"}, False),
        ({"active": "target", "failback": "settling"}, False),
        ({"active": "target", "state": "stopped", "failback": "copying"}, False),
    ],
)
def test_an_up_verifies_no_mirror_at_rest_and_none_that_is_on_its_way_back(
    settings: dict[str, str], verified: bool
) -> None:
    mirror = made(**settings)
    assert mirror.is_verified is verified
    assert not mirror.has_failback_mirror or not mirror.failback_mirror().is_verified


def test_a_reverse_knows_nothing_of_a_failback() -> None:
    mirror = made(active="target", state="stopped", failback="copying", reverse={"topics": ["audit"]})
    assert mirror.reverse_mirror().failback is None


def test_a_distance_belongs_to_the_direction_that_reads_over_it() -> None:
    there = {"stack": "dev", "alias": "es-src", "user": "reader", "latencyMs": 100}
    mirror = made(source=there, reverse={"topics": ["orders"]}, naming="prefixed")
    assert mirror.source.consumer_defaults == {"receive.buffer.bytes": -1}
    assert mirror.reverse_mirror().source.consumer_defaults == {}
    assert made().source.consumer_defaults == {}


@pytest.mark.parametrize(
    ("config", "latency", "hinted"),
    [
        ({}, 100, True),
        ({"socket.send.buffer.bytes": 102_400}, 100, True),
        ({"socket.send.buffer.bytes": -1}, 100, False),
        ({}, None, False),
    ],
)
def test_brokers_at_a_distance_that_keep_a_small_buffer_are_hinted_at(
    config: dict[str, int], latency: int | None, hinted: bool
) -> None:
    source = with_value(SOURCE, "cluster/config", config)
    target = with_value(TARGET, "mirrors/0/source/latencyMs", latency) if latency else TARGET
    found = [hint for hint in hints(target, "stg", {"dev": source}) if hint.key == "mirrors[0].source.latencyMs"]
    assert ["sends that much in 100 ms" in hint.message for hint in found] == [True] * hinted


@pytest.mark.parametrize(
    ("source", "config", "hinted"),
    [
        ("3.9.1", {}, True),
        ("3.9.1", {"log.message.timestamp.after.max.ms": 10**15}, False),
        ("4.2.0", {}, False),
    ],
)
def test_a_target_that_refuses_times_that_its_source_takes_is_hinted_at(
    source: str, config: dict[str, int], hinted: bool
) -> None:
    there = with_value(SOURCE, "cluster/version", source)
    here = with_value(with_value(TARGET, "cluster/version", "4.3.1"), "cluster/config", config)
    found = [hint.message for hint in hints(here, "stg", {"dev": there}) if hint.key == "cluster.config"]
    assert [f"of Kafka {source}, takes them" in message for message in found] == [True] * hinted


@pytest.mark.parametrize(
    ("name", "change", "hinted"),
    [
        ("device.heartbeats", {}, True),
        ("heartbeats-of-devices", {}, False),
        ("device.heartbeats", {"naming": "prefixed"}, False),
        ("device.heartbeats", {"topicsExclude": ["device.*"]}, False),
    ],
)
def test_a_topic_that_mirrormaker_takes_for_heartbeats_is_hinted_at(
    name: str, change: dict[str, Any], hinted: bool
) -> None:
    there = with_value(SOURCE, "topics/+", {**SOURCE["topics"][0], "name": name})
    mirror = {**TARGET["mirrors"][0], "topics": [".*"], **change}
    found = [hint.message for hint in hints(with_value(TARGET, "mirrors/0", mirror), "stg", {"dev": there})]
    copies = [message for message in found if f"takes {name} of stack dev for heartbeats" in message]
    assert [f"{mirror['source']['alias']}.{name}, where no" in message for message in copies] == [True] * hinted
