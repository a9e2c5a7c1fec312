"""Workloads that follow a switch: restarted or listed in both directions, and never said to be what nobody knows."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, Group

from ops.errors import OpsError
from ops.pulumi.stack import PulumiStack
from ops.recovery import client_workloads, failback_command, failover_command, failover_result
from ops.recovery.client_workloads import ClientWorkloads, FollowingClients, Workload
from ops.recovery.failback import Failback
from ops.recovery.failback import Options as FailbackOptions
from ops.recovery.failover import PLANNED, Failover, Options
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.operation import Step
from tests.support.failback_sides import LAST
from tests.support.failover_sides import OFFSETS
from tests.support.recovery_pair import API, Kept, entry, known
from tests.support.recovery_project import Project

ORDERS = Workload("Deployment", "rt-inventory-stg", "orders")
CARTS = Workload("StatefulSet", "rt-inventory-stg", "carts")
REFUSED = "kubernetes: your account must be allowed to do this (got 403)."


def of(pair: MirrorContext | None = None, **steps: Any) -> FollowingClients:
    return FollowingClients(pair or known(), {}, Kept(entry(finished=None, **steps)), lambda _: None)


def in_context(context: str) -> MirrorContext:
    """The pair, whose target is another cluster than the kubeconfig's current one."""
    place = {"api_version": API, "kind": "KafkaMirrorMaker2", "namespace": "rt-inventory-stg", "name": "mm2"}
    return known(mirror={"resource": {**place, "context": context}})


def failover(pair: MirrorContext) -> list[Step]:
    options = Options(path=PLANNED, exact=False, drain_s=30.0, report_dir=Path("reports"))
    return Failover(pair, options, PULUMI, Kept(), print).steps()


def failback(pair: MirrorContext) -> list[Step]:
    options = FailbackOptions(catch_up_s=30.0, drain_s=30.0, report_dir=Path("reports"))
    return Failback(pair, options, PULUMI, Kept(), print).steps()


PULUMI = PulumiStack(folder=Path(), name="stg", environment={})


