"""What is scraped: the right pods of the right stack, with the same labels in every form that it is written in."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from monitoring import stack_monitoring
from monitoring.stack_monitoring import AUDITS, BROKERS, FOLLOWERS, OPERATOR, WORKERS, Pods, pods
from settings import Stack, parse
from tests.support.stack_values import TARGET, Values, with_value

METRICS = {"configMap": "rules", "key": "rules.yaml"}
IBM = {"type": "event-streams", "version": "12.0.0", "license": {"accept": True}}
# What the Prometheus Operator puts on a target of a PodMonitor before the resource's own rules.
OPERATORS_OWN = {"job": "passive/x", "container": "kafka", "endpoint": "tcp-prometheus"}
REVERSE = {"topics": ["other"]}


def stack(values: Values = TARGET, **changes: Any) -> Stack:
    values = with_value(with_value(values, "monitoring", {}), "cluster/metrics", METRICS)
    values = with_value(values, "mirrors/0/metrics", METRICS)
    for path, value in changes.items():
        values = with_value(values, path.replace("__", "/"), value)
    return parse(values, "stg")


def of(job: str, settings: Stack) -> Pods:
    (found,) = (chosen for chosen in pods(settings) if chosen.job == job)
    return found


def relabelled(rules: list[dict[str, Any]], before: Mapping[str, str]) -> dict[str, str] | None:
    """What Prometheus makes of a target's labels: those that stay, None if the target is dropped."""
    found = dict(before)
    for rule in rules:
        value = ";".join(found.get(name, "") for name in rule.get("source_labels", rule.get("sourceLabels", ())))
        match = re.fullmatch(rule.get("regex", "(.*)"), value, re.DOTALL)
        action = rule.get("action", "replace")
        if action == "labeldrop":
            found = {name: text for name, text in found.items() if not re.fullmatch(rule["regex"], name)}
        elif action in ("keep", "drop"):
            if (match is None) == (action == "keep"):
                return None
        elif match is not None:
            found[rule.get("target_label") or rule["targetLabel"]] = match.expand(
                re.sub(r"\$(\d)", r"\\\1", rule.get("replacement", "$1"))
            )
    return found


def discovered(chosen: Pods, name: str, **changes: str) -> dict[str, str]:
    """The labels with which Prometheus finds a pod."""
    given = {
        "__address__": "10.0.0.1:9404",
        "__meta_kubernetes_namespace": chosen.namespace,
        "__meta_kubernetes_pod_name": f"{name}-0",
        "__meta_kubernetes_pod_phase": "Running",
        "__meta_kubernetes_pod_container_port_name": chosen.port,
        f"__meta_kubernetes_pod_label_{re.sub('[./]', '_', chosen.name_label)}": name,
    }
    return {**given, **changes}


def shown(labels: Mapping[str, str] | None) -> dict[str, str]:
    return {name: text for name, text in (labels or {}).items() if not name.startswith("__")}


@pytest.mark.parametrize("platform", [None, IBM], ids=["strimzi", "event-streams"])
@pytest.mark.parametrize(
    ("job", "name", "own"),
    [
        (BROKERS, "passive", {"cluster": "passive"}),
        (WORKERS, "mm2", {"mirror": "mm2"}),
        (AUDITS, "mm2", {"mirror": "mm2"}),
        (FOLLOWERS, "mm2", {"mirror": "mm2"}),
        (OPERATOR, "operator", {}),
    ],
)
def test_a_target_has_exactly_these_labels_in_both_forms(
    platform: Values | None, job: str, name: str, own: dict[str, str]
) -> None:
    audit = {"verification": {"audit": {"image": "verification:1.0.0"}}}
    asking = {AUDITS: audit, FOLLOWERS: {"mirrors__0__exactOffsets": {"image": "follower:1.0.0"}}}
    settings = stack(**({"platform": platform} if platform else {}), **asking.get(job, {}))
    chosen = of(job, settings)
    found = discovered(chosen, name)
    if job == OPERATOR:
        found.pop(next(label for label in found if "_label_" in label))
    wanted = {"job": job, "stack": "stg", "namespace": "passive", "pod": f"{name}-0", **own}
    (endpoint,) = stack_monitoring.pod_monitor(chosen, "stg", 30)["podMetricsEndpoints"]
    assert shown(relabelled(endpoint["relabelings"], {**found, **OPERATORS_OWN})) == wanted
    (plain,) = (each for each in stack_monitoring.pod_scrapes(settings, "stg") if f"/{job}/" in each["job_name"])
    assert shown(relabelled(plain["relabel_configs"], found)) == wanted


