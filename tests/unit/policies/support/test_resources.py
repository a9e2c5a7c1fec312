"""Traversal of properties: the values that the engine passes, those that a preview does not know, and every text."""

from collections.abc import Iterator
from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_STRING_VALUE, UnknownValueError, unknown_checking_proxy

from policies.support import resources
from policies.support.resources import Text, texts


def proxied(props: dict[str, Any]) -> Any:
    return unknown_checking_proxy(props)


def test_an_unknown_value_hides_no_other() -> None:
    props = proxied({"a": 1, "b": UNKNOWN_NUMBER_VALUE, "c": 3})

    def check(key: str) -> Iterator[str]:
        yield f"{key}={props[key]}"

    assert [*resources.each("abc", check)] == ["a=1", "c=3"]


def test_paths_break_off_without_an_error_and_report_what_is_unknown() -> None:
    props = proxied({"spec": {"kafka": {"version": "4.3.1"}, "target": UNKNOWN_STRING_VALUE}})
    assert resources.within(props, "spec", "kafka", "version") == "4.3.1"
    assert resources.within(props, "spec", "nothing", "version") is None
    assert resources.within(props, "spec", "kafka", "version", "major") is None
    with pytest.raises(UnknownValueError):
        resources.within(props, "spec", "target", "alias")


def test_lists_and_mappings_leave_out_what_is_unknown() -> None:
    props = proxied({"list": ["a", UNKNOWN_STRING_VALUE, "b"], "map": {"a": 1, "b": UNKNOWN_STRING_VALUE}})
    assert resources.sequence(props["list"]) == ["a", "b"]
    assert [*resources.items(props["map"])] == [("a", 1)]


@pytest.mark.parametrize("value", [None, "text", 3, {"a": 1}])
def test_what_is_no_list_is_an_empty_one(value: object) -> None:
    assert resources.sequence(value) == []


@pytest.mark.parametrize(
    ("value", "number"), [(3, 3), (3.0, 3), ("3", 3), (" 3 ", 3), (None, None), ("three", None), ("inf", None)]
)
def test_whole_numbers_are_read_as_the_engine_and_kafka_write_them(value: object, number: int | None) -> None:
    assert resources.whole(value) == number


@pytest.mark.parametrize(("value", "on"), [(True, True), ("TRUE", True), ("false", False), (False, False), ("", False)])
def test_switches_are_read_as_kafka_reads_them(value: object, on: bool) -> None:
    assert resources.flag(value, default=not on) is on


def test_a_switch_that_is_not_set_has_its_default() -> None:
    assert resources.flag(None, default=True)


@pytest.mark.parametrize(
    ("value", "reported"), [(3.0, "3"), (2.5, "2.5"), (True, "true"), ("3.0", "3.0"), (None, "None")]
)
def test_values_are_reported_as_they_were_written(value: object, reported: str) -> None:
    assert resources.format_value(value) == reported


def test_objects_without_a_name_or_a_namespace_are_named_all_the_same() -> None:
    assert (resources.name({}), resources.namespace({})) == ("(unnamed)", "default")


def texts_of(value: object, *without: str) -> list[Text]:
    return [*texts(unknown_checking_proxy({"spec": value})["spec"], "spec", without=without)]


def test_every_text_has_its_place_and_keys() -> None:
    assert texts_of({"kafka": {"config": {"a.b": "x", "n": 1.0, "on": True}}}) == [
        Text("spec.kafka.config[a.b]", "a.b", "config", "x"),
        Text("spec.kafka.config.n", "n", "config", "1"),
    ]


def test_entries_of_lists_are_known_by_their_name_alias_or_number() -> None:
    places = [text.place for text in texts_of([{"name": "n", "x": "1"}, {"alias": "a", "x": "2"}, "3"])]
    assert places == ["spec[n].name", "spec[n].x", "spec[a].alias", "spec[a].x", "spec[2]"]


def test_a_name_is_the_key_of_the_value_beside_it() -> None:
    assert texts_of({"env": [{"name": "PASSWORD", "value": "x"}]})[-1] == Text(
        "spec.env[PASSWORD].value", "PASSWORD", "env", "x"
    )


def test_keys_can_be_left_out() -> None:
    assert texts_of({"config": {"image": "x"}, "image": "y"}, "config") == [Text("spec.image", "image", "", "y")]


def test_unknown_texts_are_left_out() -> None:
    assert [text.value for text in texts_of({"a": UNKNOWN_STRING_VALUE, "b": [UNKNOWN_STRING_VALUE, "x"]})] == ["x"]
