"""The rule that nothing scales brokers."""

from collections.abc import Callable

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.durability.autoscaled_brokers import POLICY
from tests.support import compliant_resources as kit

MAKERS = {"ScaledObject": kit.scaled_object, "HorizontalPodAutoscaler": kit.pod_autoscaler}


def violation() -> list[kit.Sample]:
    return [kit.pod_autoscaler(kit.V1, "KafkaNodePool", "brokers")]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("kind", ["Kafka", "KafkaNodePool", "EventStreams"])
@pytest.mark.parametrize(("scaler", "maker"), MAKERS.items())
def test_what_holds_records_is_not_scaled(scaler: str, maker: Callable[..., kit.Sample], kind: str, shape: str) -> None:
    assert kit.judge(POLICY, maker(shape, kind, "dual")) == [
        f"{scaler} dual: spec.scaleTargetRef must not be a {kind} (got dual). Brokers that are added get no partition "
        "by themselves, and those that are removed take their replicas along."
    ]


@pytest.mark.parametrize("maker", MAKERS.values())
def test_workers_and_things_of_others_are_not_meant(maker: Callable[..., kit.Sample]) -> None:
    for kind in ("KafkaMirrorMaker2", "KafkaConnect", "KafkaBridge"):
        assert kit.judge(POLICY, maker(kit.V1, kind)) == []
    assert kit.judge(POLICY, maker("apps/v1", "Kafka")) == []
    scaler = maker(kit.V1, "KafkaNodePool")
    scaler.spec["scaleTargetRef"]["kind"] = UNKNOWN_STRING_VALUE
    assert kit.judge(POLICY, scaler) == []


def test_another_type_is_ignored() -> None:
    scaler = kit.scaled_object(kit.V1, "KafkaNodePool")
    assert kit.judge(POLICY, kit.Sample("kubernetes:batch/v1:Job", scaler.props)) == []
