"""The request: every problem at once, secrets from the environment, MirrorMaker's patterns."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from spark.errors import RequestError
from spark.request.reader import load, parse

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
    assert request.mirror.checkpoints_topic == "es-src.checkpoints.internal"


def test_a_request_does_not_show_its_secrets() -> None:
    assert "made-up-password" not in repr(parse(GOOD, ENVIRONMENT))


def test_all_problems_are_told_at_once() -> None:
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


def test_a_missing_environment_variable_is_named() -> None:
    with pytest.raises(RequestError, match="SOURCE_PASSWORD"):
        parse(GOOD, {})


def test_a_file_that_is_no_json_is_told(tmp_path: Path) -> None:
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
