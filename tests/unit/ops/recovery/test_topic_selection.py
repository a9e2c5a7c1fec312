"""Which topics and groups a failover of a part of a mirror takes, what it refuses, and what the next one takes in."""

from pathlib import Path
from typing import Any

import pytest

from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import mirror_context, topic_selection
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.topic_selection import TopicSelection, not_followed, require_undivided, select, take_in_earlier
from settings.mirror_parts import FailedOver
from tests.support.recovery_pair import Kept, Side, entry, known
from tests.support.recovery_project import STACK_FILE

ITEMS, INVENTORY, STORE = (TopicPartition(name, 0) for name in ("items", "items.inventory", "store.inventory"))
SPLIT: dict[str, Any] = {"failedOver": {"topics": ["items"], "groups": ["orders"]}}
LEFT_OUT: dict[str, Any] = {"topics_exclude": ["items"], "groups_exclude": ["__.*", "orders"], "failed_over": ["items"]}


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Side:
    side = Side("es-src", {ITEMS: 10, INVENTORY: 5, STORE: 5, TopicPartition("local", 0): 1})
    monkeypatch.setattr(MirrorContext, "source", lambda _: side)
    return side


def choose(pattern: str, of: MirrorContext | None = None, journal: Journal | None = None) -> TopicSelection:
    return select(of or known(), pattern, journal or Kept(), {"path": "planned", "exact": False})


@pytest.mark.parametrize(
    ("pattern", "topics"),
    [("items", ("items",)), (r"items(\..*)?", ("items", "items.inventory")), (r"(?i)STORE\..*", ("store.inventory",))],
)
def test_a_pattern_is_javas_and_matches_whole_names_of_mirrored_topics(
    source: Side, pattern: str, topics: tuple[str, ...]
) -> None:
    assert choose(pattern).topics == topics


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("item", "must match a topic of mirror mm2 (got 'item', allowed items, items.inventory, store.inventory)"),
        ("local", "must match a topic of mirror mm2 (got 'local'"),
        (".*", "must leave a topic of mirror mm2 at the source (got '.*', which matches all of items"),
        ("items[", "must be a regular expression of Java (got 'items['"),
        (r"items\b", "must be a regular expression of Java"),
    ],
)
def test_what_chooses_nothing_or_all_or_cannot_be_read_is_one_error(source: Side, pattern: str, message: str) -> None:
    with pytest.raises(OpsError) as caught:
        choose(pattern)
    assert message in str(caught.value)
    assert str(caught.value).endswith("Nothing was changed.")


def test_topics_that_are_at_the_target_already_are_said_and_kept_beside_the_next_ones(source: Side) -> None:
    split = known(LEFT_OUT, **SPLIT)
    with pytest.raises(OpsError, match=r"allowed items.inventory, store.inventory; at the target already: items\)"):
        choose("items", split)
    with pytest.raises(OpsError, match="leave --topic out"):
        choose(".*inventory", split)
    chosen = choose("store.*", split)
    assert (chosen.topics, chosen.earlier) == (("store.inventory",), FailedOver(topics=("items",), groups=("orders",)))


def test_an_interrupted_failover_goes_on_with_the_topics_with_which_it_began(source: Side) -> None:
    began = TopicSelection(pattern="store.*", topics=("store.inventory",), earlier=FailedOver(topics=("items",)))
    journal = Kept({**entry(finished=None, fence={}), "options": {"path": "planned", **began.kept()}})
    source.log |= {TopicPartition("store.new", 0): 1}
    assert choose("store.*", known({"topics": [".*"]}), journal) == began


@pytest.mark.parametrize("options", [{}, {"topic": "store.*", "topics": ["store.inventory"]}])
def test_another_failover_under_way_is_to_be_finished_first(source: Side, options: dict[str, Any]) -> None:
    journal = Kept({**entry(finished=None, fence={}), "options": options})
    with pytest.raises(OpsError, match=r"it must be finished as it began: .*topic"):
        choose("items", journal=journal)


def test_a_mirror_is_narrowed_to_topics_also_to_such_as_it_leaves_out() -> None:
    split = known(
        LEFT_OUT | {"canary": {"topic": "store.inventory"}, "counts_from": {"store.inventory": {"0": 3}}}, **SPLIT
    )
    assert not split.request.mirror.carries_topic("items")
    assert not split.request.mirror.carries_group("orders")
    part = mirror_context.narrowed(split, ["items"], {}).request.mirror
    assert [name for name in ("items", "items.inventory", "store.inventory") if part.carries_topic(name)] == ["items"]
    assert part.carries_group("orders")
    assert not part.carries_group("__internal")
    assert (part.canary, part.counts_from, part.failed_over) == (None, {}, ())


