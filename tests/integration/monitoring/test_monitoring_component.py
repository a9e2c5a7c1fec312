"""A stack that asks for monitoring, against the real definitions of the Prometheus Operator: all of it is accepted, a
second `up` changes nothing, `destroy` leaves nothing.

The stack has nothing else: an external cluster, and mirrors whose source is not up. So no broker and no worker starts.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from monitoring import dashboards
from sandbox.pulumi import Pulumi
from sandbox.state import PROJECT

from ...support.projects import Project
from ...support.running_sandbox import Sandbox

STACK, HOME, BESIDE, GRAFANA = "watched", "watched", "watched-beside", "watched-grafana"
KINDS = ("podmonitors", "prometheusrules", "alertmanagerconfigs", "configmaps")
LABELS = {"release": "prometheus"}


def mirror(name: str, alias: str, **settings: Any) -> dict[str, Any]:
    return {
        "name": name,
        "source": {"stack": "nowhere", "alias": alias, "user": "reader", "required": False},
        "target": {"alias": "tgt", "user": "writer"},
        "topics": [name],
        "metrics": {},
        **settings,
    }


CONFIG: dict[str, Any] = {
    "operator": {"install": "none"},
    "cluster": {
        "name": "elsewhere",
        "namespace": HOME,
        "createNamespace": False,
        "external": {"bootstrapServers": ["kafka.example.com:9093"]},
    },
    "users": [{"name": "writer", "secret": {"name": "writer-login"}}],
    "mirrors": [mirror("orders", "one"), mirror("bills", "two", namespace=BESIDE)],
    "verification": {"when": "never"},
    "monitoring": {
        "stage": "production",
        "operator": True,
        "labels": LABELS,
        "dashboards": {"folder": "Kafka", "namespace": GRAFANA},
        "slack": {"secret": "alerts", "keys": {"critical": "pager"}, "channels": {"warning": "#kafka"}},
    },
}


@pytest.fixture(scope="module")
def project(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The stack, up; what it needs to be there before is removed at the end."""
    for namespace in (HOME, GRAFANA):
        sandbox.kubectl("create", "namespace", namespace)
    sandbox.kubectl("create", "secret", "generic", "writer-login", "--from-literal=password=made-up", "-n", HOME)
    folder = tmp_path_factory.mktemp("watched")
    shipped = yaml.safe_load((PROJECT / "Pulumi.yaml").read_text(encoding="utf-8"))
    own = {"name": "watched", "main": str(PROJECT), "runtime": "python"}
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump({**shipped, **own}), encoding="utf-8")
    config = {STACK: {f"rt-inventory:{key}": value for key, value in CONFIG.items()}}
    found = Project(sandbox, folder, config, Pulumi(sandbox.state, sandbox.tools, folder))
    found.pulumi.ensure_stack(STACK)
    try:
        found.up(STACK)
        yield found
    finally:
        found.destroy(STACK)
        left = [names for names in made(sandbox).values() if names]
        sandbox.kubectl("delete", "namespace", HOME, GRAFANA, "--wait=false")
    assert not left


def made(sandbox: Sandbox) -> dict[str, set[str]]:
    """Names of everything that carries the component's label, by kind, as `namespace/name`."""
    found = {}
    for kind in KINDS:
        items = sandbox.get(kind, "-A", "-l", "app.kubernetes.io/name=rt-inventory-monitoring")["items"]
        found[kind] = {f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in items}
    return found


def test_everything_is_accepted_and_lies_where_it_is_looked_for(sandbox: Sandbox, project: Project) -> None:
    assert made(sandbox) == {
        "podmonitors": {f"{HOME}/elsewhere-workers", f"{BESIDE}/elsewhere-workers"},
        "prometheusrules": {f"{HOME}/elsewhere-alerts"},
        "alertmanagerconfigs": {f"{HOME}/elsewhere-alerts"},
        "configmaps": {f"{GRAFANA}/elsewhere-dashboard-{uid}" for uid in dashboards.documents()},
    }


