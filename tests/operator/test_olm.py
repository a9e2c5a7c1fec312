from typing import Any

import pytest

from sandbox.operator.errors import NotReadyError
from sandbox.operator.olm import resolve


def subscription(**changes: Any) -> dict[str, Any]:
    spec = {"name": "strimzi-kafka-operator", "channel": "stable", "source": "s", "sourceNamespace": "olm"}
    return {"metadata": {"name": "strimzi"}, "spec": spec | changes}


def test_a_channel_leads_to_its_head() -> None:
    assert resolve(subscription()) == "strimzi-cluster-operator.v1.2.0"


@pytest.mark.parametrize("change", [{"name": "other"}, {"channel": "alpha"}, {"startingCSV": "strimzi.v0.1"}])
def test_what_no_catalog_has_is_refused_with_what_there_is(change: dict[str, str]) -> None:
    with pytest.raises(NotReadyError, match=r"got .*allowed strimzi|got .*allowed stable") as refused:
        resolve(subscription(**change))
    assert refused.value.reason == "ConstraintsNotSatisfiable"
