"""The metrics of one mirror: right values on a healthy pair, and no series where nothing is known or expected."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kafka.connector_status import ConnectorState
from kafka.retention import NotCopied, RetentionLimits, until_deletion
from ops.inspection.snapshot import MirrorSnapshot
from ops.metrics import mirror_metrics
from ops.metrics.mirror_metrics import Family, merged, of_json, of_registry, registry
from ops.recovery.fencing import FenceStatus
from ops.recovery.target_fence import TargetFenceStatus
from tests.support.recovery_pair import CHECKPOINT, SOURCE, connectors, group, known, lag, observe, resource

from ....support.open_metrics import as_openmetrics, families_of

CERTIFICATE = ("source: the trusted authority CN=ca", datetime(2027, 1, 1, tzinfo=UTC))


def reported(seen: MirrorSnapshot, *certificates: tuple[str, datetime]) -> dict[tuple[str, ...], float]:
    """Values by name without its prefix and labels other than the stack and the mirror, which must be right."""
    found: dict[tuple[str, ...], float] = {}
    for family in merged(mirror_metrics.families(seen, certificates)):
        for labels, value in family.samples:
            assert (labels["stack"], labels["mirror"]) == ("stg", "mm2")
            own = [labels[name] for name in sorted(labels) if name not in ("stack", "mirror")]
            assert (family.name.removeprefix("rt_inventory_"), *own) not in found, "a series must be exported once"
            found[family.name.removeprefix("rt_inventory_"), *own] = value
    return found


def names(found: dict[tuple[str, ...], float]) -> set[str]:
    return {key[0] for key in found}


def test_a_healthy_pair_is_reported_whole() -> None:
    fence = FenceStatus(cluster="rt-inventory-dev", stack="dev", users={"app": True}, declared=False)
    groups = group(behind_s=0.0), group("late", again=7, behind_s=90.5)
    left = NotCopied(topic="items", partition=0, records=5, first_ms=0, record_bytes=100, copied_per_s=2.0)
    spared = until_deletion(left, RetentionLimits(ms=60_000, size=1000), now_ms=10_000)
    found = reported(observe(groups=groups, fence=fence, until_deletion=(spared,)), CERTIFICATE)
    assert found == {
        ("mirror_up",): 1,
        ("mirror_state", "running"): 1,
        ("mirror_state", "paused"): 0,
        ("mirror_state", "stopped"): 0,
        ("mirror_active", "source"): 1,
        ("mirror_active", "target"): 0,
        ("mirror_failed_over_topics",): 0,
        ("mirror_problems",): 0,
        ("mirror_fenced",): 0,
        ("mirror_unproven",): 0,
        ("mirror_lag_records",): 0,
        ("mirror_lag_seconds",): 0,
        ("topic_until_deletion_seconds", "items"): 50,
        ("topic_until_deletion_bytes", "items"): 500,
        ("topic_lag_seconds", "items"): 10,
        ("topic_catch_up_seconds", "items"): 2.5,
        ("cluster_reachable", "source"): 1,
        ("cluster_reachable", "target"): 1,
        ("connector_running", SOURCE): 1,
        ("connector_running", CHECKPOINT): 1,
        ("task_running", SOURCE, "0"): 1,
        ("task_running", SOURCE, "1"): 1,
        ("task_running", CHECKPOINT, "0"): 1,
        ("groups",): 2,
        ("group_unread_records", "orders"): 4,
        ("group_unread_records", "late"): 4,
        ("group_unsynced_records", "orders"): 2,
        ("group_unsynced_records", "late"): 7,
        ("group_skipped_records", "orders"): 0,
        ("group_skipped_records", "late"): 0,
        ("group_partitions_without_position", "orders"): 0,
        ("group_partitions_without_position", "late"): 0,
        ("group_checkpoint_age_seconds", "orders"): 0,
        ("group_checkpoint_age_seconds", "late"): 90.5,
        ("failover_cost_records",): 9,
        ("certificate_expiry_timestamp_seconds", CERTIFICATE[0]): 1798761600,
    }
    only_of_an_active_target = {"mirror_target_fenced"}
    assert names(found) == set(mirror_metrics.HELP) - only_of_an_active_target


@pytest.mark.parametrize("state", ["stopped", "paused"])
def test_of_a_mirror_at_rest_nothing_is_expected_to_run(state: str) -> None:
    seen = observe(known(state=state), mirror=resource(ready=False), connectors=connectors("STOPPED", "PAUSED"))
    found = reported(seen)
    assert (found["mirror_state", state], found["mirror_state", "running"]) == (1, 0)
    assert not names(found) & {"mirror_up", "connector_running", "task_running"}


def test_after_a_failover_a_failover_costs_nothing_that_could_be_reported() -> None:
    found = reported(observe(known(active="target", state="stopped")))
    assert (found["mirror_active", "target"], found["mirror_active", "source"]) == (1, 0)
    assert not names(found) & {"failover_cost_records", "group_unsynced_records", "group_checkpoint_age_seconds"}


@pytest.mark.parametrize(
    ("users", "value"), [({"app": False, "other": False}, 1), ({"app": False, "other": True}, 0), ({}, None)], ids=str
)
def test_a_source_is_fenced_if_all_its_application_users_are(users: dict[str, bool], value: int | None) -> None:
    fence = FenceStatus(cluster="rt-inventory-dev", stack="dev", users=users, declared=True)
    found = reported(observe(known(active="target", state="stopped"), fence=fence))
    assert found.get(("mirror_fenced",)) == value
    assert found["mirror_problems",] == (value == 0)
    assert ("mirror_fenced",) not in reported(observe(fence=None))


@pytest.mark.parametrize(
    ("users", "value"), [({"app": False}, 1), ({"app": True, "other": False}, 0), ({}, None)], ids=str
)
def test_an_active_target_is_fenced_if_all_its_application_users_are(users: dict[str, bool], value: int | None) -> None:
    fence = TargetFenceStatus(cluster="rt-inventory-stg", users=users)
    found = reported(observe(known(active="target", state="stopped"), target_fence=fence))
    assert found.get(("mirror_target_fenced",)) == value
    assert found["mirror_problems",] == (False in users.values())
    assert ("mirror_target_fenced",) not in reported(observe())


def test_without_its_source_only_what_is_known_is_reported() -> None:
    lost = group(source_state=None, unread=None, again=None, skipped=None)
    found = reported(observe(source="is down", lag=None, groups=(lost,), unknown={"lag": "the source does not answer"}))
    assert (found["cluster_reachable", "source"], found["cluster_reachable", "target"]) == (0, 1)
    assert found["mirror_problems",] == 1
    assert not [name for name in names(found) if "lag" in name or "group" in name or "cost" in name]


def test_without_its_target_nothing_is_said_of_groups() -> None:
    found = reported(observe(target="is down", lag=None, groups=None, connectors=None, mirror=None))
    assert not [name for name in names(found) if "lag" in name or "group" in name or "cost" in name]
    assert "mirror_up" not in names(found)


@pytest.mark.parametrize(
    ("changed", "works"),
    [
        ({"connectors": connectors(task="FAILED")}, 0),
        ({"connectors": (ConnectorState(SOURCE, "RUNNING", ()),)}, 0),
        ({"mirror": resource(ready=False)}, 0),
        ({"mirror": resource(ready=False), "connectors": None}, 0),
        ({"mirror": resource(silent="no access")}, 1),
        ({"mirror": None}, 1),
        ({"mirror": resource(silent="no access"), "connectors": None}, None),
    ],
)
def test_a_mirror_is_up_if_every_source_says_so(changed: dict[str, Any], works: int | None) -> None:
    assert reported(observe(**changed)).get(("mirror_up",)) == works


def test_a_failed_task_is_reported_by_its_number() -> None:
    one = ConnectorState(SOURCE, "RUNNING", ("RUNNING", "FAILED"))
    found = reported(observe(connectors=(one,)))
    assert [found["task_running", SOURCE, number] for number in "01"] == [1, 0]
    assert found["connector_running", SOURCE] == 1


def test_an_age_of_the_lag_that_nobody_knows_has_no_series() -> None:
    found = reported(observe(lag=lag(3, None)))
    assert found["mirror_lag_records",] == 3
    assert ("mirror_lag_seconds",) not in found


def test_a_group_without_a_position_is_counted_by_its_partitions() -> None:
    found = reported(observe(groups=(group("new", again=None, skipped=None, unsynced=("items-0", "items-1")),)))
    assert found["group_partitions_without_position", "new"] == 2
    # What a failover would cost it is for auto.offset.reset to say.
    unknown = {"group_unsynced_records", "group_checkpoint_age_seconds", "failover_cost_records"}
    assert not names(found) & unknown


def test_a_cost_of_which_a_part_may_not_be_read_is_not_reported() -> None:
    blind = group(again=None, skipped=None, unread=None)
    assert "failover_cost_records" not in names(reported(observe(groups=(blind,), unknown={"groups": "no Describe"})))
    assert reported(observe(groups=()))["failover_cost_records",] == 0


def test_of_very_many_groups_the_costliest_have_series() -> None:
    many = tuple(group(f"group-{at}", again=at) for at in range(mirror_metrics.GROUPS_MAX + 50))
    found = reported(observe(groups=many))
    assert found["groups",] == len(many)
    with_last_verification = {key[1] for key in found if key[0] == "group_unsynced_records"}
    assert with_last_verification == {one.group for one in many[50:]}


def test_a_renewed_certificate_of_the_same_name_is_reported_once_with_its_later_end() -> None:
    newer = (CERTIFICATE[0], datetime(2028, 1, 1, tzinfo=UTC))
    found = reported(observe(), newer, CERTIFICATE)
    assert found["certificate_expiry_timestamp_seconds", CERTIFICATE[0]] == newer[1].timestamp()


def test_the_metrics_are_open_metrics_and_survive_their_way_through_json() -> None:
    made = mirror_metrics.families(observe(groups=(group('a "quoted" \\ name\n'),)), [CERTIFICATE])
    sent = [of_json(one.as_json()) for one in made]
    parsed = {family.name: family for family in families_of(as_openmetrics(registry(sent)))}
    assert set(parsed) >= {f"rt_inventory_{name}" for name in ("mirror_lag_seconds", "failover_cost_records")}
    assert parsed["rt_inventory_mirror_lag_seconds"].unit == "seconds"
    assert {family.type for family in parsed.values()} == {"gauge"}
    assert of_registry(registry(sent)) == merged(made)


def test_a_family_without_a_sample_is_left_out() -> None:
    assert merged([Family(name="empty", text="nothing")]) == []


def test_topics_that_are_failed_over_alone_are_counted() -> None:
    split = known(failedOver={"topics": ["items", "stock"]})
    assert reported(observe(split))["mirror_failed_over_topics",] == 2