class Found:
    """What an API server knows of both workloads; `refuses` names the calls that it does not allow."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *refuses: str) -> None:
        self.asked: list[tuple[str | None, str]] = []
        self.stamps: list[str] = []
        self.left: dict[Workload, str] = {}

        def answer(call: str, value: Any) -> Any:
            if call in refuses:
                raise OpsError(REFUSED)
            return value

        monkeypatch.setattr(client_workloads, "kubernetes", self._kubernetes)
        monkeypatch.setattr(ClientWorkloads, "find", lambda one: answer("find", self._find(one)))
        monkeypatch.setattr(
            ClientWorkloads, "restart", lambda _, __, stamp, ___: answer("restart", self.stamps.append(stamp))
        )
        monkeypatch.setattr(ClientWorkloads, "wait", lambda *_: answer("wait", self.left))

    def _kubernetes(self, _: Any, context: str | None) -> Any:
        self.context = context
        return self

    def _find(self, of: ClientWorkloads) -> list[Workload]:
        self.asked.append((of.namespace, of.secret))
        return [ORDERS, CARTS]

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("steps", [failover, failback])
def test_both_directions_restart_right_after_the_switch_if_the_mirror_asks_for_it(steps: Any) -> None:
    names = [step.name for step in steps(known(restartClients=True))]
    assert names[names.index("switch") + 1 : names.index("confirm")] == ["restart"]
    assert "restart" not in [step.name for step in steps(known())]


def test_a_restart_is_complete_once_all_pods_are_new_and_its_stamp_is_the_recoverys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Found(monkeypatch)
    found = of().restart()
    assert found == {"workloads": [str(ORDERS), str(CARTS)], "restart": "complete", "notRestarted": {}}
    assert server.stamps == [entry()["startedAt"]]
    server.left = {CARTS: "1 of 2 pods are new"}
    found = of().restart()
    assert found["restart"] == "incomplete"
    assert found["notRestarted"] == {
        str(CARTS): "1 of 2 pods are new; by hand: kubectl rollout restart -n rt-inventory-stg statefulset/carts"
    }
    (why,) = of(in_context("stg")).restart()["notRestarted"].values()
    assert why.endswith("by hand: kubectl --context stg rollout restart -n rt-inventory-stg statefulset/carts")


@pytest.mark.parametrize("refuses", ["find", "restart", "wait"])
def test_what_the_api_server_does_not_tell_is_unknown_and_what_to_do_is_said(
    monkeypatch: pytest.MonkeyPatch, refuses: str
) -> None:
    Found(monkeypatch, refuses)
    found = of().restart()
    assert (found["restart"], found.get("notRestarted")) == ("unknown", None)
    assert found["workloads"] == (None if refuses == "find" else [str(ORDERS), str(CARTS)])
    assert found["workloadsWhy"].startswith(f"{REFUSED} By hand: ")
    assert "kubectl rollout restart -n rt-inventory-stg " in found["workloadsWhy"]
    why = of(in_context("the target")).restart()["workloadsWhy"]
    assert "kubectl --context 'the target' rollout restart -n rt-inventory-stg " in why
    assert why.count("kubectl") == why.count("kubectl --context 'the target'")
    shown = text(found)
    assert "of the workloads that read that Secret" in shown if refuses == "find" else f"of {ORDERS}, {CARTS}" in shown
    assert "were replaced is unknown." in shown
    assert "Restarted:" not in shown


@pytest.mark.parametrize(
    ("restart", "unsettled"),
    [(None, False), ("complete", False), ("incomplete", True), ("unknown", True)],
)
@pytest.mark.parametrize("command", ["failover", "failback"])
def test_a_restart_that_was_asked_for_and_is_not_known_to_be_complete_ends_with_1(
    project: Project, monkeypatch: pytest.MonkeyPatch, command: str, restart: str | None, unsettled: bool
) -> None:
    left = {str(ORDERS): "1 of 2 pods are new"} if restart == "incomplete" else {}
    restarted = {"workloads": [str(ORDERS)], "workloadsWhy": REFUSED, "restart": restart, "notRestarted": left}
    steps = {**LAST, "offsets": {**OFFSETS, "groups": {}}, "prove": LAST["prove"], "switch": {"switchedAt": "then"}}
    steps["confirm"] = {"active": "target", "clientsSecret": "mm2-clients", "stranded": {}}
    of_result = {"failover": failover_result, "failback": failback_command}[command]
    module = {"failover": failover_command, "failback": failback_command}[command]
    if command == "failback":
        monkeypatch.setattr("ops.recovery.failback.Failback.to_be_emptied", lambda _: {})
        monkeypatch.setattr("ops.recovery.failback.Failback.require_support", lambda _: None)
        project.pair = known(active="target", state="stopped")
        project.declare(f"{project.text}      active: target\n      state: stopped\n")
        project.journal.entry = entry(stop={"copied": {}, "boundary": {}})

    def carry_out(*_: Any) -> None:
        project.journal.entry = entry(command, **steps, restart=restarted)

    monkeypatch.setattr(module, "carry_out", carry_out)
    to = {"failover": "stg", "failback": "dev"}[command]
    done = project.document(command, "--to", to, "--without-fence", "--yes", code=1 if unsettled else 0)
    assert (done["restart"], done["workloads"], done["active"]) == (restart, [str(ORDERS)], "target")
    assert of_result.unsettled(done) == unsettled


def text(found: dict[str, Any]) -> str:
    console = Console(width=1000, no_color=True)
    with console.capture() as caught:
        console.print(Group(*client_workloads.summary(client_workloads.result({"restart": found}))))
    return caught.get()


def test_without_a_restart_they_are_listed_after_the_switch_and_unknown_is_no_empty_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Found(monkeypatch)
    found = client_workloads.result({"confirm": of().listed()})
    assert (found["workloads"], found["restart"]) == ([str(ORDERS), str(CARTS)], None)
    assert of(restart={"workloads": []}).listed() == {}, "what the restart has found counts"
    Found(monkeypatch, "find")
    assert of().listed() == {"workloads": None, "workloadsWhy": REFUSED}
    assert of(known(clientsSecret=None)).listed() == {"workloads": []}


def test_a_mirror_of_an_external_source_restarts_those_of_the_secret_that_the_switch_makes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Found(monkeypatch)
    of(known(clientsSecret=None, restartClients=True)).restart()
    assert server.asked == [("rt-inventory-stg", "mm2-clients")]


def test_who_has_lost_the_lease_restarts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Found(monkeypatch)
    following = of()
    following.journal.lease.lost = True  # type: ignore[attr-defined]
    with pytest.raises(OpsError, match="must be held"):
        following.restart()
    assert server.asked == []


def test_who_loses_the_lease_while_the_workloads_are_found_reports_that_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    Found(monkeypatch)
    following = of()

    def restart(_: Any, __: Any, ___: str, require_permission: Any) -> None:
        following.journal.lease.lost = True  # type: ignore[attr-defined]
        require_permission()

    monkeypatch.setattr(ClientWorkloads, "restart", restart)
    with pytest.raises(OpsError, match="must be held"):
        following.restart()


@pytest.mark.parametrize(("restarts", "words"), [(True, "they are restarted"), (False, "nobody restarts them")])
@pytest.mark.parametrize("command", [("failover", "stg"), ("failback", "dev")])
def test_a_dry_run_lists_the_workloads_that_will_follow(
    project: Project, monkeypatch: pytest.MonkeyPatch, command: tuple[str, str], restarts: bool, words: str
) -> None:
    name, to = command
    project.pair = known(restartClients=restarts)
    if name == "failback":
        monkeypatch.setattr("ops.recovery.failback.Failback.to_be_emptied", lambda _: {})
        project.pair = known(active="target", state="stopped", restartClients=restarts)
        project.declare(f"{project.text}      active: target\n      state: stopped\n")
        project.journal.entry = entry(stop={"copied": {}, "boundary": {}})
    more = (name, "--to", to, "--without-fence", "--dry-run")
    assert project.document(*more)["workloads"] == [str(ORDERS)]
    shown = " ".join(project.run(*more).stdout.split())
    assert f"These read Secret mm2-clients, {words}: {ORDERS}." in shown
    project.workloads = {"workloads": None, "workloadsWhy": REFUSED}
    assert project.document(*more)["workloads"] is None
    shown = " ".join(project.run(*more).stdout.split())
    assert f"! Which workloads read Secret mm2-clients is unknown. {REFUSED}" in shown
