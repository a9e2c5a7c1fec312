"""Plain configuration of Prometheus: from stack files alone, for one stack or several, with pods or with addresses."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from monitoring.alerts import rendering
from monitoring.metrics.catalog import Part, allow_list
from ops.cli import app
from tests.support.stack_values import SOURCE, TARGET, Values, with_value

METRICS = {"configMap": "rules", "key": "rules.yaml"}
TARGETS = {
    "brokers": {"passive": ["10.0.0.1:9404", "10.0.0.2:9404"]},
    "workers": {"mm2": ["10.0.0.3:9404"]},
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with both stack files."""
    write(tmp_path, "dev", with_value(with_value(SOURCE, "monitoring", {}), "cluster/metrics", METRICS))
    stg = with_value(with_value(TARGET, "mirrors/0/metrics", METRICS), "cluster/metrics", METRICS)
    write(tmp_path, "stg", with_value(stg, "monitoring", {"scrapeSeconds": 15, "stage": "production"}))
    return tmp_path


def write(folder: Path, stack: str, values: Values) -> None:
    config = {f"rt-inventory:{key}": value for key, value in values.items()}
    (folder / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump({"config": config}), encoding="utf-8")


def run(folder: Path, *arguments: str, code: int = 0) -> str:
    """What the command says, and that it ends with this code."""
    out = () if "--out" in arguments else ("--out", str(folder / "out"))
    done = CliRunner().invoke(app, ["render", "--as", "prometheus", "-C", str(folder), *out, *arguments])
    assert done.exit_code == code, done.output
    return done.output


def read(folder: Path, name: str) -> Any:
    return yaml.safe_load((folder / "out" / name).read_text(encoding="utf-8"))


def jobs(folder: Path) -> list[str]:
    return [each["job_name"] for each in read(folder, "prometheus.yml")["scrape_configs"]]


def test_one_stack_gets_everything_from_its_file(project: Path) -> None:
    reported = run(project, "--stack", "stg")
    assert f"{project / 'out'}: 7 files of stg" in reported
    assert jobs(project) == [
        "stg/kafka/passive",
        "stg/kafka-mirror-maker-2/passive",
        "stg/strimzi-cluster-operator/passive",
    ]
    document = read(project, "prometheus.yml")
    assert document["global"]["scrape_interval"] == document["global"]["evaluation_interval"] == "15s"
    assert document["rule_files"] == ["rules/*.yaml"]
    rules = [rule for group in read(project, "rules/stg.yaml")["groups"] for rule in group["rules"]]
    assert {rule["labels"]["stage"] for rule in rules if "alert" in rule} == {"production"}
    assert not [rule for rule in rules if "namespace" in rule.get("labels", {})]
    assert len([*(project / "out" / "dashboards").glob("*.json")]) == 5


def test_several_stacks_share_one_prometheus(project: Path) -> None:
    run(project, "-s", "dev", "-s", "stg")
    assert {name.split("/")[0] for name in jobs(project)} == {"dev", "stg"}
    assert len(set(jobs(project))) == len(jobs(project))
    assert sorted(path.name for path in (project / "out" / "rules").iterdir()) == ["dev.yaml", "stg.yaml"]


def test_rules_of_a_stack_that_is_left_out_are_removed_and_others_stay(project: Path) -> None:
    run(project, "-s", "dev", "-s", "stg")
    (project / "out" / "rules" / "own.yaml").write_text("groups: []\n", encoding="utf-8")
    run(project, "-s", "stg")
    assert sorted(path.name for path in (project / "out" / "rules").iterdir()) == ["own.yaml", "stg.yaml"]


def test_the_default_is_stg_and_a_file_says_which_stack_it_is(project: Path) -> None:
    run(project)
    assert (project / "out" / "rules" / "stg.yaml").exists()
    run(project, "--stack-file", str(project / "Pulumi.dev.yaml"))
    assert (project / "out" / "rules" / "dev.yaml").exists()


def test_addresses_take_the_place_of_pods(project: Path) -> None:
    file = project / "targets.yaml"
    file.write_text(yaml.safe_dump(TARGETS), encoding="utf-8")
    reported = run(project, "--targets", str(file), "--alertmanager", "alerts.example.com:9093")
    assert "ServiceAccount" not in reported
    document = read(project, "prometheus.yml")
    assert jobs(project) == ["stg/kafka", "stg/kafka-mirror-maker-2"]
    assert not [each for each in document["scrape_configs"] if "kubernetes_sd_configs" in each]
    assert document["alerting"] == {"alertmanagers": [{"static_configs": [{"targets": ["alerts.example.com:9093"]}]}]}
    rules = [rule for group in read(project, "rules/stg.yaml")["groups"] for rule in group["rules"]]
    (down,) = (rule for rule in rules if rule.get("alert") == "BrokerDown")
    assert "2 - " in down["expr"]


