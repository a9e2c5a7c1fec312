"""What a snapshot of a pair means, as a document and on a screen: made-up snapshots, from healthy to blind."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kafka.lag import Measure, PartitionLag
from kafka.retention import NotCopied, RetentionLimits, until_deletion
from ops.inspection.snapshot import MirrorSnapshot
from ops.recovery.operation import Progress, of_journal
from ops.status import document as status
from tests.support.recovery_pair import Kept, at_work, connectors, entry, group, known, lag, observe, proof, resource

BLIND: dict[str, Any] = {"lag": None, "groups": None, "connectors": None, "mirror": resource(silent="no access")}


def screen(seen: MirrorSnapshot, width: int = 80) -> str:
    """What a terminal without colours shows, spaces and frames taken out."""
    console = Console(width=width, no_color=True, force_terminal=False)
    with console.capture() as shown:
        console.print(status.table(json.loads(json.dumps(status.document(seen)))))
    text = shown.get()
    assert all(len(line) <= width for line in text.splitlines())
    return " ".join("".join(" " if mark in "│┃┏┓┗┛┡┩━─┬┴┼└┘├┤╇┳" else mark for mark in text).split())


def test_a_healthy_pair_has_no_problem_and_a_failover_costs_what_is_not_mirrored() -> None:
    seen = observe(lag=lag(7, 1.5))
    found = status.document(seen)
    assert (found["health"], found["problems"], found["unknown"]) == ("healthy", [], {})
    assert (found["active"], found["activeCluster"], found["clientsSecret"]) == (
        "source",
        "rt-inventory-dev",
        "mm2-clients",
    )
    assert found["verification"] == {
        "verdict": "pass",
        "finishedAt": found["verification"]["finishedAt"],
        "ageSeconds": 60.0,
        "recordsCompared": 10_000,
        "ofEmptyPair": False,
        "failed": [],
        "report": "r.html",
    }
    cost = found["failover"]
    assert (cost["path"], cost["possible"], cost["recordsNotMirrored"], cost["lagSeconds"]) == ("planned", True, 7, 1.5)
    assert (cost["recordsReadAgain"], cost["recordsSkipped"]) == ({"orders": 2}, {})
    text = screen(seen)
    assert "mm2 of stack stg: healthy; active: rt-inventory-dev (source)" in text
    assert "`python -m ops failover --to stg --dry-run` shows" in text
    assert "A failover now would be planned: 7 records not mirrored, groups would read about 2 records again." in text
    assert "7 records, 1.5 s" in screen(seen, 200)
    assert "Secret mm2-clients" in screen(seen, 200)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"source": "is down"}, "source rt-inventory-dev: is down"),
        ({"target": "is down"}, "target rt-inventory-stg: is down"),
        (
            {"mirror": resource(ready=False, reason="Failed: no brokers")},
            "KafkaMirrorMaker2 rt-inventory-stg/mm2 is not Ready: Failed: no brokers",
        ),
        ({"connectors": connectors("FAILED", "RUNNING")}, "es-src->es-tgt.MirrorSourceConnector is FAILED"),
        ({"connectors": connectors(task="FAILED")}, "task 1 of es-src->es-tgt.MirrorSourceConnector is FAILED"),
        (
            {"connectors": tuple(replace(one, tasks=()) for one in connectors())},
            "es-src->es-tgt.MirrorSourceConnector is RUNNING without a task",
        ),
        (
            {"of": known(proven=proof("fail", failed=["records_complete", "lag"]))},
            "verification: the latest verdict is fail (records_complete, lag)",
        ),
        ({"of": known(proven=proof("error"))}, "verification: the latest verdict is error (none)"),
        (
            {"active_now": "target"},
            "Pulumi's state is behind: source is active by its outputs, target by what is there. "
            "Run `pulumi up --refresh -s stg`",
        ),
    ],
    ids=["source", "target", "resource", "connector", "task", "refused at its source", "verdict", "error", "state"],
)
def test_each_fault_is_reported_in_words_and_makes_the_pair_degraded(changed: dict[str, Any], message: str) -> None:
    seen = observe(**changed)
    found = status.document(seen)
    assert (found["health"], message in found["problems"]) == ("degraded", True)
    text = screen(seen)
    assert "mm2 of stack stg: degraded" in text
    assert f"! {message}" in text


def test_a_pair_whose_latest_verification_is_unknown_is_not_healthy_unless_that_is_forgiven() -> None:
    found = proof("unknown")
    found["checks"].append({"name": "groups_no_loss", "ok": None})
    seen = observe(of=known(proven=found))
    shown = status.document(seen)
    assert (shown["health"], shown["problems"]) == ("unknown", [])
    assert shown["unknown"]["verification"] == "the latest verdict is unknown (groups_no_loss)"
    limits = seen.pair.request.limits.model_copy(update={"allow_unknown": ("groups_no_loss",)})
    request = seen.pair.request.model_copy(update={"limits": limits})
    forgiven = replace(seen, pair=replace(seen.pair, request=request))
    assert status.document(forgiven)["health"] == "healthy"
    for passed, health in ((False, "unknown"), (True, "healthy")):
        output = {**found, "passed": passed, "checks": None, "unknown": "groups_no_loss"}
        known_better = replace(forgiven, pair=replace(forgiven.pair, proof=output))
        assert status.document(known_better)["health"] == health, "a run forgives less than the limits do"


def test_a_fault_of_two_sources_is_reported_once() -> None:
    faulty = connectors(task="FAILED")
    seen = observe(connectors=(*faulty, *faulty))
    assert len(status.problems(seen)) == 2
    assert not [one for one in status.problems(observe(mirror=resource(connectors=faulty))) if "yet" in one]


def interrupted(command: str = "failover", at: str | None = "switch", **options: Any) -> Progress:
    """What is reported of a failover whose process was killed in step `at`, or of one that is `held`."""
    names = ["drain", "prove", "stop", "offsets", "switch", "confirm"]
    done: dict[str, Any] = {name: {} for name in names[: names.index(at or "drain")]}
    found = of_journal(
        Kept({**entry(command, finished=None, **done), "at": at, "of": names, "options": options}), "stg"
    )
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("options", "command", "expected"),
    [
        ({"path": "planned", "exact": True}, "failover", "python -m ops failover --to stg --mirror mm2 --exact"),
        ({"path": "unplanned", "exact": False}, "failover", "python -m ops failover --to stg --mirror mm2 --unplanned"),
        ({"breakGlass": True}, "failover", "python -m ops failover --to stg --mirror mm2 --break-glass"),
        ({"to": "dev"}, "failback", "python -m ops failback --to dev --stack stg --mirror mm2"),
    ],
)
def test_an_interrupted_operation_is_a_problem_with_its_step_and_the_command_that_goes_on(
    options: dict[str, Any], command: str, expected: str
) -> None:
    seen = observe(recovery=interrupted(command, **options))
    found = status.document(seen)
    assert found["health"] == "degraded"
    assert found["recovery"]["continueWith"] == expected
    text = screen(seen)
    assert f"! {command} interrupted at 5/6 (switch), begun 2026-11-22T07:59:00+00:00" in text
    assert f"Run `{expected}`: it goes on there" in text


def test_a_side_that_a_failover_under_way_has_switched_is_no_state_that_is_behind() -> None:
    assert not [one for one in status.problems(observe(active_now="target", recovery=interrupted())) if "behind" in one]


def test_the_command_that_goes_on_names_a_pair_in_a_folder_of_its_own(tmp_path: Path) -> None:
    found = of_journal(Kept(entry(finished=None, stop={}) | {"options": {"exact": True}}), "stg", tmp_path / "my pair")
    assert found is not None
    reported = f"python -m ops failover --to stg --mirror mm2 --exact -C '{tmp_path}/my pair'"
    assert found.continue_with == reported


def test_an_operation_at_work_is_reported_with_who_carries_it_out() -> None:
    under_way = Kept({**entry(finished=None, drain={}), "of": ["drain", "prove"]})
    found = of_journal(under_way, "stg", holder=at_work())
    assert found is not None
    (problem,) = status.problems(observe(recovery=found))
    assert problem.startswith("failover under way at 2/2 (prove), held by ")


def test_an_operation_that_ended_before_it_changed_anything_is_no_problem() -> None:
    seen = observe(recovery=interrupted(at="prove"))
    assert status.document(seen)["health"] == "healthy"
    assert "A failover of 2026-11-22T07:59:00+00:00 ended before it changed anything." in screen(seen)
    assert status.document(observe(recovery=interrupted(at="stop")))["health"] == "degraded", "it may have stopped it"


def test_a_journal_that_does_not_name_its_steps_reports_how_many_are_done() -> None:
    old = of_journal(Kept(entry(finished=None, drain={}, prove={}, stop={})), "stg")
    assert old is not None
    assert (old.place, old.state) == ("4", "interrupted")
    assert of_journal(Kept(entry()), "stg") is None
    assert of_journal(Kept(), "stg") is None


def test_retention_that_overtakes_the_mirror_is_a_problem_and_what_is_safe_is_shown() -> None:
    left = NotCopied(topic="items", partition=1, records=120, first_ms=0, record_bytes=100)
    limits = RetentionLimits(ms=100_000, size=50_000)
    safe, late = (until_deletion(left, limits, now_ms=now_s * 1000) for now_s in (10, 70))
    found = status.document(observe(until_deletion=(safe,)))
    assert (found["health"], found["retention"]["secondsUntilDeletion"], found["retention"]["overtaken"]) == (
        "healthy",
        90,
        [],
    )
    assert "120 records of items-1 safe for 1 min or 38,000 bytes" in screen(observe(until_deletion=(safe,)), 200)
    found = status.document(observe(until_deletion=(late, replace(late, partition=2), safe)))
    assert found["problems"] == [
        "retention overtakes the mirror in items-1 and 1 more partition: the first of 120 records not mirrored may be "
        "deleted in 30 s. `python -m ops doctor --stack stg` has the remedy"
    ]
    assert found["retention"]["overtaken"] == ["items-1", "items-2"]
    copied = until_deletion(replace(left, records=0, first_ms=None), limits, now_ms=0)
    assert "what is written now is safe for 1 min" in screen(observe(until_deletion=(copied,)), 200)


def test_a_mirror_that_runs_by_all_reports_and_copies_nothing_is_not_healthy() -> None:
    limits = RetentionLimits(ms=7 * 86_400_000, size=None)
    left = NotCopied(topic="items", partition=1, records=120, first_ms=0, written_per_s=5.0, copied_per_s=0.0)
    waiting = until_deletion(left, limits, now_ms=900_000)
    seen = observe(lag=lag(120, 900.0), until_deletion=(waiting,))
    found = status.document(seen)
    problem = (
        "the mirror copies nothing: 120 records wait, the first of items-1 for 15 min. `python -m ops doctor --stack "
        "stg` has the remedy"
    )
    assert (found["health"], found["problems"]) == ("degraded", [problem])
    soon = until_deletion(left, limits, now_ms=60_000)
    copying = until_deletion(replace(left, partition=2, copied_per_s=9.0), limits, now_ms=900_000)
    held = replace(waiting, held=True)
    for well in ((soon,), (waiting, copying), (held,)):
        assert status.problems(replace(seen, until_deletion=well)) == []
    assert status.problems(observe(of=known(state="paused"), until_deletion=(waiting,))) == []


@pytest.mark.parametrize(("records", "of_empty_pair"), [(5, True), (0, False)])
def test_a_proof_of_an_empty_pair_is_told_once_there_are_records(records: int, of_empty_pair: bool) -> None:
    proven = {"verdict": "unknown", "finishedAt": None, "recordsCompared": 0, "unknown": "records_complete, lag"}
    part = PartitionLag(topic="items", partition=0, position=None, source_end=7 + records, records=0, seconds=0.0)
    seen = observe(known(proven=proven), lag=Measure(at_s=0.0, partitions=(replace(part, log_start=7),)))
    assert status.document(seen)["verification"]["ofEmptyPair"] is of_empty_pair
    assert ("of an empty pair: nothing proves the records since" in screen(seen, 200)) is of_empty_pair
    assert status.document(replace(seen, lag=None))["verification"]["ofEmptyPair"] is None


def test_groups_that_would_skip_records_are_a_problem_while_the_source_is_active() -> None:
    groups = (group("orders", skipped=2000), group("billing", skipped=748), group("till"))
    found = status.document(observe(groups=groups))
    assert found["health"] == "degraded"
    (problem,) = found["problems"]
    assert problem.startswith("2 groups would skip about 2,748 records after a failover (orders 2,000, billing 748).")
    many = tuple(group(f"g{at}", skipped=1) for at in range(5))
    assert "5 groups would skip about 5 records after a failover (g0 1, g1 1, g2 1 and 2 more)" in screen(
        observe(groups=many)
    )
    assert status.problems(observe(known(active="target"), groups=groups)) == []


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"mirror": resource(silent="Kubernetes refuses to read it (403), grant get on it")}, "KafkaMirrorMaker2"),
        ({"connectors": None}, "connectors"),
        ({"unknown": {"recovery": "kubernetes: access must be given"}}, "recovery"),
        ({"unknown": {"groups": "denied"}}, "groups"),
    ],
    ids=["stale kubeconfig", "no connectors", "no journal", "no groups"],
)
def test_what_is_unknown_is_never_called_healthy(changed: dict[str, Any], what: str) -> None:
    found = status.document(observe(**changed))
    assert (found["health"], found["problems"]) == ("unknown", [])
    assert [name for name in found["unknown"] if name.startswith(what)] != []
    assert "mm2 of stack stg: unknown" in screen(observe(**changed))
    assert status.document(observe(source="is down", **changed))["health"] == "degraded"


STOPPED: dict[str, Any] = {"mirror": resource(ready=False, reason="stopped")}


@pytest.mark.parametrize("state", ["stopped", "paused"])
def test_a_mirror_that_was_stopped_on_purpose_has_no_fault(state: str) -> None:
    seen = observe(known(active="target", state=state), **STOPPED)
    found = status.document(seen)
    assert (found["health"], found["failover"], found["activeCluster"]) == ("healthy", None, "rt-inventory-stg")
    text = screen(seen)
    assert "active: rt-inventory-stg (target)" in text
    assert "The target is active: a failback is what comes next." in text
    external = screen(observe(known(active="target", state=state, sourceStack=None), **STOPPED))
    assert "The target is active, and no command leads back: no stack describes the source." in external
    assert "comes next" not in external


@pytest.mark.parametrize("state", ["stopped", "paused"])
def test_a_connector_that_runs_behind_a_failover_is_red_and_one_at_rest_is_not(state: str) -> None:
    def style(of: MirrorSnapshot) -> set[str]:
        console = Console(width=200, force_terminal=True, color_system="standard")
        with console.capture() as shown:
            console.print(status.table(status.document(of)))
        rows = [line for line in shown.get().splitlines() if "MirrorSourceConnector " in line]
        return {name for name, code in {"red": "\x1b[1;31m", "green": "\x1b[32m"}.items() if code in rows[0]}

    declared = known(active="target", state=state)
    assert style(observe(declared, connectors=connectors())) == {"red"}
    assert style(observe(declared)) == {"green"}


def test_without_its_source_a_failover_is_unplanned_and_its_loss_unknown() -> None:
    seen = observe(
        source="is down",
        lag=None,
        groups=(group(source_state=None, unread=None, again=None, skipped=None),),
        unknown={"lag": "the source does not answer"},
    )
    cost = status.cost(seen)
    assert cost is not None
    assert (cost["path"], cost["recordsNotMirrored"], cost["recordsReadAgain"]) == ("unplanned", None, {"orders": None})
    text = screen(seen)
    assert "A failover now would be unplanned: an unknown number of records not mirrored." in text
    assert "`python -m ops failover --to stg --unplanned --dry-run` shows" in text
    assert "? lag unknown: the source does not answer" in text
    assert "orders not there empty unknown unknown unknown" in screen(seen, 200)


def test_without_its_target_no_failover_is_possible() -> None:
    seen = observe(target="is down", **BLIND, unknown={"lag": "no", "groups": "no"})
    cost = status.cost(seen)
    assert cost is not None
    assert cost["possible"] is False
    assert "A failover is not possible now: the target does not answer." in screen(seen)
    assert "unknown: Connect does not answer" in screen(seen)
    assert "unknown: no access" in screen(seen)


def test_a_group_reports_for_how_long_it_is_not_carried_over_while_the_source_is_active() -> None:
    late = (group(behind_s=90.0),)
    for active, reported in (("source", 90.0), ("target", None)):
        (row,) = status.document(observe(known(active=active), groups=late))["groups"]
        assert row["notCarriedOverSeconds"] == reported


def test_groups_that_would_skip_lack_a_position_or_have_members_there_are_reported() -> None:
    seen = observe(
        groups=(
            group("skipping", skipped=3),
            group("blank", again=None, unsynced=("items-0", "items-1")),
            group("early", target_state="STABLE"),
        )
    )
    cost = status.cost(seen)
    assert cost is not None
    assert cost["recordsSkipped"] == {"skipping": 3}
    assert cost["withoutPosition"] == {"blank": ["items-0", "items-1"]}
    assert cost["activeOnTarget"] == ["early"]
    assert cost["recordsReadAgain"] == {"skipping": 2, "blank": None, "early": 2}
    assert "no position in 2 partitions" in screen(seen, 200)
    assert "groups would read about 4 records again" in screen(seen, 200)


@pytest.mark.parametrize(
    ("proven", "message"),
    [
        (proof("pass", age_s=10), "pass 10 s ago, 10000 records compared"),
        (proof("fail", age_s=3 * 86400), "fail 3 d ago"),
        (proof("unknown", age_s=7200), "unknown 2 h ago"),
        (proof("pass", age_s=None), "pass, 10000 records compared"),
        ({}, "never: python -m ops verify"),
    ],
    ids=["fresh", "old", "unknown", "without a time", "never"],
)
def test_the_latest_verification_is_reported_with_its_age(proven: dict[str, Any], message: str) -> None:
    assert message in screen(observe(known(proven=proven)), 200)


def test_a_verification_that_was_not_sure_or_never_made_is_no_fault() -> None:
    assert status.problems(observe(known(proven=proof("unknown")))) == []
    assert status.problems(observe(known(proven={}))) == []


def test_a_time_that_cannot_be_read_or_lies_ahead_has_no_age_below_zero() -> None:
    ahead = status.verification(observe(known(proven=proof(age_s=-100))))
    odd = status.verification(observe(known(proven={**proof(), "finishedAt": "yesterday"})))
    naive = status.verification(observe(known(proven={**proof(), "finishedAt": "2026-09-21T00:00:00"})))
    assert ahead is not None
    assert odd is not None
    assert naive is not None
    assert (ahead["ageSeconds"], odd["ageSeconds"]) == (0.0, None)
    assert naive["ageSeconds"] is not None


def test_an_operator_that_lags_behind_and_a_resource_that_is_not_there_are_reported() -> None:
    late = replace(observe().target, resource=resource("Kafka", current=False))
    text = screen(replace(observe(mirror=None), target=late), 200)
    assert "has not seen the latest change" in text
    assert "resource none" in text


def test_many_groups_are_cut_on_the_screen_and_whole_in_the_document() -> None:
    seen = observe(groups=tuple(group(f"group-{at:02d}") for at in range(status.GROUPS_SHOWN + 5)))
    text = screen(seen, 200)
    assert "and 5 more: --json shows all" in text
    assert "group-30" not in text
    assert len(status.document(seen)["groups"]) == status.GROUPS_SHOWN + 5


def test_names_with_brackets_are_shown_as_they_are() -> None:
    assert "orders[eu]" in screen(observe(groups=(group("orders[eu]"),)), 200)
