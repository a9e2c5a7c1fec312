"""The rule on offsets of mirrors for disaster recovery."""

import pytest
from pulumi_policy.proxy import UNKNOWN_BOOLEAN_VALUE

from policies.rules.mirror.disaster_recovery_offsets import POLICY
from settings.mirror_parts import FOLLOWED
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror, connector_config

DECLARED = {"rt-inventory/disaster-recovery": "true"}
SYNC, EMIT = "sync.group.offsets.enabled", "emit.checkpoints.enabled"
NONE = (
    "mirror mm2: mirrors[0].checkpointConnector must be declared for disaster recovery (got nothing). "
    "Without it, consumers start at the target without their offsets."
)

CONFIGURATION = {"mirrors": ["mm-offsets"]}


def violation() -> list[kit.Sample]:
    return broken_mirror(
        "mm-offsets",
        lambda mirror: connector_config(mirror, "checkpointConnector").update({"sync.group.offsets.enabled": False}),
    )


def no_sync(got: str) -> str:
    return (
        f"mirror mm2: mirrors[0].checkpointConnector {SYNC} must be true for disaster recovery (got {got}). "
        "Without it, consumers start at the target without their offsets."
    )


def no_checkpoints(got: str) -> str:
    return (
        f"mirror mm2: mirrors[0].checkpointConnector {EMIT} must be true for disaster recovery (got {got}). "
        "Without checkpoints, no offset is translated for the target."
    )


def declared(shape: str) -> kit.Sample:
    return kit.mirror(shape).annotated(**DECLARED)