def test_with_a_prefix_a_part_has_the_prefixed_remote_topics_alone() -> None:
    part = mirror_context.narrowed(known({"naming": "prefixed"}), ["items"], {}).request.mirror
    assert part.target_topic("items") == "es-src.items"


def test_groups_go_with_topics_that_they_read_alone(source: Side) -> None:
    source.held = {"orders": {ITEMS: 3, TopicPartition("local", 0): 1}, "stock": {STORE: 2}, "idle": {}}
    source.states = dict.fromkeys(source.held, "EMPTY")
    assert require_undivided(source, known(), ["items"]) == ("orders",)  # type: ignore[arg-type]
    source.held["both"] = {ITEMS: 1, STORE: 1, INVENTORY: 1}
    source.states["both"] = "STABLE"
    with pytest.raises(OpsError) as caught:
        require_undivided(source, known(), ["items"])  # type: ignore[arg-type]
    assert "(got both reads items.inventory, store.inventory too)" in str(caught.value)
    del source.held["both"][INVENTORY]
    assert require_undivided(source, known(LEFT_OUT, **SPLIT), ["store.inventory"]) == ("both", "stock")  # type: ignore[arg-type]


def test_a_group_that_went_with_topics_before_is_judged_by_what_it_has_read_since(source: Side) -> None:
    split = known(LEFT_OUT, **SPLIT)
    source.held = {"orders": {ITEMS: 3, STORE: 2}}
    source.states = {"orders": "EMPTY"}
    assert require_undivided(source, split, ["store.inventory"]) == ("orders",)  # type: ignore[arg-type]
    source.held["orders"][INVENTORY] = 1
    with pytest.raises(OpsError, match=r"orders reads items\.inventory too"):
        require_undivided(source, split, ["store.inventory"])  # type: ignore[arg-type]


def test_a_failover_of_the_rest_warns_of_groups_that_are_on_both_sides(source: Side) -> None:
    split = known(LEFT_OUT, **SPLIT)
    source.held = {"orders": {ITEMS: 3}, "stock": {STORE: 2}}
    source.states = dict.fromkeys(source.held, "EMPTY")
    assert not_followed(split) == []
    source.held["orders"] |= {STORE: 1, INVENTORY: 1}
    (warning,) = not_followed(split)
    assert "at the source too (orders items.inventory, store.inventory): their offsets" in warning
    source.states = {}
    assert not_followed(split) == not_followed(known()) == []


def part(**steps: Any) -> dict[str, Any]:
    return {**entry(**steps), "options": {"topic": "items", "topics": ["items"]}}


def test_the_next_failover_takes_in_where_both_sides_stood_and_what_is_fenced() -> None:
    before = part(
        stop={"boundary": {"items-0": 7}, "copied": {"items-0": 6}}, fencing={"topics": ["items"], "denied": ["User:a"]}
    )
    now = entry(
        finished=None,
        stop={"boundary": {"store.inventory-0": 5}, "copied": {"store.inventory-0": 4}},
        fencing={"topics": ["store.inventory"], "mirrorUsers": ["reader"]},
    )
    journal = Kept({**now, "before": before})
    for _ in range(2):  # a switch that is done again
        take_in_earlier(journal)
        assert journal.steps["stop"]["boundary"] == {"items-0": 7, "store.inventory-0": 5}
        assert journal.steps["stop"]["copied"] == {"items-0": 6, "store.inventory-0": 4}
        fencing = journal.steps["fencing"]
        assert (set(fencing["topics"]), fencing["mirrorUsers"]) == ({"items", "store.inventory"}, ["reader"])
        assert fencing["denied"] == ["User:a"]


def test_what_a_failback_or_a_failover_of_the_mirror_has_noted_is_not_taken_in() -> None:
    for before in (entry(stop={"boundary": {"items-0": 7}}), {**part(stop={"ends": {}}), "command": "failback"}):
        before["options"] = {} if before["command"] == "failover" else {"to": "dev"}
        journal = Kept({**entry(finished=None, stop={"boundary": {}}), "before": before})
        take_in_earlier(journal)
        assert journal.written == []


def test_a_position_that_is_not_known_of_one_part_is_not_known_of_the_whole() -> None:
    before = part(stop={"boundary": {"items-0": 7}, "copied": {"items-0": 6}})
    now = entry(finished=None, stop={"boundary": {"store.inventory-0": 5}, "copied": None})
    journal = Kept({**now, "before": before})
    take_in_earlier(journal)
    assert journal.steps["stop"]["copied"] is None


