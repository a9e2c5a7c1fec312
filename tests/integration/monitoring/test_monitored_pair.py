"""The example of a monitored pair as a whole: brokers, workers, the operator, `ops` and the verification are scraped.

Every expression of every alert and dashboard finds data, and alerts go their way until they are over.
"""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from monitoring import stack_monitoring
from monitoring.alerts.rendering import ALERTS, Scope, value_of
from monitoring.dashboards import expressions
from tests.support.http_client import HTTP
from tests.support.waiting import wait_until

from ...support.monitored_pair import (
    ALERT_S,
    EXAMPLE,
    GROUP,
    MIRROR,
    RECORDS,
    RETAINED,
    SOURCE,
    TARGET,
    TOPIC,
    UNHURRIED,
    Site,
    watched_pair,
)
from ...support.running_sandbox import Sandbox
from ...support.scraped_metrics import ask

ACTIVE = "ALERTS{"  # there is none while nothing is wrong
LOAD_RECORDS = 5_000
DATA_S, CALM_S, OVERTAKEN_S = 150.0, 330.0, 600.0
# Nobody audits this pair: test_alert_values.py and test_dashboard_answers.py ask these where an audit is scraped.
OF_AUDIT = "rt_inventory_audit_"
pytestmark = pytest.mark.nightly
Body = dict[str, Any]


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with watched_pair(sandbox, tmp_path_factory.mktemp(EXAMPLE)) as made:
        yield made


@pytest.mark.parametrize("stack", [SOURCE, TARGET])
def test_every_expression_of_every_alert_finds_data(site: Site, stack: str) -> None:
    settings = site.settings(stack)
    namespace = site.project.namespace(stack)
    rules = stack_monitoring.rule_groups(settings, stack, namespace)
    names = {rule["alert"] for group in rules for rule in group["rules"] if "alert" in rule}
    if not settings.mirrors:
        names -= {"StatusFails"}  # `ops` observes stacks with mirrors
    scope = Scope(
        stack=stack,
        mirrors=tuple(stack_monitoring.monitored_mirrors(settings)),
        cluster=stack_monitoring.monitored_cluster(settings),
        operator=True,
    )
    asked = {f"{alert.name} {alert.severity}": value_of(alert, scope) for alert in ALERTS if alert.name in names}
    _all_are_found(site, {what: query for what, query in asked.items() if OF_AUDIT not in query})


def test_every_expression_of_every_dashboard_finds_data(site: Site) -> None:
    chosen = {"stack": f"{SOURCE}|{TARGET}", "mirror": MIRROR, "topic": TOPIC, "group": GROUP}
    asked = {f"{each.dashboard} / {each.panel}: {each.text}": each.filled(chosen) for each in expressions()}
    _all_are_found(
        site, {what: query for what, query in asked.items() if ACTIVE not in query and OF_AUDIT not in query}
    )


def _all_are_found(site: Site, silent: dict[str, str]) -> None:
    """Wait until each expression has had a result; records flow meanwhile, so that rates and latencies have some."""
    assert silent
    waiting = dict(silent)

    def every_one_has_data() -> bool:
        for name in [name for name, query in waiting.items() if site.found(query)]:
            del waiting[name]
        if waiting:
            site.produce(RECORDS)
            site.commit()
        return not waiting

    wait_until("data of every expression", every_one_has_data, DATA_S, otherwise=lambda: "\n".join(waiting))


def test_nothing_is_wrong_with_a_pair_that_is_well(site: Site) -> None:
    def active() -> list[Body]:
        return [each["metric"] for each in ask(site.prometheus, f'ALERTS{{stack=~"{SOURCE}|{TARGET}"}}')]

    # What a busy machine delayed at the start is in what rules look back at for a quarter of an hour.
    wait_until("no alert is active", lambda: not active(), CALM_S, otherwise=lambda: str(active()))


def test_a_task_that_failed_and_the_lag_under_load_are_reported_until_both_are_over(site: Site) -> None:
    url = site.project.outputs(TARGET)["mirrors"][MIRROR]["connectUrl"]
    connector = f"{url}/connectors/es-src->es-tgt.MirrorSourceConnector"
    try:
        # While the operator hangs it calls the mirror Ready.
        with site.hanging("operator"), _refused(AdminClient(site.project.client(TARGET))):
            site.produce(LOAD_RECORDS)
            site.goes_its_way("TaskNotRunning", "CRITICAL")
            site.goes_its_way("MirrorLagSeconds", "WARNING")
            marks = [each.filled() for each in expressions() if ACTIVE in each.text]
            assert marks
            wait_until("dashboards mark it", lambda: all(site.found(query) for query in marks), ALERT_S)
    finally:
        tasks = {"includeTasks": True, "onlyFailed": True}
        HTTP.post(f"{connector}/restart", params=tasks, timeout=20)
    site.is_over("TaskNotRunning")
    site.is_over("MirrorLagSeconds")


@contextlib.contextmanager
def _refused(target: AdminClient) -> Iterator[None]:
    """Refuse the mirror's user to write the topic, which ends its task."""
    place = (ResourceType.TOPIC, TOPIC, ResourcePatternType.LITERAL, "User:rt-inv-stg-user", "*", AclOperation.WRITE)
    for created in target.create_acls([AclBinding(*place, AclPermissionType.DENY)]).values():
        created.result(timeout=20)
    try:
        yield
    finally:
        for deleted in target.delete_acls([AclBindingFilter(*place, AclPermissionType.DENY)]).values():
            deleted.result(timeout=20)


def test_retention_is_alerted_before_it_deletes_what_is_not_copied(site: Site) -> None:
    """Of each topic, with retention of another length, by the deployed rule; the mirror copies nothing meanwhile."""
    wait_until("all is copied", lambda: site.copied() == {RECORDS}, ALERT_S, otherwise=lambda: str(site.copied()))
    site.ask_for("paused")
    for topic, seconds in RETAINED.items():
        site.retain(topic, seconds)
    site.produce(1, RETAINED)
    firing = f'ALERTS{{alertname="{UNHURRIED}",alertstate="firing",mirror="{MIRROR}"}}'
    alerted, lost = dict[str, float](), dict[str, float]()
    began = time.monotonic()
    try:
        while len(lost) < len(RETAINED) and time.monotonic() < began + OVERTAKEN_S:
            topics = {each["metric"]["topic"] for each in ask(site.prometheus, firing)}
            now = time.monotonic() - began
            # What was lost by the end of the last look, and not alerted by then, was alerted too late.
            alerted |= dict.fromkeys(topics - alerted.keys() - lost.keys(), now)
            lost |= {topic: now for topic, begin in site.begins().items() if begin > RECORDS and topic not in lost}
            time.sleep(1)
        sys.stderr.write(f"alerted after {alerted}\nlost after {lost}\n")
        assert lost.keys() == RETAINED.keys(), "retention has deleted a record of each that was not copied"
        assert alerted.keys() == RETAINED.keys()
    finally:
        site.ask_for("running")


def test_a_worker_that_hangs_is_reported_until_it_answers_again(site: Site) -> None:
    with site.hanging(site.project.worker(TARGET, MIRROR)):
        site.goes_its_way("MirrorDown", "CRITICAL")
    site.is_over("MirrorDown")