def test_the_api_server_keeps_every_field(sandbox: Sandbox, project: Project) -> None:
    # A field that a definition does not know would be dropped without a word.
    monitor = sandbox.get("podmonitors", "elsewhere-workers", "-n", BESIDE)
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert {rule.get("targetLabel") for rule in endpoint["relabelings"]} >= {
        "job",
        "stack",
        "namespace",
        "pod",
        "mirror",
    }
    assert endpoint["metricRelabelings"][0]["targetLabel"] == "__name__"
    assert monitor["spec"]["selector"]["matchExpressions"][0]["values"] == ["bills"]
    rules = sandbox.get("prometheusrules", "elsewhere-alerts", "-n", HOME)
    alerts = [rule for group in rules["spec"]["groups"] for rule in group["rules"] if "alert" in rule]
    assert {(rule["labels"]["stage"], rule["labels"]["namespace"]) for rule in alerts} == {("production", HOME)}
    routes = sandbox.get("alertmanagerconfigs", "elsewhere-alerts", "-n", HOME)
    configs = [each for receiver in routes["spec"]["receivers"] for each in receiver.get("slackConfigs", [])]
    assert {each.get("channel") for each in configs} == {"#kafka", None}
    assert [each["apiURL"] for each in configs] == [{"name": "alerts", "key": key} for key in ("pager", "url", "url")]
    every = [sandbox.get(kind, "-A", "-l", "release=prometheus")["items"] for kind in KINDS[:3]]
    assert [len(items) for items in every] == [2, 1, 1]


def test_the_sidecar_would_write_the_dashboards_as_they_are_committed(sandbox: Sandbox, project: Project) -> None:
    found = sandbox.get("configmaps", "-n", GRAFANA, "-l", "grafana_dashboard=1")["items"]
    assert {each["metadata"]["annotations"]["grafana_folder"] for each in found} == {"Kafka"}
    texts = {name: text for each in found for name, text in each["data"].items()}
    assert {json.loads(text)["uid"] for text in texts.values()} == set(dashboards.documents())


def test_the_stack_outputs_say_where_everything_is(project: Project) -> None:
    told_of = project.outputs(STACK)["monitoring"]
    assert told_of["stage"] == "production"
    assert told_of["alertmanagerConfigs"] == [f"{HOME}/elsewhere-alerts"]


def test_a_second_up_changes_nothing(project: Project) -> None:
    summary = project.up(STACK).partition("Resources:")[2].partition("Duration:")[0]
    assert re.fullmatch(r"\s*\d+ unchanged\s*", summary), summary


@pytest.mark.nightly
def test_a_change_is_made_in_place_and_without_the_operator_only_dashboards_stay(
    sandbox: Sandbox, project: Project
) -> None:
    settings = project.config[STACK]["rt-inventory:monitoring"]
    settings["thresholds"] = {"lagSeconds": 77}
    summary = project.up(STACK).partition("Resources:")[2].partition("Duration:")[0]
    assert "~ 1 updated" in summary, summary
    settings["operator"] = False
    project.up(STACK)
    assert {kind for kind, names in made(sandbox).items() if names} == {"configmaps"}


@pytest.mark.nightly
def test_without_the_setting_nothing_is_left(sandbox: Sandbox, project: Project) -> None:
    settings = project.config[STACK].pop("rt-inventory:monitoring")
    project.up(STACK)
    assert not [names for names in made(sandbox).values() if names]
    project.config[STACK]["rt-inventory:monitoring"] = {**settings, "operator": True}
    project.up(STACK)


def test_a_dashboard_that_changes_is_never_missing(sandbox: Sandbox, project: Project) -> None:
    # Grafana forgets stars and rights of a dashboard whose file goes, even for a moment.
    place = ("configmaps", "-n", GRAFANA, "-l", "grafana_dashboard=1")
    before = {each["metadata"]["name"]: each["metadata"]["uid"] for each in sandbox.get(*place)["items"]}
    project.config[STACK]["rt-inventory:monitoring"]["runbookUrl"] = "https://wiki.example.com/kafka"
    project.up(STACK)
    after = sandbox.get(*place)["items"]
    assert {each["metadata"]["name"]: each["metadata"]["uid"] for each in after} == before
    assert all("https://wiki.example.com/kafka" in "".join(each["data"].values()) for each in after)
