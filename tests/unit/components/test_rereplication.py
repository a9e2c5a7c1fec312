"""Changes after which a mirror would copy everything once more are refused before anything happens."""

from typing import Any

import pulumi
import pytest

from components import replication_flow
from components.guards import identity_changes, mirror_identity
from settings.mirrors import Mirror

from ...support.component_settings import mirror as settings_of
from ...support.pulumi_engine import Engine, mirror, target, up
from ...support.recorded_program import SOURCE_OUTPUTS

NOW = settings_of()
ENDS = {"source": {"stack": "dev", "alias": "us", "user": "reader"}, "target": {"alias": "eu", "user": "writer"}}


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"groupId": "new"}, "groupId must stay 'mm2' (got 'new'): Connect starts a new group."),
        (
            {"offsetStorageTopic": "new"},
            "offsetStorageTopic must stay 'mm2-offsets' (got 'new'): Connect finds no positions there.",
        ),
        (
            {"source": {**ENDS["source"], "alias": "new"}},
            "source.alias must stay 'us' (got 'new'): positions are kept under the old alias.",
        ),
        (
            {"target": {**ENDS["target"], "alias": "new"}},
            "target.alias must stay 'eu' (got 'new'): positions are kept under the old alias.",
        ),
        ({"naming": "prefixed"}, "naming must stay 'identity' (got 'prefixed'): remote topics get other names."),
        ({"separator": "_"}, "separator must stay '.' (got '_'): remote and internal topics get other names."),
    ],
)
def test_each_change_of_a_mirrors_identity_is_reported_with_its_meaning(change: dict[str, Any], reported: str) -> None:
    assert identity_changes(settings_of(**change), mirror_identity(NOW).document(), {}) == [f"mirror mm2: {reported}"]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"topics": ["items", "more"]},
        {"topicsExclude": ["x"]},
        {"sourceTasksMax": 8},
        {"replicas": 3},
        {"version": "4.2.0"},
        {"resources": {"limits": {"cpu": 2}}},
        {"configStorageTopic": "new"},
        {"statusStorageTopic": "new"},
        {"namespace": "elsewhere"},
        {"state": "paused"},
    ],
)
def test_other_changes_are_made_in_place(change: dict[str, Any]) -> None:
    assert identity_changes(settings_of(**change), mirror_identity(NOW).document(), {}) == []


def test_what_an_older_version_did_not_export_is_not_held_against_the_mirror() -> None:
    known = {"sourceAlias": "us", "targetAlias": "eu"}
    assert identity_changes(settings_of(groupId="other"), known, {}) == []


def test_a_new_name_between_the_same_clusters_is_a_rename() -> None:
    renamed = settings_of(name="new")
    (reported,) = identity_changes(renamed, None, {"mm2": mirror_identity(NOW).document()})
    assert reported.startswith("mirror new: name must stay mm2 (got new between the same clusters)")


def test_a_rename_that_keeps_group_and_positions_copies_nothing_again() -> None:
    kept = {"groupId": "mm2", "offsetStorageTopic": "mm2-offsets"}
    assert identity_changes(settings_of(name="new", **kept), None, {"mm2": mirror_identity(NOW).document()}) == []
    (reported,) = identity_changes(
        settings_of(name="new", groupId="mm2"), None, {"mm2": mirror_identity(NOW).document()}
    )
    assert "name must stay mm2" in reported


def test_a_second_mirror_or_one_from_elsewhere_is_no_rename() -> None:
    assert identity_changes(settings_of(name="second"), None, {}) == []
    elsewhere = settings_of(name="new", source={**ENDS["source"], "stack": "qa"})
    assert identity_changes(elsewhere, None, {"mm2": mirror_identity(NOW).document()}) == []


def before(*mirrors: Mirror) -> dict[str, Any]:
    """Outputs of this stack when it was last up."""
    return {
        "dev": SOURCE_OUTPUTS,
        "stg": {"mirrors": {each.name: mirror_identity(each).document() for each in mirrors}},
    }


def shipped(**changed: Any) -> Mirror:
    """The mirror of `engine.mirror` as settings."""
    return settings_of(**{**mirror(), **changed})


@pytest.mark.parametrize("preview", [True, False])
def test_the_program_refuses_before_the_first_resource_and_names_every_change(preview: bool) -> None:
    engine = Engine(stacks=before(shipped(), shipped(name="other", groupId="o")), preview=preview)
    flows = [mirror(naming="prefixed", groupId="new"), mirror(name="other", groupId="p")]
    with pytest.raises(pulumi.RunError) as error:
        up(engine, target(mirrors=flows))
    reported = str(error.value)
    for part in ("mm2: groupId", "mm2: naming", "other: groupId", "acceptRereplication: true"):
        assert part in reported
    assert not engine.resources


def test_a_change_that_is_accepted_is_made() -> None:
    engine = Engine(stacks=before(shipped()))
    up(engine, target(mirrors=[mirror(groupId="new", acceptRereplication=True)]))
    assert engine.one("v1:KafkaMirrorMaker2")["spec"]["target"]["groupId"] == "new"


def test_a_second_mirror_between_the_same_clusters_can_be_added_and_one_removed() -> None:
    engine = Engine(stacks=before(shipped()))
    up(engine, target(mirrors=[mirror(), mirror(name="second")]))
    assert len(engine.all("v1:KafkaMirrorMaker2")) == 2
    engine = Engine(stacks=before(shipped(), shipped(name="second")))
    up(engine, target(mirrors=[mirror()]))
    assert len(engine.all("v1:KafkaMirrorMaker2")) == 1


def test_the_opposite_direction_is_held_to_its_own_facts() -> None:
    reverse = {"topics": ["back"]}
    both = shipped(naming="prefixed", reverse=reverse)
    flow = mirror(naming="prefixed", reverse=reverse)
    up(Engine(stacks=before(both, both.reverse_mirror())), target(mirrors=[flow]))
    source = {**flow["source"], "alias": "new"}
    with pytest.raises(pulumi.RunError) as error:
        up(Engine(stacks=before(both, both.reverse_mirror())), target(mirrors=[{**flow, "source": source}]))
    assert "mirror mm2: source.alias must stay" in str(error.value)
    assert "mirror mm2-reverse: target.alias must stay" in str(error.value)


def test_what_the_program_exports_is_what_the_next_run_is_held_to() -> None:
    seen = up(Engine(), target())
    exported = seen.exports["mirrors"]["mm2"]
    assert {key: exported[key] for key in mirror_identity(shipped()).document()} == mirror_identity(
        shipped()
    ).document()


def test_a_state_that_the_engine_is_just_writing_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([RuntimeError("failed to load checkpoint: EOF"), ({"mirrors": {"mm2": {}}}, "")])

    def outputs(_: str) -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(replication_flow, "_outputs", outputs)
    for name in ("get_organization", "get_project", "get_stack"):
        monkeypatch.setattr(pulumi, name, lambda: "x")
    assert replication_flow.previous_outputs() == {"mirrors": {"mm2": {}}}
    answers = iter([RuntimeError("permission denied")])
    with pytest.raises(RuntimeError, match="permission denied"):
        replication_flow.previous_outputs()