def test_static_targets_have_the_same_labels() -> None:
    targets: Mapping[stack_monitoring.Job, stack_monitoring.Addresses] = {
        BROKERS: {"passive": ("broker:9404",)},
        WORKERS: {"mm2": ("worker-1:9404", "worker-2:9404")},
        OPERATOR: {"": ("operator:8080",)},
    }
    found = stack_monitoring.static_scrapes(stack(), "stg", targets)
    labels = {each["job_name"]: each["static_configs"][0]["labels"] for each in found}
    assert labels == {
        "stg/kafka": {"job": BROKERS, "stack": "stg", "namespace": "passive", "cluster": "passive"},
        "stg/kafka-mirror-maker-2": {"job": WORKERS, "stack": "stg", "namespace": "passive", "mirror": "mm2"},
        "stg/strimzi-cluster-operator": {"job": OPERATOR, "stack": "stg", "namespace": "passive"},
    }
    for each in found:
        assert relabelled(each["relabel_configs"], {"__address__": "worker-1:9404"})["pod"] == "worker-1:9404"  # type: ignore[index]


def test_a_finished_pod_and_another_port_are_left_out() -> None:
    settings = stack()
    (plain,) = (each for each in stack_monitoring.pod_scrapes(settings, "stg") if "/kafka/" in each["job_name"])
    chosen = of(BROKERS, settings)
    for change in ({"__meta_kubernetes_pod_phase": "Succeeded"}, {"__meta_kubernetes_pod_container_port_name": "tls"}):
        assert relabelled(plain["relabel_configs"], discovered(chosen, "passive", **change)) is None


def test_brokers_are_reported_from_what_else_the_operator_runs_beside_them() -> None:
    assert of(BROKERS, stack()).selected == {
        "strimzi.io/kind": "Kafka",
        "strimzi.io/cluster": "passive",
        "strimzi.io/name": "passive-kafka",
    }
    assert of(BROKERS, stack(platform=IBM)).selected == {
        "eventstreams.ibm.com/kind": "Kafka",
        "eventstreams.ibm.com/cluster": "passive",
        "eventstreams.ibm.com/name": "passive-kafka",
    }


def test_workers_of_other_stacks_in_the_namespace_are_left_alone() -> None:
    settings = stack(mirrors__0__reverse=REVERSE)
    assert of(WORKERS, settings).names == ("mm2", "mm2-reverse")
    spec = stack_monitoring.pod_monitor(of(WORKERS, settings), "stg", 30)
    assert spec["selector"] == {
        "matchLabels": {"strimzi.io/kind": "KafkaMirrorMaker2"},
        "matchExpressions": [{"key": "strimzi.io/cluster", "operator": "In", "values": ["mm2", "mm2-reverse"]}],
    }
    (plain,) = (each for each in stack_monitoring.pod_scrapes(settings, "stg") if "mirror-maker" in each["job_name"])
    assert plain["kubernetes_sd_configs"] == [
        {
            "role": "pod",
            "namespaces": {"names": ["passive"]},
            "selectors": [
                {"role": "pod", "label": "strimzi.io/kind=KafkaMirrorMaker2,strimzi.io/cluster in (mm2,mm2-reverse)"}
            ],
        }
    ]


def test_a_failback_is_watched_while_it_is_under_way() -> None:
    settings = stack(mirrors__0__active="target", mirrors__0__state="stopped", mirrors__0__failback="copying")
    assert of(WORKERS, settings).names == ("mm2", "mm2-failback")


def test_each_namespace_has_its_own() -> None:
    second = {**TARGET["mirrors"][0], "name": "other", "namespace": "elsewhere", "metrics": METRICS, "topics": ["x"]}
    second["source"] = {**second["source"], "alias": "es-two"}
    settings = stack(with_value(TARGET, "mirrors/+", second), operator={"install": "none"})
    workers = {chosen.namespace: chosen.names for chosen in pods(settings) if chosen.job == WORKERS}
    assert workers == {"passive": ("mm2",), "elsewhere": ("other",)}


