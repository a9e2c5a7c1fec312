"""A mirror that runs although a failover has stopped it is a problem; one that is to run, or is at rest, is none."""

from typing import Any

import pytest

from ops.doctor import command
from ops.doctor.diagnosis import diagnose
from ops.inspection import snapshot
from ops.inspection.mirror_at_rest import RUNS_AT_REST
from ops.inspection.snapshot import MirrorSnapshot
from ops.metrics import mirror_metrics
from ops.recovery.operation import Progress, of_journal
from ops.status import document as status
from tests.support.recovery_pair import SOURCE, Kept, at_rest, connectors, entry, known, observe, resource

STOPPED: dict[str, Any] = {"active": "target", "state": "stopped"}


def spec(*, replicas: int = 1, alias: str = "es-src", **connector: Any) -> Any:
    """The mirror's resource with a flow from a source, of which the source connector has these fields."""
    flow = {"source": {"alias": alias}, "sourceConnector": connector, "checkpointConnector": {"state": "stopped"}}
    return resource(document={"spec": {"replicas": replicas, "mirrors": [flow]}})


def under_way(command: str, **steps: Any) -> Progress | None:
    return of_journal(Kept(entry(command, finished=None, **steps)), "stg")


@pytest.mark.parametrize(
    ("seen", "evidence"),
    [
        (observe(known(**STOPPED), connectors=connectors()), f"must be stopped, yet {SOURCE} is RUNNING"),
        (observe(known(**STOPPED), connectors=connectors("STOPPED")), f"{SOURCE} is RUNNING"),
        (observe(known(**STOPPED), mirror=spec(state="running")), "sourceConnector of KafkaMirrorMaker2 rt-inv"),
        (observe(known(**STOPPED), mirror=spec()), "is to run"),
        (
            observe(known(active="target", state="paused", restState="paused"), connectors=connectors()),
            "must be paused",
        ),
        (observe(active_now="target"), f"{SOURCE} is RUNNING"),
        (observe(known(**STOPPED), connectors=connectors(), recovery=under_way("failback", survey={})), "RUNNING"),
        (observe(known(**STOPPED), connectors=connectors(), recovery=under_way("failover", switch={})), "RUNNING"),
    ],
    ids=["connector", "task", "spec", "no state", "paused", "without Pulumi", "failback ended at once", "failover"],
)
def test_a_mirror_that_runs_behind_a_failover_is_a_problem(seen: MirrorSnapshot, evidence: str) -> None:
    (problem,) = [one for one in status.problems(seen) if one.startswith("the target is active and the mirror")]
    assert evidence in problem
    assert problem.endswith("`python -m ops doctor --stack stg` has the remedy")
    assert status.health(seen) == status.DEGRADED
    (counted,) = [one for one in mirror_metrics.families(seen, ()) if one.name == "rt_inventory_mirror_problems"]
    assert counted.samples[0][1] == len(status.problems(seen))


@pytest.mark.parametrize(
    "seen",
    [
        observe(known(**STOPPED)),
        observe(known(**STOPPED), mirror=spec(state="stopped")),
        observe(known(**STOPPED), mirror=spec(pause=True)),
        observe(known(**STOPPED), mirror=spec(replicas=0)),
        observe(known(**STOPPED), mirror=spec(alias="another")),
        observe(known(**STOPPED), mirror=resource(silent="no access"), connectors=None),
        observe(known(active="target", state="paused"), connectors=at_rest("PAUSED")),
        observe(known(active="target", naming="prefixed")),
        observe(known(**STOPPED), connectors=connectors(), recovery=under_way("failback", survey={}, settle={})),
        observe(known(failedOver={"topics": ["items"]})),
        observe(known(state="stopped"), connectors=connectors()),
        observe(known(active=None, state="stopped"), connectors=connectors()),
    ],
    ids=[
        "at rest",
        "stopped by its spec",
        "paused by its spec",
        "no workers",
        "another flow",
        "unknown",
        "paused",
        "declared running",
        "failback",
        "topics alone",
        "source active",
        "way back",
    ],
)
def test_a_mirror_at_rest_or_one_that_is_to_run_is_none(seen: MirrorSnapshot) -> None:
    assert seen.runs_at_rest is None
    assert not [one for one in seen.faults if "the mirror must be" in one]


def test_the_doctor_says_what_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = observe(known(**STOPPED), connectors=connectors())
    monkeypatch.setattr(snapshot, "collect", lambda *_, **__: seen)
    findings = {one.trouble: one for one in diagnose(command.collect(seen.pair, {}, lambda _: None))}
    found = findings[RUNS_AT_REST]
    assert found.severity == "error"
    assert f"{SOURCE} is RUNNING" in found.what
    assert "kubectl edit kafkamirrormaker2 mm2 -n rt-inventory-stg, state: stopped" in found.remedy
