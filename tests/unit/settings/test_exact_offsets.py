"""A follower in place of MirrorMaker's own group sync: one of both sets groups, and it has what it reads."""

from typing import Any

import pytest

from settings import SettingsError, parse
from settings.mirror_parts import is_followed
from settings.mirrors import Mirror
from tests.support.stack_values import TARGET, with_value

FOLLOWER = {"image": "registry.example.com/kafka/follower:1.4.0"}
SYNCED, EMITTED = "sync.group.offsets.enabled", "emit.offset-syncs.enabled"


def made(**settings: Any) -> Mirror:
    values = with_value(TARGET, "mirrors/0/exactOffsets", FOLLOWER)
    for key, value in settings.items():
        values = with_value(values, f"mirrors/0/{key}", value)
    return parse(values, "stg").mirrors[0]


def test_mirrormaker_sets_groups_unless_a_follower_does() -> None:
    plain = parse(TARGET, "stg").mirrors[0]
    assert (plain.sync_group_offsets, plain.exact_offsets, is_followed(plain)) == (True, None, False)
    found = made()
    assert (found.sync_group_offsets, found.emit_checkpoints, is_followed(found)) == (False, True, True)
    assert made(syncGroupOffsets=False).sync_group_offsets is False
    assert found.exact_offsets is not None
    assert found.exact_offsets.resources.rendered()["limits"] == {"memory": "512Mi"}


@pytest.mark.parametrize(
    ("settings", "key", "reported"),
    [
        ({"syncGroupOffsets": True}, "syncGroupOffsets", "must be false or left out with exactOffsets (got true"),
        ({"emitCheckpoints": False}, "emitCheckpoints", "must be true with exactOffsets (got false"),
        (
            {"sourceConnectorConfig": {EMITTED: False}},
            f"sourceConnectorConfig[{EMITTED}]",
            "must be true or left out with exactOffsets (got false",
        ),
        (
            {"configDefaults": False, "checkpointConnectorConfig": {SYNCED: True}},
            f"checkpointConnectorConfig[{SYNCED}]",
            "must be false or left out with exactOffsets (got true",
        ),
        ({"exactOffsets": {}}, "exactOffsets.image", "must be given"),
        ({"exactOffsets": {"image": "follower:latest"}}, "exactOffsets.image", "a tag that does not move"),
        ({"exactOffsets": {**FOLLOWER, "interval": 2}}, "exactOffsets.interval", "must be a known key"),
    ],
)
def test_a_mistake_is_one_error_with_its_key(settings: dict[str, Any], key: str, reported: str) -> None:
    with pytest.raises(SettingsError) as error:
        made(**settings)
    (problem,) = error.value.problems
    assert problem.key == f"mirrors[0].{key}"
    assert reported in str(problem)


@pytest.mark.parametrize(
    "settings", [{"state": "paused"}, {"state": "stopped"}, {"state": "stopped", "active": "target"}]
)
def test_a_mirror_that_does_not_copy_from_an_active_source_is_not_followed(settings: dict[str, Any]) -> None:
    assert not is_followed(made(**settings))


def test_both_directions_have_a_follower_and_a_way_back_has_none() -> None:
    both = made(naming="prefixed", reverse={"topics": ["audit"]}).reverse_mirror()
    assert is_followed(both)
    assert not both.sync_group_offsets
    back = made(failback="prepared", active="target", state="stopped")
    assert back.failback_mirror().exact_offsets is None