@pytest.mark.parametrize(
    ("changes", "jobs"),
    [
        ({}, [BROKERS, WORKERS, OPERATOR]),
        ({"operator": {"install": "none"}}, [BROKERS, WORKERS]),
        ({"operator": {"namespace": "operators", "watchedNamespaces": ["passive"]}}, [BROKERS, WORKERS, OPERATOR]),
    ],
)
def test_the_operator_is_watched_where_the_stack_installs_it(changes: Values, jobs: list[str]) -> None:
    found = pods(stack(**changes))
    assert [chosen.job for chosen in found] == jobs
    if OPERATOR in jobs:
        assert found[-1].namespace == changes.get("operator", {}).get("namespace", "passive")


def test_what_exposes_no_metrics_is_not_asked() -> None:
    jobs = [chosen.job for chosen in pods(parse(TARGET, "stg"))]
    assert jobs == [OPERATOR]


@pytest.mark.parametrize(("seconds", "timeout"), [(5, "5s"), (30, "20s"), (120, "20s")])
def test_an_answer_is_awaited_no_longer_than_until_the_next_question(seconds: int, timeout: str) -> None:
    (endpoint,) = stack_monitoring.pod_monitor(of(BROKERS, stack()), "stg", seconds)["podMetricsEndpoints"]
    assert (endpoint["interval"], endpoint["scrapeTimeout"]) == (f"{seconds}s", timeout)
    assert stack_monitoring.prometheus([], seconds, [], [])["global"]["scrape_timeout"] == timeout


def test_states_have_one_name_whoever_exposes_them() -> None:
    names = {
        "kafka_connect_connector_task_metrics_status_info": "kafka_connect_connector_task_metrics_status",
        "kafka_connect_connector_task_metrics_status": "kafka_connect_connector_task_metrics_status",
        "jvm_info": "jvm_info",
    }
    (endpoint,) = stack_monitoring.pod_monitor(of(WORKERS, stack()), "stg", 30)["podMetricsEndpoints"]
    (plain,) = (each for each in stack_monitoring.pod_scrapes(stack(), "stg") if "mirror-maker" in each["job_name"])
    for rules in (endpoint["metricRelabelings"], plain["metric_relabel_configs"]):
        assert {name: relabelled(rules, {"__name__": name}) for name in names} == {
            name: {"__name__": reported} for name, reported in names.items()
        }


@pytest.mark.parametrize(
    ("reported", "kept"),
    [
        ({"namespace": "operators", "exported_namespace": "passive"}, "passive"),
        ({"namespace": "operators", "resource_namespace": "passive"}, "passive"),
    ],
    ids=["of reconciliations", "of a resource"],
)
def test_the_operators_metrics_of_resources_are_the_same_wherever_it_runs(reported: dict[str, str], kept: str) -> None:
    settings = stack(operator={"namespace": "operators", "watchedNamespaces": ["passive"]})
    (endpoint,) = stack_monitoring.pod_monitor(of(OPERATOR, settings), "stg", 30)["podMetricsEndpoints"]
    (plain,) = (each for each in stack_monitoring.pod_scrapes(settings, "stg") if f"/{OPERATOR}/" in each["job_name"])
    (static,) = stack_monitoring.static_scrapes(settings, "stg", {OPERATOR: {"": ("operator:8080",)}})
    for rules in (endpoint["metricRelabelings"], plain["metric_relabel_configs"], static["metric_relabel_configs"]):
        assert relabelled(rules, {"__name__": "strimzi", **reported}) == {
            "__name__": "strimzi",
            **reported,
            "resource_namespace": kept,
        }


def test_a_push_gateway_is_asked_for_what_verifications_pushed() -> None:
    assert stack_monitoring.push_gateway_scrape(stack(), "stg") == []
    settings = stack(verification={"pushGateway": "https://push.example.com:9091/gateway/"})
    assert stack_monitoring.push_gateway_scrape(settings, "stg") == [
        {
            "job_name": "stg/rt-inventory-verification",
            "honor_labels": True,
            "scheme": "https",
            "metrics_path": "/gateway/metrics",
            "static_configs": [{"targets": ["push.example.com:9091"]}],
        }
    ]