def test_a_lost_source_takes_a_failover_of_topics_over_until_their_switch() -> None:
    options = {"path": "planned", **TopicSelection(pattern="items", topics=("items",)).kept()}
    began = {**entry(finished=None, fence={}, fencing={"topics": ["items"]}, stop={}), "options": options}
    earlier = part(stop={})
    journal = Kept({**began, "before": earlier})
    with pytest.raises(OpsError, match="must be finished as it began"):
        journal.begin("failover", {"path": "planned", "exact": False})
    journal.begin("failover", {"path": "unplanned", "exact": False}, gives_up=True)
    assert journal.entry is not None
    assert (set(journal.steps), journal.entry["before"]["options"]) == ({"fencing"}, earlier["options"])
    journal = Kept({**began, "steps": {**began["steps"], "switching": {}}})
    with pytest.raises(OpsError, match="must be finished as it began"):
        journal.begin("failover", {"path": "unplanned", "exact": False}, gives_up=True)


def switched() -> dict[str, Any]:
    """A failover of items after which Pulumi could not take over what was changed."""
    done: dict[str, Any] = {
        "stop": {"boundary": {"items-0": 7}, "copied": {"items-0": 6}},
        "fencing": {"topics": ["items"]},
    }
    began = entry(finished=None, **done, switching={}, switch={}, confirm={})
    return {**began, "options": {"path": "planned", **TopicSelection(pattern="items", topics=("items",)).kept()}}


def test_a_lost_source_takes_a_failover_of_topics_over_that_only_pulumi_does_not_know() -> None:
    journal = Kept(switched())
    with pytest.raises(OpsError, match="must be finished as it began"):
        journal.begin("failover", {"path": "planned", "exact": False})
    journal.begin("failover", {"path": "unplanned", "exact": False}, gives_up=True)
    assert journal.entry is not None
    assert (dict(journal.steps), journal.may_have_changed) == ({}, False)
    before = journal.entry["before"]
    assert (before["options"]["topics"], set(before["steps"])) == (["items"], {"stop", "fencing"})
    assert before["finishedAt"] is not None
    journal.done("stop", {"boundary": {"items-0": 99, "store.inventory-0": 5}, "copied": {"store.inventory-0": 4}})
    take_in_earlier(journal)
    assert journal.steps["stop"]["boundary"] == {"items-0": 7, "store.inventory-0": 5}
    assert journal.steps["fencing"]["topics"] == ["items"]


def as_split(journal: Journal, folder: Path, declared: str = "", *, of_topics: bool = False) -> MirrorContext:
    file = folder / "Pulumi.stg.yaml"
    file.write_text(STACK_FILE + declared, "utf-8")
    return topic_selection.as_split(known(), journal, file, {}, of_topics=of_topics)


DECLARED = "      failedOver: {topics: [items], groups: [orders]}\n"


def test_topics_of_which_pulumi_does_not_know_are_left_out_by_the_stack_file(tmp_path: Path) -> None:
    journal = Kept(switched())
    for _ in ("when it begins", "when it goes on"):
        mirror = as_split(journal, tmp_path, DECLARED).request.mirror
        assert [name for name in ("items", "items.inventory") if mirror.carries_topic(name)] == ["items.inventory"]
        assert (mirror.carries_group("orders"), mirror.carries_group("stock")) == (False, True)
        assert as_split(journal, tmp_path, DECLARED).failed_over == known(**SPLIT).failed_over
        with pytest.raises(OpsError, match=r"failedOver of mm2 must have .* \(got none of items\)"):
            as_split(journal, tmp_path)
        journal.begin("failover", {"path": "unplanned", "exact": False}, gives_up=True)
    journal.done("switching", {})
    assert as_split(journal, tmp_path).request.mirror.carries_topic("items")


def test_a_failover_of_topics_that_goes_on_or_has_ended_leaves_the_mirror_as_it_is(tmp_path: Path) -> None:
    assert as_split(Kept(switched()), tmp_path, of_topics=True).request.mirror.carries_topic("items")
    for done in (None, part(stop={}), {**switched(), "finishedAt": "now"}, entry(finished=None, confirm={})):
        assert as_split(Kept(done), tmp_path).request.mirror.carries_topic("items")


def test_the_options_of_a_part_are_kept_in_the_journal() -> None:
    assert topic_selection.TopicSelection(pattern="items", topics=("items",)).kept() == {
        "topic": "items",
        "topics": ["items"],
    }
