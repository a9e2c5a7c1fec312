"""The fence of a source: what it is for, and that the stack file and the KafkaUsers say the same as Pulumi would."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from kafka import topic_writers
from kafka.topic_writers import BrokerRights
from ops.errors import OpsError
from ops.recovery import fence, kubernetes_access
from ops.recovery.user_rights import UserRights, merged
from settings.files import load
from tests.support.applied_objects import MANAGER
from tests.support.fenced_source import APPLICATION, FENCE, MIRROR, TOPICS, WRITTEN, Source, fenced_source, rendered
from tests.support.recovery_pair import known


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    with fenced_source(tmp_path) as found:
        yield found


def test_a_fence_is_what_an_up_of_its_stack_file_renders_by_pulumis_own_manager(source: Source) -> None:
    before = source.specs()
    assert source.fence().put_up(FENCE) == [APPLICATION, MIRROR]
    assert source.declared == WRITTEN
    assert source.specs() == source.rendered(fenced=True) == rendered(load(source.file)) != before
    assert set(source.server.managers) == {MANAGER}
    denied = source.specs()[APPLICATION]["authorization"]["acls"][-1]
    assert (denied["type"], denied["operations"]) == ("deny", ["Write", "Delete", "Alter"])
    assert source.said == [f"  rt-inventory-dev: {APPLICATION} may not write 3 topics any more"]

    source.fence().take_down(FENCE)
    assert source.declared is None
    assert source.specs() == before == source.rendered(fenced=False)
    assert set(source.server.managers) == {MANAGER}


def test_a_fence_that_was_put_up_in_part_is_put_up_and_taken_down_whole(source: Source) -> None:
    source.fence().declare(FENCE)  # and killed
    assert source.specs() == source.rendered(fenced=False)
    source.fence().put_up(FENCE)
    assert source.specs() == source.rendered(fenced=True)
    source.fence().open_for_applications(FENCE)  # and killed
    assert source.specs()[MIRROR] == source.rendered(fenced=True)[MIRROR]
    assert source.specs()[APPLICATION] == source.rendered(fenced=False)[APPLICATION]
    source.fence().take_down(FENCE)
    assert (source.specs(), source.declared) == (source.rendered(fenced=False), None)


def test_the_fence_of_another_mirror_stays(source: Source) -> None:
    other = fence.made({"topics": ["other"], "mirrorUsers": [MIRROR]})
    source.fence().put_up(other)
    source.fence().put_up(FENCE)
    assert source.declared == {**WRITTEN, "topics": ["other", *TOPICS]}
    source.fence().take_down(FENCE)
    assert source.declared == fence.document(other)
    assert source.specs() == rendered(load(source.file))
    assert fence.minus(None, FENCE) is None


def test_a_fence_that_another_mirror_declares_while_one_is_taken_down_stays(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, taken = fence.made({"topics": ["other"], "mirrorUsers": [MIRROR]}), source.fence()
    taken.put_up(FENCE)
    change = UserRights.change

    def slow(*arguments: Any, **options: Any) -> list[str]:
        source.fence().declare(other)
        return change(*arguments, **options)

    monkeypatch.setattr(UserRights, "change", slow)
    taken.take_down(FENCE)
    assert source.declared == fence.document(other)


def test_rules_that_nobody_has_declared_are_left_alone(source: Source) -> None:
    by_hand = {"type": "allow", "resource": {"type": "topic", "name": "own"}, "operations": ["Read"], "host": "*"}
    source.server.objects["kafkausers", APPLICATION]["spec"]["authorization"]["acls"].insert(0, by_hand)
    before = source.specs()[APPLICATION]["authorization"]["acls"][:]
    source.fence().put_up(FENCE)
    found = source.specs()[APPLICATION]["authorization"]["acls"]
    assert found[: len(before)] == before
    assert [rule["type"] for rule in found[len(before) :]] == ["deny"] * 3
    source.fence().take_down(FENCE)
    assert source.specs()[APPLICATION]["authorization"]["acls"] == before


def test_what_another_command_changes_at_the_same_time_stays(source: Source) -> None:
    """Two mirrors of one source fail over at once: each has a Lease of its own, and both change its users."""
    others = {"type": "deny", "resource": {"type": "topic", "name": "other"}, "operations": ["Write"], "host": "*"}
    left = [APPLICATION]

    def another_command(held: dict[str, Any]) -> None:
        if left and held["metadata"]["name"] == APPLICATION:
            left.clear()
            held["spec"]["authorization"]["acls"].append(others)
            source.server.touch(held)

    source.server.before_apply = another_command
    source.fence().put_up(FENCE)
    found = source.specs()[APPLICATION]["authorization"]["acls"]
    assert not left
    assert others in found
    assert [rule["type"] for rule in found[-4:]] == ["deny"] * 4


def test_a_process_that_was_suspended_in_front_of_its_change_asks_for_permission_again(source: Source) -> None:
    before, asked = source.specs(), list[int]()

    def permitted_once() -> None:
        asked.append(len(asked))
        if source.server.changes != changes:
            raise OpsError("the Lease is lost")

    def another_command(held: dict[str, Any]) -> None:
        source.server.touch(held)

    fencing, _ = fence.at_source(known(), source.folder, source.environment, print, permitted_once)
    assert fencing is not None
    source.server.before_apply, changes = another_command, source.server.changes
    with pytest.raises(OpsError, match="the Lease is lost"):
        fencing.put_up(FENCE)
    assert (source.specs(), source.server.managers) == (before, [])


def test_only_what_differs_between_two_declarations_changes() -> None:
    one, two, three, other = ({"rule": name} for name in ("one", "two", "three", "other"))
    assert merged([one, two], [one, two], [one, three]) == [one, three]
    assert merged([other, two, one], [one, two], [one, three]) == [other, one, three]
    assert merged([one, three], [one, two], [one, three]) == [one, three]
    assert merged([one, three], [one, three], [one, two, three]) == [one, two, three], "in the order of the declaration"


def test_a_user_is_refused_once_its_operator_has_carried_it_out(source: Source) -> None:
    assert source.fence().missing(FENCE) == {APPLICATION: True}
    source.fence().put_up(FENCE)
    assert source.fence().missing(FENCE) == {APPLICATION: False}
    source.server.objects["kafkausers", APPLICATION]["metadata"]["generation"] = 9  # changed, and not seen yet
    assert source.fence().missing(FENCE) == {APPLICATION: True}


def test_without_permission_or_an_operator_that_works_it_is_an_error(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OpsError("the Lease is lost")

    without, _ = fence.at_source(known(), source.folder, source.environment, print, refuse)
    assert without is not None
    for change in (without.put_up, without.declare, without.take_down):
        with pytest.raises(OpsError, match="the Lease is lost"):
            change(FENCE)
    assert (source.server.managers, source.declared) == ([], None)
    source.server.ready = False
    monkeypatch.setattr(kubernetes_access.time, "sleep", lambda _: None)
    with pytest.raises(OpsError, match=f"KafkaUser rt-inventory-dev/{APPLICATION}: must be Ready within 0 s"):
        source.fence().put_up(FENCE, 0.0)


def test_a_source_whose_users_are_out_of_reach_is_named_before_anything_is_changed(source: Source) -> None:
    source.fence().require_reachable()
    Path(source.environment["KUBECONFIG"]).unlink()
    with pytest.raises(OpsError, match=r"source rt-inventory-dev: its KafkaUsers must be in reach.* --without-fence"):
        source.fence().require_reachable()


def test_a_source_that_no_rule_can_fence_is_a_warning(source: Source, tmp_path: Path) -> None:
    def chosen(*, without: bool = False, **changed: Any) -> tuple[bool, list[str]]:
        found, why = fence.chosen(
            known(**changed), source.folder, source.environment, print, lambda: None, without=without
        )
        return found is not None, why

    assert chosen() == (True, [])
    assert chosen(without=True) == (False, ["rt-inventory-dev is not fenced: see to it that nobody writes there"])
    assert "no stack describes the source" in chosen(sourceStack=None)[1][0]
    assert "file" in chosen(sourceStack="prod")[1][0]
    document = yaml.safe_load(source.file.read_text("utf-8"))
    document["config"]["rt-inventory:cluster"]["authorization"] = "none"
    document["config"]["rt-inventory:users"] = [{"name": MIRROR}]
    source.file.write_text(yaml.safe_dump(document), "utf-8")
    found, (why,) = chosen()
    assert (found, "does not ask for rights" in why) == (False, True), why


def test_a_user_that_serves_mirror_and_applications_is_a_warning(source: Source) -> None:
    file = source.folder / "Pulumi.stg.yaml"
    text = file.read_text("utf-8")
    assert f"source: {APPLICATION}" in text
    file.write_text(text.replace(f"source: {APPLICATION}", f"source: {MIRROR}"), "utf-8")
    found, why = fence.at_source(known(), source.folder, source.environment, print)
    assert found is not None
    assert why == f"user {MIRROR} serves both the mirror and applications (clients.source)"


@pytest.mark.parametrize(
    ("patterns", "names", "topics", "prefixes"),
    [
        (["items", r"items\.inventory"], ["items", "other"], ["items", "items.inventory"], []),
        (["items", r"store\..*"], ["items", "store.a", "other"], ["items", "store.a"], ["store."]),
        ([r"store\..*"], ["store.a", "store.a.internal"], ["store.a"], []),
        ([".*"], ["a", "b"], ["a", "b"], []),
        (["it[ae]ms"], ["items", "itams", "other"], ["itams", "items"], []),
    ],
    ids=str,
)
def test_names_at_the_source_are_fenced_and_prefixes_in_which_all_is_mirrored(
    patterns: list[str], names: list[str], topics: list[str], prefixes: list[str]
) -> None:
    mirror = known(mirror={"topics": patterns, "topics_exclude": [r".*\.internal"]}).request.mirror
    assert fence.covered(mirror, names) == (topics, prefixes)


def test_remote_topics_have_names_at_the_source() -> None:
    assert fence.names_at_source(known().request.mirror, ["items"]) == ["items"]
    prefixed = known(mirror={"naming": "prefixed"}).request.mirror
    assert fence.names_at_source(prefixed, ["es-src.items"]) == ["items"]


def test_who_may_write_all_the_same_is_named_without_the_mirror_and_the_operators(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = yaml.safe_load(source.file.read_text("utf-8"))
    document["config"]["rt-inventory:cluster"]["superUsers"] = ["boss", "User:admin"]
    source.file.write_text(yaml.safe_dump(document), "utf-8")
    operators = "User:CN=rt-inventory-dev-kafka,O=io.strimzi"
    of = ResourceType.TOPIC, "items", ResourcePatternType.LITERAL
    rules = [
        AclBinding(*of, who, "*", AclOperation.WRITE, AclPermissionType.ALLOW)
        for who in (operators, f"User:{MIRROR}", "User:root")
    ]
    monkeypatch.setattr(topic_writers, "read_rights", lambda _: BrokerRights(rules=tuple(rules), unknown=("no right",)))
    found = source.fence().writers(SimpleNamespace(refusals=SimpleNamespace(user=MIRROR)), FENCE)  # type: ignore[arg-type]  # asked for its user only
    assert set(found.principals) == {"User:boss", "User:admin", "User:root"}
    assert "User:boss (super user)" in fence.may_write(found)
    assert fence.may_write(found).endswith("; others are unknown: no right")
