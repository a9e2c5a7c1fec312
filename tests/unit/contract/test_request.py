"""The request: every problem at once, secrets from the environment, MirrorMaker's patterns."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from contract.documents import load, parse
from contract.fields import RequestError
from contract.verification_request import InternalTopic, TopicConfigs

GOOD: dict[str, Any] = {
    "source": {
        "alias": "es-src",
        "client_config": {
            "bootstrap.servers": "127.0.0.1:1",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "reader",
            "sasl.password": {"env": "SOURCE_PASSWORD"},
        },
    },
    "target": {"alias": "es-tgt", "client_config": {"bootstrap.servers": "127.0.0.1:2"}},
    "mirror": {"topics": ["items", r"store\..*"], "groups_exclude": []},
    "limits": {},
}
ENVIRONMENT = {"SOURCE_PASSWORD": "made-up-password"}


def test_a_request_is_filled_with_defaults() -> None:
    request = parse(GOOD, ENVIRONMENT)
    assert request.source.client_config["sasl.password"] == "made-up-password"
    assert request.limits.mirror_wait_seconds == 120
    assert request.mirror.source_connector == "es-src->es-tgt.MirrorSourceConnector"
    assert request.mirror.checkpoints_name == "es-src.checkpoints.internal"


def test_a_mirrors_own_topics_are_known_by_the_name_of_its_checkpoints() -> None:
    mirror = {"topics": [".*"], "topics_exclude": [], "separator": ".", "version": "4.3.1"}

    def carried(checkpoints: str) -> list[str]:
        named = parse(GOOD | {"mirror": {**mirror, "checkpoints_topic": checkpoints}}, ENVIRONMENT).mirror
        assert named.checkpoints_name == checkpoints
        others = ["mm2-offset-syncsxinternal", "mm2-offset-syncs_x_internal", "xcheckpointsinternal", "items_internal"]
        return [topic for topic in others if named.carries_topic(topic)]

    assert carried("es-srccheckpointsinternal") == ["items_internal"]
    assert carried("es-src_checkpoints_internal") == [
        "mm2-offset-syncsxinternal",
        "xcheckpointsinternal",
        "items_internal",
    ]


def test_a_request_may_name_the_stack_that_declares_the_mirror() -> None:
    assert parse(GOOD, ENVIRONMENT).stack is None
    assert parse(GOOD | {"stack": "stg"}, ENVIRONMENT).stack == "stg"
    for wrong in ("", 7):
        with pytest.raises(RequestError, match="request: stack must be a name or null"):
            parse(GOOD | {"stack": wrong}, ENVIRONMENT)


def test_a_request_may_name_cluster_stack_and_namespace_of_each_side() -> None:
    names = {"cluster": "inventory-dev", "stack": "dev", "namespace": "kafka-dev"}
    found = parse(GOOD | {"source": GOOD["source"] | names}, ENVIRONMENT)
    assert found.source.names == names
    assert found.target.names == {}
    with pytest.raises(RequestError, match=r"source: cluster must be a name or null \(got 3"):
        parse(GOOD | {"source": GOOD["source"] | {"cluster": 3}}, ENVIRONMENT)


def test_a_request_does_not_show_its_secrets() -> None:
    assert "made-up-password" not in repr(parse(GOOD, ENVIRONMENT))


def test_all_problems_are_reported_at_once() -> None:
    bad = copy.deepcopy(GOOD)
    bad["extra"] = 1
    bad["source"]["client_config"]["sasl.password"] = "in-the-file"
    bad["target"]["client_config"] = {}
    bad["mirror"] = {"topics": ["["], "naming": "other"}
    bad["limits"] = {"duplicates_max": -1, "allow_unknown": ["nonsense"]}
    with pytest.raises(RequestError) as caught:
        parse(bad, ENVIRONMENT)
    text = str(caught.value)
    for word in ("extra", "sasl.password", "bootstrap.servers", "topics", "naming", "duplicates_max", "nonsense"):
        assert word in text
    assert "in-the-file" not in text


def test_what_the_mirror_keeps_and_copies_besides_records_is_read() -> None:
    asked = copy.deepcopy(GOOD)
    asked["mirror"] |= {
        "topic_configs": {"sync": False, "exclude": ["a\\.b"], "use_defaults_from": "source"},
        "sync_topic_acls": True,
        "sync_group_offsets": False,
        "internal_topics": [{"name": "syncs", "location": "source", "replication_factor": 2}],
        "resource": {"api_version": "kafka.strimzi.io/v1", "namespace": "home", "name": "mm2", "context": "stg"},
    }
    mirror = parse(asked, ENVIRONMENT).mirror
    assert (mirror.topic_configs.sync, mirror.topic_configs.exclude) == (False, ("a\\.b",))
    assert mirror.topic_configs.use_defaults_from == "source"
    assert mirror.sync_topic_acls
    assert not mirror.sync_group_offsets
    assert parse(GOOD, ENVIRONMENT).mirror.sync_group_offsets
    assert (mirror.exact_offsets, mirror.sets_groups) == (False, False)
    asked["mirror"]["exact_offsets"] = True
    assert parse(asked, ENVIRONMENT).mirror.sets_groups, "a follower does"
    assert mirror.internal_topics == (InternalTopic(name="syncs", location="source", replication_factor=2),)
    assert str(mirror.resource) == "KafkaMirrorMaker2 home/mm2"
    assert mirror.resource.context == "stg"


def test_no_exclusions_of_configuration_are_those_of_mirror_maker() -> None:
    asked = copy.deepcopy(GOOD)
    asked["mirror"]["topic_configs"] = {"exclude": []}
    rules = parse(asked, ENVIRONMENT).mirror.topic_configs
    assert rules == TopicConfigs()
    assert "min.insync.replicas" in rules.exclude


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"topic_configs": {"sync": "yes"}}, "mirror.topic_configs: sync must be true or false"),
        ({"topic_configs": {"exclude": ["["]}}, "mirror.topic_configs: exclude must hold regular expressions"),
        ({"topic_configs": {"use_defaults_from": "here"}}, "use_defaults_from must be source or target"),
        ({"active": "both"}, "mirror: active must be source, target or null"),
        ({"sync_topic_acls": 1}, "mirror: sync_topic_acls must be true or false"),
        ({"sync_group_offsets": "no"}, "mirror: sync_group_offsets must be true or false"),
        ({"internal_topics": {}}, "mirror: internal_topics must be a list"),
        ({"internal_topics": [{"location": "target"}]}, "mirror.internal_topics[0]: name must be a name"),
        ({"internal_topics": [{"name": "a", "replication_factor": 0}]}, "replication_factor must be a number from 1"),
        ({"internal_topics": [{"name": "a", "factor": 3}]}, "mirror.internal_topics[0]: factor must be a known key"),
        ({"resource": {"api_version": "v1", "namespace": "a", "name": "b"}}, "api_version must be a group and a ver"),
        ({"resource": {"api_version": "a/v1", "kind": "Pod", "namespace": "a", "name": "b"}}, "kind must be Kafka"),
        ({"resource": {"api_version": "a/v1", "name": "b"}}, "mirror.resource: namespace must be a name"),
        (
            {"resource": {"api_version": "a/v1", "namespace": "a", "name": "b", "context": ""}},
            "mirror.resource: context must be a context of the kubeconfig or null",
        ),
    ],
)
def test_what_is_wrong_with_the_mirrors_metadata_is_named(changes: dict[str, Any], said: str) -> None:
    asked = copy.deepcopy(GOOD)
    asked["mirror"] |= changes
    with pytest.raises(RequestError, match=re.escape(said)):
        parse(asked, ENVIRONMENT)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"\X", r"\X cannot be translated"),
        (r"a\b", "Java 17 and Java 19"),
        ("a,b", "MirrorMaker splits lists at commas"),
        ("a{1,2}", "MirrorMaker splits lists at commas"),
        (" items", "MirrorMaker cuts off blanks"),
        ("", "it is empty"),
        ("a{99999999999}", "at most 32767"),
        ("(?P<x>a)", "Java writes named groups as (?<name>...)"),
        ("(?<=a+)b", "look-behind"),
    ],
)
def test_a_pattern_that_is_not_known_to_select_what_java_selects_is_refused_alone(pattern: str, reason: str) -> None:
    asked = copy.deepcopy(GOOD)
    asked["mirror"] |= {"topics": [pattern], "canary": {"topic": "items"}}
    with pytest.raises(RequestError) as caught:
        parse(asked, ENVIRONMENT)
    (said,) = caught.value.problems
    assert said.startswith(
        f"mirror: topics must hold regular expressions of Java that can be verified (got {pattern!r}"
    )
    assert reason in said


@pytest.mark.parametrize(
    ("patterns", "reason"),
    [
        (["(?i)items", "orders"], "Write (?i:...)"),
        ([r"\Qitems", "orders"], r"\Q has no \E"),
        (["(?<x>a)", "(?<x>b)"], "two groups are called x, for MirrorMaker joins the list by |"),
        (["(a)", r"(b)\1"], "for MirrorMaker joins the list by |"),
    ],
)
def test_entries_that_change_each_other_are_refused(patterns: list[str], reason: str) -> None:
    asked = copy.deepcopy(GOOD)
    asked["mirror"] |= {"groups": patterns}
    with pytest.raises(RequestError, match=re.escape(reason)):
        parse(asked, ENVIRONMENT)


@pytest.mark.parametrize(
    ("pattern", "carried", "left_out"),
    [
        ("[a-c&&[^b]]", "c", "b"),
        ("[a-b[c]]", "c", "-"),
        ("[[a]b]", "b", "a]"),
        ("[[:alpha:]]", "l", "b"),
        (r"[\w&&[^bc]]", "a", "b"),
        (r"\0141", "a", "1"),
        (r"\Qa.b\E.*", "a.bc", "axb"),
        ("(?<x>a)", "a", "x"),
        (r"\p{Lower}", "a", "A"),
        (r"a\z", "a", "az"),
        (r"\x{61}", "a", "x"),
        ("(?i)items", "ITEMS", "item"),
    ],
)
def test_patterns_select_what_java_selects(pattern: str, carried: str, left_out: str) -> None:
    asked = copy.deepcopy(GOOD)
    asked["mirror"] |= {"topics": [pattern], "groups": [r"\h"], "groups_exclude": [pattern]}
    mirror = parse(asked, ENVIRONMENT).mirror
    assert mirror.carries_topic(carried)
    assert not mirror.carries_topic(left_out)
    assert mirror.carries_group("\u00a0")


def test_a_missing_environment_variable_is_named() -> None:
    with pytest.raises(RequestError, match="SOURCE_PASSWORD"):
        parse(GOOD, {})


def test_a_file_that_is_no_json_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_text("{")
    with pytest.raises(RequestError, match="must hold JSON"):
        load(path, {})


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from-file\n")
    changed = json.loads(json.dumps(GOOD))
    changed["source"]["client_config"]["sasl.password"] = {"file": str(tmp_path / "password")}
    assert parse(changed, {}).source.client_config["sasl.password"] == "from-file"


@pytest.mark.parametrize(
    ("topic", "carried"),
    [("items", True), ("items.inventory", False), ("store.inventory", True), ("storexinventory", False)],
)
def test_patterns_match_whole_names(topic: str, carried: bool) -> None:
    assert parse(GOOD, ENVIRONMENT).mirror.carries_topic(topic) is carried


def test_an_empty_list_of_excluded_groups_means_the_mirrors_own_defaults() -> None:
    mirror = parse(GOOD, ENVIRONMENT).mirror
    assert mirror.carries_group("orders")
    assert not mirror.carries_group("console-consumer-1")


def test_prefixed_naming_puts_the_source_first() -> None:
    changed = copy.deepcopy(GOOD)
    changed["mirror"]["naming"] = "prefixed"
    assert parse(changed, ENVIRONMENT).mirror.target_topic("items") == "es-src.items"
