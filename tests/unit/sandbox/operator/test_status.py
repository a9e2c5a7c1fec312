import pytest

from sandbox.operator import merge_patch, not_ready, ready, with_conditions

RESOURCE = {"metadata": {"generation": 3}, "status": {"conditions": []}}


def test_a_status_stands_for_the_generation_that_was_looked_at() -> None:
    assert with_conditions(RESOURCE, {}, [ready()])["observedGeneration"] == 3


def test_the_transition_time_moves_only_when_the_condition_changes() -> None:
    first = with_conditions(RESOURCE, {}, [ready()], at="early")
    again = with_conditions({"metadata": {}, "status": first}, {}, [ready()], at="late")
    broken = with_conditions(
        {"metadata": {}, "status": first}, {}, [not_ready("KafkaTopic", "Broken", "repair it")], at="late"
    )
    assert again["conditions"][0]["lastTransitionTime"] == "early"
    assert broken["conditions"][0]["lastTransitionTime"] == "late"


@pytest.mark.parametrize("kind", ["Kafka", "KafkaUser", "KafkaMirrorMaker2"])
def test_what_is_not_ready_says_so_as_strimzi_does_without_a_condition_ready(kind: str) -> None:
    assert not_ready(kind, "Broken", "repair it") == {
        "type": "NotReady",
        "status": "True",
        "reason": "Broken",
        "message": "repair it",
    }


def test_a_topic_that_is_not_ready_has_a_condition_ready_that_is_false() -> None:
    found = not_ready("KafkaTopic", "NotSupported", "repair it")
    assert (found["type"], found["status"]) == ("Ready", "False")


def test_an_equal_status_sends_nothing() -> None:
    assert merge_patch({"a": 1}, {"a": 1}) is None


def test_a_field_that_is_gone_is_set_to_null_at_every_depth() -> None:
    assert merge_patch({"a": 1, "b": {"c": 1, "d": 2}}, {"b": {"d": 2}}) == {"a": None, "b": {"c": None, "d": 2}}
