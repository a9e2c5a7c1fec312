"""What keeps a failover or failback from beginning, reported together, and what a plan warns of."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from ops.errors import OpsError
from ops.recovery import failback_command, failover_command, failover_result
from ops.recovery.failover import PLANNED, UNPLANNED, Options
from ops.recovery.operation import Step
from tests.support.recovery_pair import (
    Kept,
    connectors,
    entry,
    finished_failover,
    group,
    known,
    lag,
    observe,
    proof,
)

NOTHING = "\nNothing was changed."
STEPS = (Step("drain", "wait until all is copied", dict), Step("stop", "stop the mirror", dict))
FAILED_OVER = entry(stop={"copied": {"items-0": 9}, "boundary": {"items-0": 10}})


def options(path: str = PLANNED, *, exact: bool = False) -> Options:
    return Options(path=path, exact=exact, drain_s=1.0, report_dir=Path("reports"))


def refusal(seen: Any, asked: Options) -> str:
    with pytest.raises(OpsError) as caught:
        failover_command.require_possible(seen, asked, Kept())
    return str(caught.value)


def refusal_back(seen: Any, journal: Kept) -> str:
    with pytest.raises(OpsError) as caught:
        failback_command.require_possible(seen, journal)
    return str(caught.value)


def text(shown: RenderableType) -> str:
    console = Console(width=200, no_color=True)
    with console.capture() as caught:
        console.print(shown)
    return caught.get()


@pytest.mark.parametrize(
    ("seen", "asked", "expected"),
    [
        (
            {"of": known(active="target")},
            options(),
            "mirror mm2: must have the source active (the target is already). To go back: "
            "python -m ops failback --to dev.",
        ),
        (
            {"of": known(active="target", sourceStack=None), "target": "is down"},
            options(UNPLANNED, exact=True),
            "mirror mm2: must have the source active (the target is already). To go back: "
            "python -m ops failback --to STACK. If the target is lost: docs/by-hand.md#the-active-target-is-lost.",
        ),
        ({"target": "is down."}, options(), "target rt-inventory-stg: must be usable. is down."),
        ({"target": "is down."}, options(UNPLANNED), "target rt-inventory-stg: must be usable. is down."),
        (
            {"source": "is down."},
            options(),
            "source rt-inventory-dev: must be usable for a planned failover. is down. If it is lost: --unplanned.",
        ),
        (
            {"of": known(state="paused")},
            options(),
            "mirror mm2: must be declared running for a planned failover (got paused). Set state: running, run "
            "`pulumi up -s stg`; or, without what is not copied yet: --unplanned.",
        ),
        (
            {"connectors": connectors(task="FAILED")},
            options(),
            "mirror mm2: connectors must run to copy the rest (task 0 of es-src->es-tgt.MirrorSourceConnector is "
            "FAILED; task 1 of es-src->es-tgt.MirrorSourceConnector is FAILED). See `python -m ops doctor`; or, "
            "without what is not copied yet: --unplanned.",
        ),
        (
            {},
            options(UNPLANNED, exact=True),
            "--exact: must be given for a planned failover only: without the source nobody knows where its groups "
            "stand. Leave it out: MirrorMaker's own translation is used, which may repeat records.",
        ),
        (
            {"groups": (group(), group("early", target_state="STABLE"), group("soon", target_state="ASSIGNING"))},
            options(),
            "target rt-inventory-stg: consumer groups must be inactive there (members in early, soon). Stop these "
            "applications there first.",
        ),
    ],
    ids=["active", "active external", "target", "target lost", "source", "state", "connectors", "exact", "members"],
)
def test_a_failover_is_refused_with_one_clear_message(seen: dict[str, Any], asked: Options, expected: str) -> None:
    assert refusal(observe(**seen), asked) == expected + NOTHING


@pytest.mark.parametrize("ending", ["-reverse", "-failback"])
@pytest.mark.parametrize("path", [PLANNED, UNPLANNED])
def test_only_the_forward_direction_fails_over(ending: str, path: str) -> None:
    other = replace(known(active=None), mirror=f"mm2{ending}")
    reported = f"--mirror: must be the forward direction (got mm2{ending}, allowed mm2)."
    assert refusal(observe(other, source="is down."), options(path)) == reported + NOTHING


def test_all_that_keeps_a_failover_from_beginning_is_reported_together() -> None:
    early = (group(target_state="STABLE"),)
    message = refusal(observe(source="is gone.", target="is down.", groups=early), options())
    assert [line.split(":")[0] for line in message.splitlines()] == [
        "target rt-inventory-stg",
        "source rt-inventory-dev",
        "target rt-inventory-stg",
        "Nothing was changed.",
    ]


@pytest.mark.parametrize(
    ("seen", "asked"),
    [
        ({}, options(exact=True)),
        ({"connectors": None}, options()),
        ({"source": "is down.", "lag": None}, options(UNPLANNED)),
        ({"connectors": connectors("FAILED")}, options(UNPLANNED)),
        ({"groups": (group(target_state="STABLE"),)}, options(UNPLANNED)),
    ],
    ids=["healthy", "Connect is silent", "source lost", "mirror broken", "applications went ahead"],
)
def test_a_failover_that_can_be_carried_out_may_begin(seen: dict[str, Any], asked: Options) -> None:
    failover_command.require_possible(observe(**seen), asked, Kept())


def test_a_failover_under_way_is_not_judged_again() -> None:
    stopped = observe(known(state="stopped", active="target"), source="is down.")
    failover_command.require_possible(stopped, options(), Kept(entry(finished=None)))


def plan(seen: Any, asked: Options | None = None, journal: Kept | None = None) -> failover_command.FailoverPlan:
    return failover_command.FailoverPlan(seen=seen, options=asked or options(), steps=STEPS, journal=journal or Kept())


@pytest.mark.parametrize(
    ("seen", "asked", "expected"),
    [
        ({}, options(), []),
        ({"of": known(clientsSecret=None)}, options(), ["nobody switches the applications"]),
        ({"of": known(proven={})}, options(), ["nobody has verified this mirror yet"]),
        ({"of": known(proven=proof("fail"))}, options(), ["the latest verification has the verdict fail"]),
        (
            {"source": "is down.", "lag": None},
            options(UNPLANNED),
            ["Unplanned: how many records are lost is unknown: is down. Records that the source still has"],
        ),
        (
            {"lag": lag(1)},
            options(UNPLANNED),
            ["Unplanned: 1 record of the source"],
        ),
    ],
    ids=["healthy", "no clients", "never verified", "verified badly", "unplanned", "unplanned and alive"],
)
def test_a_plan_warns_of_what_should_not_be_missed(seen: dict[str, Any], asked: Options, expected: list[str]) -> None:
    found = plan(observe(**seen), asked)
    assert len(found.warnings) == len(expected)
    assert all(warning.startswith(word) for warning, word in zip(found.warnings, expected, strict=True))
    assert all(f"! {warning}" in text(found.table()) for warning in found.warnings)
    assert found.document()["warnings"] == found.warnings


def test_a_plan_reports_the_steps_the_cost_and_that_it_goes_on() -> None:
    fresh = plan(observe(), options(exact=True)).document()
    assert (fresh["path"], fresh["exact"], fresh["resumes"]) == ("planned", True, False)
    assert [step["done"] for step in fresh["steps"]] == [False, False]
    assert fresh["cost"]["recordsNotMirrored"] == 0
    again = plan(observe(), journal=Kept(entry(finished=None, drain={})))
    assert [step["done"] for step in again.document()["steps"]] == [True, False]
    assert "Failover of mm2 to stack stg, planned, goes on where it stopped" in text(again.table())
    assert "wait until all is copied" in text(again.table())


BACK: dict[str, Any] = {"of": known(active="target", state="stopped")}


@pytest.mark.parametrize(
    ("seen", "journal", "expected"),
    [
        (
            {},
            FAILED_OVER,
            "mirror mm2: must have the target active (the source is). There is nothing to fail back from.",
        ),
        (
            {"of": known({"naming": "prefixed"}, active="target")},
            FAILED_OVER,
            "mirror mm2: naming must be identity to fail back by a command (got prefixed). With prefixed names, what "
            "the target's applications write returns by the mirror's `reverse`: docs/runbook.md#prefixed-names.",
        ),
        (
            {"of": known(active="target", state="stopped", altersOffsets=False)},
            FAILED_OVER,
            "mirror mm2: its operator must alter connectors' offsets to fail back by a command (Strimzi does since "
            "0.44, Event Streams since 12.0, without configDefaults: false). Mirror everything again instead: "
            "docs/runbook.md#mirror-everything-again.",
        ),
        (
            BACK,
            None,
            "ConfigMap rt-inventory-stg/mm2-failover: must record the failover (got nothing): where both sides were "
            "equal is written there. It was not done by `ops failover`, or the ConfigMap was deleted. Mirror "
            "everything again instead: docs/runbook.md#mirror-everything-again.",
        ),
        (BACK, entry("failback", stop={"ends": {}}), "must record the failover (got failback)"),
        (
            BACK,
            entry(stop={"copied": None, "boundary": {}}),
            "ConfigMap rt-inventory-stg/mm2-failover: must record how far the mirror had copied (got nothing: its "
            "position could not be read then). Mirror everything again instead: "
            "docs/runbook.md#mirror-everything-again.",
        ),
        ({**BACK, "source": "is down."}, FAILED_OVER, "source rt-inventory-dev: must be usable for a failback."),
        ({**BACK, "target": "is down."}, FAILED_OVER, "target rt-inventory-stg: must be usable for a failback."),
    ],
    ids=["active", "prefixed", "operator", "no journal", "another journal", "no position", "source", "target"],
)
def test_a_failback_is_refused_with_one_clear_message(
    seen: dict[str, Any], journal: dict[str, Any] | None, expected: str
) -> None:
    message = refusal_back(observe(**seen), Kept(journal))
    assert expected in message
    assert message.endswith(NOTHING)
    assert len(message.splitlines()) == 2


def test_all_that_keeps_a_failback_from_beginning_is_reported_together() -> None:
    seen = observe(known({"naming": "prefixed"}), source="is gone.", target="is down.")
    words = ("source rt", "target rt", "target active", "naming must be", "must record the failover", "Nothing was")
    lines = refusal_back(seen, Kept()).splitlines()
    assert len(lines) == len(words)
    assert all(word in line for word, line in zip(words, lines, strict=True))


def test_a_failback_that_could_not_open_what_the_failover_has_fenced_is_refused() -> None:
    seen = observe(**BACK)
    fenced = {**FAILED_OVER, "steps": {**FAILED_OVER["steps"], "fencing": {"topics": ["items"]}}}
    failback_command.require_possible(seen, Kept(FAILED_OVER), opens=False)
    failback_command.require_possible(seen, Kept(fenced), opens=True)
    refused = partial(pytest.raises, OpsError, match=r"the fence of the failover must be in reach.* Leave --without")
    with refused():
        failback_command.require_possible(seen, Kept(fenced), opens=False)
    for steps in ({}, {"survey": {}, "settle": {}}):  # also one that goes on, by whatever keeps it from the fence
        under_way = entry("failback", finished=None, **steps) | {"before": fenced}
        failback_command.require_possible(seen, Kept(under_way), opens=True)
        failback_command.require_possible(seen, Kept(under_way | {"before": FAILED_OVER}), opens=False)
        with refused():
            failback_command.require_possible(seen, Kept(under_way), opens=False)


def test_a_failback_that_an_earlier_release_began_without_the_fence_goes_on_so() -> None:
    fenced = {**FAILED_OVER, "steps": {**FAILED_OVER["steps"], "fencing": {"topics": ["items"]}}}
    begun = entry("failback", finished=None, settle={}) | {"before": fenced, "options": {"withoutFence": True}}
    failback_command.require_possible(observe(**BACK), Kept(begun), opens=False)
    done = entry("failback", finished=None, switch={}) | {"before": fenced}
    failback_command.require_possible(observe(**BACK), Kept(done), opens=False)


def test_a_failback_under_way_asks_only_that_both_sides_answer() -> None:
    journal = Kept(entry("failback", finished=None))
    failback_command.require_possible(observe(known(active="source")), journal)
    assert "source rt-inventory-dev: must be usable" in refusal_back(observe(source="is down."), journal)


def test_a_failback_may_begin_after_a_failover_and_its_plan_reports_the_steps() -> None:
    seen, journal = observe(**BACK), Kept(FAILED_OVER)
    failback_command.require_possible(seen, journal)
    found = failback_command.FailbackPlan(seen=seen, steps=STEPS, journal=journal, emptied={})
    assert found.document()["warnings"] == []
    assert (found.document()["to"], found.document()["resumes"]) == ("dev", False)
    assert [step["done"] for step in found.document()["steps"]] == [False, False]
    assert "Failback of mm2 to rt-inventory-dev" in text(found.table())


def test_a_plan_of_a_failback_reports_how_many_records_it_deletes_and_where() -> None:
    emptied = {"items-0": 1200, "store.inventory-1": 1}
    found = failback_command.FailbackPlan(seen=observe(**BACK), steps=STEPS, journal=Kept(FAILED_OVER), emptied=emptied)
    warned = (
        "2 partitions of rt-inventory-dev with records that only it has: up to 1201 records are deleted there (items-0 "
        "1200, store.inventory-1 1), once the target is proven to hold all of them; they return from it"
    )
    assert (found.document()["emptied"], found.document()["warnings"]) == (emptied, [warned])
    assert f"! {warned}" in " ".join(text(found.table()).split())


@pytest.mark.parametrize("expected", [{}, {"altersOffsets": True}], ids=["by an older version", "expected"])
def test_a_mirror_whose_operator_alters_offsets_may_fail_back(expected: dict[str, Any]) -> None:
    failback_command.require_possible(observe(known(active="target", state="stopped", **expected)), Kept(FAILED_OVER))


@pytest.mark.parametrize(
    ("path", "lost", "stranded", "message"),
    [
        (PLANNED, 0, {}, "No record was lost: all were compared."),
        (PLANNED, 3, {"items-0": 3}, "the source was written to afterwards (items-0: 3 offsets)"),
        (PLANNED, None, None, "whether more were written to the source afterwards is unknown: no rights."),
        (UNPLANNED, None, None, "how many records are lost is unknown: no rights."),
        (UNPLANNED, 3, None, "at least 3 records of the source are not on the target; by now that is unknown: no"),
        (UNPLANNED, 3, {"items-0": 3}, "Unplanned: 3 records of the source are not on the target."),
    ],
)
def test_a_finished_failover_says_plainly_what_was_lost(
    path: str, lost: int | None, stranded: dict[str, int] | None, message: str
) -> None:
    repeated = 0 if path == PLANNED else None
    done = finished_failover(
        {"orders": {"repeated": repeated, "skipped": repeated}},
        path=path,
        recordsLost=lost,
        stranded=stranded,
        strandedWhy="no rights." if stranded is None else None,
        newestMirrored={"items": "2026-11-22T08:00:00Z"} if path == UNPLANNED else None,
    )
    shown = " ".join(text(failover_result.summary(done)).split())
    assert message in shown
    assert ("No record was lost" in shown) == (lost == 0)
    assert ("at most 7" in shown) == (path == UNPLANNED)
    assert "No Secret tells applications." in shown
    assert "auto.offset.reset" not in shown


def test_a_finished_failover_names_the_partitions_in_which_the_application_decides() -> None:
    done = finished_failover({"orders": {"withoutPosition": ["items-1", "items-3"]}})
    shown = " ".join(text(failover_result.summary(done)).split())
    assert (
        "group orders: 2 partitions with records without an offset on the target, not counted above: "
        "auto.offset.reset of the application decides what it reads there."
    ) in shown


@pytest.mark.parametrize(
    ("group", "more", "message", "unsettled"),
    [
        ({}, {}, "No Secret tells", False),
        ({"setBack": {"items-0": 3}}, {}, "group orders: set back to what the mirror has translated", False),
        ({"mayBeSkipped": {"items-0": 3}}, {}, "it may skip records in front of its offset", True),
        ({"mayBeSkipped": {"items-0": 3}}, {}, "python -m ops offsets set --stack stg --group orders --topic", True),
        ({"translated": False}, {}, "orders: nothing translated by the mirror, left as on the target.", False),
        ({}, {"activeOnTarget": ["early"]}, "! early: members on the target already, left where they work.", False),
        ({}, {"translationUnknown": "no rights."}, "whether they skip records is unknown. no rights.", True),
    ],
)
def test_a_finished_unplanned_failover_names_groups_that_may_skip_records(
    group: dict[str, Any], more: dict[str, Any], message: str, unsettled: bool
) -> None:
    done = finished_failover({"orders": group}, **more)
    assert message in " ".join(text(failover_result.summary(done)).split())
    assert failover_result.unsettled(done) == unsettled


@pytest.mark.parametrize(
    ("stranded", "message"),
    [
        ({}, "No record was lost: all were compared."),
        (
            {"items-0": 3},
            "! All records were compared, but the target was written to afterwards (items-0: 3 offsets). These records "
            "are not on the source. Stop the producer; write them to the source again.",
        ),
        (None, "whether more were written to the target afterwards is unknown: no rights."),
    ],
)
def test_a_finished_failback_says_what_was_brought_over_and_what_was_not(
    stranded: dict[str, int] | None, message: str
) -> None:
    done: dict[str, Any] = {
        "mirror": "mm2",
        "switchedAt": "now",
        "verification": {"recordsCompared": 1},
        "recordsBroughtOver": 5,
        "recordsDeletedUnproven": 0,
        "stranded": stranded,
        "strandedWhy": "no rights." if stranded is None else None,
        "groups": {"orders": {"repeated": 0, "skipped": 0}},
        "clientsSecret": "mm2-clients",
    }
    shown = " ".join(text(failback_command.summary(done)).split())
    assert message in shown
    assert ("No record was lost" in shown) == (stranded == {})
    assert "1 record compared" in shown
    assert "5 records that only the source had are on both sides now." in shown
    assert "Secret mm2-clients" in shown
