"""Reading values: what the engine hands over, and what a preview does not know."""

from collections.abc import Iterator
from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_STRING_VALUE, UnknownValueError, unknown_checking_proxy

from policies.rules.support import values


def proxied(props: dict[str, Any]) -> Any:
    return unknown_checking_proxy(props)


def test_an_unknown_value_hides_no_other() -> None:
    props = proxied({"a": 1, "b": UNKNOWN_NUMBER_VALUE, "c": 3})

    def check(key: str) -> Iterator[str]:
        yield f"{key}={props[key]}"

    assert [*values.each("abc", check)] == ["a=1", "c=3"]


def test_paths_break_off_without_an_error_and_tell_what_is_unknown() -> None:
    props = proxied({"spec": {"kafka": {"version": "4.3.1"}, "target": UNKNOWN_STRING_VALUE}})
    assert values.within(props, "spec", "kafka", "version") == "4.3.1"
    assert values.within(props, "spec", "nothing", "version") is None
    assert values.within(props, "spec", "kafka", "version", "major") is None
    with pytest.raises(UnknownValueError):
        values.within(props, "spec", "target", "alias")


def test_lists_and_mappings_leave_out_what_is_unknown() -> None:
    props = proxied({"list": ["a", UNKNOWN_STRING_VALUE, "b"], "map": {"a": 1, "b": UNKNOWN_STRING_VALUE}})
    assert values.sequence(props["list"]) == ["a", "b"]
    assert [*values.items(props["map"])] == [("a", 1)]


@pytest.mark.parametrize("value", [None, "text", 3, {"a": 1}])
def test_what_is_no_list_is_an_empty_one(value: object) -> None:
    assert values.sequence(value) == []


@pytest.mark.parametrize(
    ("value", "number"), [(3, 3), (3.0, 3), ("3", 3), (" 3 ", 3), (None, None), ("three", None), ("inf", None)]
)
def test_whole_numbers_are_read_as_the_engine_and_kafka_write_them(value: object, number: int | None) -> None:
    assert values.whole(value) == number


@pytest.mark.parametrize(("value", "on"), [(True, True), ("TRUE", True), ("false", False), (False, False), ("", False)])
def test_switches_are_read_as_kafka_reads_them(value: object, on: bool) -> None:
    assert values.flag(value, default=not on) is on


def test_a_switch_that_is_not_set_has_its_default() -> None:
    assert values.flag(None, default=True)


@pytest.mark.parametrize(("value", "told"), [(3.0, "3"), (2.5, "2.5"), (True, "true"), ("3.0", "3.0"), (None, "None")])
def test_values_are_told_as_they_were_written(value: object, told: str) -> None:
    assert values.shown(value) == told


def test_objects_without_a_name_or_a_namespace_are_named_all_the_same() -> None:
    assert (values.name({}), values.namespace({})) == ("(unnamed)", "default")