@pytest.mark.parametrize("workers", [{}, {"workers": {}}, {"workers": {"mm2": []}}])
def test_a_running_mirror_without_addresses_is_reported(project: Path, workers: dict[str, Any]) -> None:
    file = project / "targets.yaml"
    file.write_text(yaml.safe_dump({"brokers": TARGETS["brokers"], **workers}), encoding="utf-8")
    text = " ".join(run(project, "--targets", str(file)).split())
    assert f"stack stg: mirror mm2 runs and has no address below workers in {file}, so that it will count as" in text
    file.write_text(yaml.safe_dump(TARGETS), encoding="utf-8")
    assert "has no address" not in run(project, "--targets", str(file))


def test_a_mirror_at_rest_needs_no_addresses(project: Path) -> None:
    values = with_value(with_value(TARGET, "mirrors/0/metrics", METRICS), "mirrors/0/state", "stopped")
    write(project, "stg", with_value(values, "monitoring", {}))
    file = project / "targets.yaml"
    file.write_text(yaml.safe_dump({"brokers": TARGETS["brokers"]}), encoding="utf-8")
    assert "has no address" not in run(project, "--targets", str(file))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            "brokers: {passiv: ['a:1']}",
            "brokers must be named as the cluster of the stack (got passiv, allowed passive)",
        ),
        ("workers: {mm: ['a:1']}", "workers must be named as a mirror of the stack (got mm, allowed mm2)"),
        ("brokers: {passive: [a]}", "brokers.passive[0] must be host:port with a port of 1..65535 (got 'a')"),
        ("worker: {mm2: ['a:1']}", "must be a known key (got worker, allowed brokers, workers, operator)"),
        ("- a:1", "must be a mapping (got a list of 1)"),
        ("brokers: [", "must be YAML"),
        (None, "must be readable"),
    ],
)
def test_wrong_addresses_are_reported_and_nothing_is_written(project: Path, document: str | None, message: str) -> None:
    file = project / "targets.yaml"
    if document is not None:
        file.write_text(document, encoding="utf-8")
    said = " ".join(run(project, "--targets", str(file), code=2).split())
    assert f"file {file}: " in said
    assert message in said
    assert not (project / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--targets", "t", "-s", "dev", "-s", "stg"), "--targets must be given with one --stack (got 2)"),
        (("--mirror", "mm2"), "--mirror, --listener, --image and --secret must not be given with --as prometheus"),
        (("-s", "stg", "--stack-file", "x"), "--stack and --stack-file must not be given together"),
    ],
)
def test_options_that_do_not_go_together_are_refused(project: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in " ".join(run(project, *arguments, code=2).split())


@pytest.mark.parametrize("stacks", [("-s", "stg"), ("-s", "dev", "-s", "stg")])
def test_exporters_are_asked_too_and_their_labels_are_kept(project: Path, stacks: tuple[str, ...]) -> None:
    run(project, *stacks, "--exporter", "10.0.0.4:9405", "--exporter", "10.0.0.5:9100")
    last = read(project, "prometheus.yml")["scrape_configs"][-1]
    assert (last["job_name"], last["honor_labels"]) == ("rt-inventory-exporters", True)
    assert last["static_configs"] == [{"targets": ["10.0.0.4:9405", "10.0.0.5:9100"]}]


def test_addresses_on_the_command_line_are_checked_together(project: Path) -> None:
    text = " ".join(run(project, "--exporter", "10.0.0.4", "--alertmanager", "http://a:1", code=2).split())
    assert "render: --exporter[0] must be host:port with a port of 1..65535 (got '10.0.0.4')" in text
    assert "render: --alertmanager must be host:port with a port of 1..65535 (got 'http://a:1')" in text


SLACK = {"secret": "kafka-alerts", "channels": {"critical": "#pager", "quiet": "#trials"}, "pagingStages": ["live"]}


def with_slack(folder: Path, stack: str, slack: Values) -> None:
    values = {
        key.partition(":")[2]: value
        for key, value in yaml.safe_load((folder / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8"))[
            "config"
        ].items()
    }
    write(folder, stack, with_value(values, "monitoring/slack", slack))


def test_alertmanager_notifies_slack_as_the_settings_say(project: Path) -> None:
    with_slack(project, "stg", SLACK)
    reported = run(project, "-s", "dev", "-s", "stg")
    document = read(project, "alertmanager.yml")
    configs = {each["name"]: config for each in document["receivers"] for config in each["slack_configs"]}
    assert configs["slack-critical"]["channel"] == "#pager"
    assert configs["slack-quiet"]["channel"] == "#trials"
    assert {config["api_url_file"] for config in configs.values()} == {"/etc/alertmanager/secrets/kafka-alerts/url"}
    assert 'stage!~"(live)?"' in str(document["route"])
    assert [(project / "out" / name).exists() for name in document["templates"]] == [True]
    assert "/etc/alertmanager/secrets/kafka-alerts/url (--slack-url-folder): put it there." in " ".join(
        reported.split()
    )


def test_each_webhook_has_a_file_of_the_name_of_its_key(project: Path) -> None:
    with_slack(project, "stg", {"secret": "kafka-alerts", "keys": {"critical": "pager", "quiet": "trials"}})
    text = " ".join(run(project).split())
    receivers = read(project, "alertmanager.yml")["receivers"]
    files = {each["name"]: config["api_url_file"] for each in receivers for config in each["slack_configs"]}
    folder = "/etc/alertmanager/secrets/kafka-alerts"
    assert files == {
        "slack-critical": f"{folder}/pager",
        "slack-warning": f"{folder}/url",
        "slack-info": f"{folder}/url",
        "slack-quiet": f"{folder}/trials",
    }
    assert [text.count(f"{file} (--slack-url-folder): put it there.") for file in sorted({*files.values()})] == [1] * 3


def test_the_folder_with_the_addresses_can_be_named(project: Path) -> None:
    with_slack(project, "stg", SLACK)
    reported = run(project, "--slack-url-folder", "/srv/slack")
    assert "/srv/slack/url" in str(read(project, "alertmanager.yml"))
    assert "put it there" not in reported


def test_without_slack_there_is_nothing_of_alertmanager(project: Path) -> None:
    run(project)
    assert not (project / "out" / "alertmanager.yml").exists()
    assert not (project / "out" / "templates").exists()


def test_one_alertmanager_notifies_slack_in_one_way(project: Path) -> None:
    with_slack(project, "stg", SLACK)
    with_slack(project, "dev", {**SLACK, "key": "other"})
    text = " ".join(run(project, "-s", "dev", "-s", "stg", code=2).split())
    assert "stacks dev, stg: monitoring.slack must be the same for one Alertmanager" in text
    assert not (project / "out").exists()


def test_a_folder_must_be_named(project: Path) -> None:
    done = CliRunner().invoke(app, ["render", "--as", "prometheus"])
    assert done.exit_code == 2
    assert "--out must be given with --as prometheus" in done.output


def test_the_properties_are_those_of_one_stack(project: Path) -> None:
    for arguments in (["-s", "dev", "-s", "stg"], ["--targets", "x"]):
        done = CliRunner().invoke(app, ["render", "--as", "properties", *arguments])
        assert done.exit_code == 2
        assert "one --stack and no --targets must be given with --as properties" in done.output


def test_what_is_missing_in_the_settings_is_reported(project: Path) -> None:
    write(project, "stg", TARGET)
    text = " ".join(run(project).split())
    assert "stack stg: has no rt-inventory:monitoring, so that the defaults apply." in text
    assert "mirror mm2 exposes no metrics and will count as down. Give `metrics: {}`." in text


def test_a_list_that_holds_metrics_back_is_reported(project: Path) -> None:
    values = with_value(with_value(TARGET, "monitoring", {}), "mirrors/0/metrics", reporter(["kafka_connect_.*"]))
    write(project, "stg", with_value(values, "cluster/metrics", reporter(["kafka_server_replicamanager_.*"])))
    text = " ".join(run(project).split())
    assert "stack stg: cluster passive: metrics.allowList leaves out " in text
    assert "which alerts and dashboards read" in text
    write(project, "stg", with_value(values, "cluster/metrics", reporter(list(allow_list(Part.BROKER)))))
    assert "cluster passive: metrics.allowList" not in " ".join(run(project).split())


def test_rules_that_would_raise_each_alert_twice_stop_the_rendering(project: Path) -> None:
    general = project / "out" / "rules" / "rt-inventory.yaml"
    general.parent.mkdir(parents=True)
    general.write_text(rendering.text(), encoding="utf-8")
    reported = " ".join(run(project, code=2).split())
    assert "--out must have no other rules of these alerts (got " in reported
    assert [*(project / "out").rglob("*.*")] == [general], "nothing is written"
    general.write_text("groups: [{name: own, rules: []}]", encoding="utf-8")
    run(project)
    assert general.exists()


def reporter(allowed: list[str]) -> Values:
    return {"type": "strimziMetricsReporter", "allowList": allowed}


def test_a_mistake_in_a_stack_file_is_reported(project: Path) -> None:
    write(project, "stg", with_value(TARGET, "monitoring", {"scrapeSeconds": 0}))
    assert "monitoring.scrapeSeconds" in run(project, code=2)
