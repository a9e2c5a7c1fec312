from typing import Any

import pytest

from sandbox.operator import NotReadyError
from sandbox.operator.olm import label_selector, resolve


def subscription(**changes: Any) -> dict[str, Any]:
    spec = {"name": "strimzi-kafka-operator", "channel": "stable", "source": "s", "sourceNamespace": "olm"}
    return {"metadata": {"name": "strimzi"}, "spec": spec | changes}


def test_a_channel_leads_to_its_head() -> None:
    assert resolve(subscription()) == "strimzi-cluster-operator.v1.2.0"
    assert resolve(subscription(name="ibm-eventstreams", channel="v3.0")) == "ibm-eventstreams.v3.0.5"


def test_without_a_channel_the_packages_default_counts() -> None:
    assert resolve(subscription(name="ibm-eventstreams", channel=None)) == "ibm-eventstreams.v3.0.5"


def test_namespaces_are_selected_by_every_form_of_a_label_selector() -> None:
    forms = [
        {"key": "a", "operator": "In", "values": ["x", "y"]},
        {"key": "b", "operator": "NotIn", "values": ["z"]},
        {"key": "c", "operator": "Exists"},
        {"key": "d", "operator": "DoesNotExist"},
    ]
    assert label_selector({"matchLabels": {"team": "kafka"}, "matchExpressions": forms}) == (
        "team=kafka,a in (x,y),b notin (z),c,!d"
    )
    assert label_selector({}) == ""


@pytest.mark.parametrize("change", [{"name": "other"}, {"channel": "alpha"}, {"startingCSV": "strimzi.v0.1"}])
def test_what_no_catalog_has_is_refused_with_what_there_is(change: dict[str, str]) -> None:
    with pytest.raises(
        NotReadyError, match=r"got .*allowed (ibm-eventstreams, )?strimzi|got .*allowed stable"
    ) as refused:
        resolve(subscription(**change))
    assert refused.value.reason == "ConstraintsNotSatisfiable"