def config(mirror: kit.Sample) -> kit.Spec:
    found: kit.Spec = kit.flow(mirror)["checkpointConnector"]["config"]
    return found


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_mirror_that_carries_offsets_passes(shape: str) -> None:
    assert kit.judge(POLICY, declared(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_checkpoints_are_written_unless_set_otherwise(shape: str) -> None:
    mirror = declared(shape)
    del config(mirror)[EMIT]
    assert kit.judge(POLICY, mirror) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_no_checkpoint_connector_is_reported_once(shape: str) -> None:
    mirror = declared(shape)
    del kit.flow(mirror)["checkpointConnector"]
    assert kit.judge(POLICY, mirror) == [NONE]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_checkpoints_without_a_connector_that_copies_are_reported(shape: str) -> None:
    mirror = declared(shape)
    del kit.flow(mirror)["sourceConnector"]
    no_source = (
        "mirror mm2: mirrors[0].sourceConnector must be declared for disaster recovery (got nothing). "
        "Without it, no record is copied and no offset is translated for the target."
    )
    assert kit.judge(POLICY, mirror) == [no_source]
    del kit.flow(mirror)["checkpointConnector"]
    assert kit.judge(POLICY, mirror) == [NONE, no_source]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_offsets_that_are_not_committed_are_reported(shape: str) -> None:
    mirror = declared(shape)
    config(mirror)[SYNC] = "FALSE"
    assert kit.judge(POLICY, mirror) == [no_sync("FALSE")]
    del config(mirror)[SYNC]
    assert kit.judge(POLICY, mirror) == [no_sync("nothing, which means false")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_follower_commits_in_place_of_mirrormaker_and_needs_the_rest(shape: str) -> None:
    mirror = declared(shape).annotated(**FOLLOWED)
    config(mirror)[SYNC] = False
    assert kit.judge(POLICY, mirror) == []
    config(mirror)[EMIT] = False
    assert kit.judge(POLICY, mirror) == [no_checkpoints("false")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_checkpoints_that_are_switched_off_are_reported(shape: str) -> None:
    mirror = declared(shape)
    config(mirror)[EMIT] = False
    assert kit.judge(POLICY, mirror) == [no_checkpoints("false")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_mirror_that_is_not_declared_may_leave_offsets(shape: str) -> None:
    mirror = kit.mirror(shape).annotated(**{"rt-inventory/disaster-recovery": "false"})
    del kit.flow(mirror)["checkpointConnector"]
    assert kit.judge(POLICY, mirror) == []


def test_a_label_declares_it_too() -> None:
    mirror = kit.mirror(kit.V1)
    mirror.props["metadata"]["labels"] = DECLARED
    del kit.flow(mirror)["checkpointConnector"]
    assert kit.judge(POLICY, mirror) == [NONE]


def test_names_can_be_configured_and_match_as_a_whole() -> None:
    mirror = kit.mirror(kit.V1)
    del kit.flow(mirror)["checkpointConnector"]
    assert kit.judge(POLICY, mirror, mirrors=["other", "mm[0-9]+"]) == [NONE]
    assert kit.judge(POLICY, mirror, mirrors=["mm"]) == []


def test_every_mirror_of_the_resource_is_judged() -> None:
    mirror = declared(kit.V1BETA2)
    mirror.spec["mirrors"].append({"sourceCluster": "es-src", "targetCluster": "es-tgt", "sourceConnector": {}})
    assert kit.judge(POLICY, mirror) == [NONE.replace("mirrors[0]", "mirrors[1]")]


def test_another_type_is_ignored() -> None:
    mirror = declared(kit.V1)
    del kit.flow(mirror)["checkpointConnector"]
    assert kit.judge(POLICY, kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", mirror.props)) == []


def test_one_unknown_switch_hides_no_other() -> None:
    mirror = declared(kit.V1)
    config(mirror)[SYNC] = UNKNOWN_BOOLEAN_VALUE
    config(mirror)[EMIT] = "false"
    assert kit.judge(POLICY, mirror) == [no_checkpoints("false")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_offset_syncs_that_are_switched_off_are_reported(shape: str) -> None:
    mirror = declared(shape)
    kit.flow(mirror)["sourceConnector"]["config"]["emit.offset-syncs.enabled"] = "false"
    assert kit.judge(POLICY, mirror) == [
        "mirror mm2: mirrors[0].sourceConnector emit.offset-syncs.enabled must be true for disaster recovery "
        "(got false). Without offset syncs, no offset is translated for the target."
    ]


def test_a_name_that_cannot_be_read_is_reported_and_hides_no_other() -> None:
    mirror = kit.mirror(kit.V1)
    del kit.flow(mirror)["checkpointConnector"]
    unreadable, found = kit.judge(POLICY, mirror, mirrors=["mm(", "mm2"])
    assert unreadable.startswith("mirror mm2: option mirrors must hold regular expressions (got mm(: ")
    assert found == NONE


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    ("connector", "consequence"),
    [
        ("checkpointConnector", "Without checkpoints, no offset is translated for the target."),
        ("sourceConnector", "Without offset syncs, no offset is translated for the target."),
    ],
)
def test_a_connector_without_tasks_is_reported(shape: str, connector: str, consequence: str) -> None:
    mirror = declared(shape)
    kit.flow(mirror)[connector]["config"]["enabled"] = False
    assert kit.judge(POLICY, mirror) == [
        f"mirror mm2: mirrors[0].{connector} enabled must be true for disaster recovery (got false). {consequence}"
    ]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(("source", "checkpoint"), [("target", None), (None, "target"), ("source", "target")])
def test_offset_syncs_that_are_read_elsewhere_are_reported(
    shape: str, source: str | None, checkpoint: str | None
) -> None:
    mirror = declared(shape)
    for connector, location in (("sourceConnector", source), ("checkpointConnector", checkpoint)):
        kit.flow(mirror)[connector]["config"]["offset-syncs.topic.location"] = location
    assert kit.judge(POLICY, mirror) == [
        "mirror mm2: mirrors[0].checkpointConnector offset-syncs.topic.location must be that of sourceConnector for "
        f"disaster recovery (got {checkpoint or 'source'}, allowed {source or 'source'}). "
        "Without offset syncs, no offset is translated for the target."
    ]
    kit.flow(mirror)["sourceConnector"]["config"]["offset-syncs.topic.location"] = checkpoint or "source"
    assert kit.judge(POLICY, mirror) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("state", ["stopped", "paused"])
def test_checkpoints_at_rest_are_reported_unless_the_whole_mirror_rests(shape: str, state: str) -> None:
    mirror = declared(shape)
    kit.flow(mirror)["checkpointConnector"]["state"] = state
    assert kit.judge(POLICY, mirror) == [
        "mirror mm2: mirrors[0].checkpointConnector must run while sourceConnector does, for disaster recovery "
        f"(got state {state}). Without checkpoints, no offset is translated for the target."
    ]
    kit.flow(mirror)["sourceConnector"]["state"] = state
    assert kit.judge(POLICY, mirror) == []
    del kit.flow(mirror)["sourceConnector"]["state"]
    mirror.spec["replicas"] = 0
    assert kit.judge(POLICY, mirror) == []
