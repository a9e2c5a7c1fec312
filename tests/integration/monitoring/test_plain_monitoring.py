"""The plain configuration of the examples, as the tools of Prometheus and Alertmanager read it."""

import subprocess
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from monitoring import alert_routes
from ops.cli import app
from sandbox.state import PROJECT
from sandbox.toolchain import Tools
from settings.monitoring import Slack
from tests.support.waiting import at_most

EXAMPLE = PROJECT / "examples" / "monitored"
TARGETS = {
    "brokers": {"rt-inventory-stg": ["127.0.0.1:9404"]},
    "workers": {"mm2": ["127.0.0.1:9405"]},
    "operator": ["127.0.0.1:8080"],
}
SECONDS = at_most(60)


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for a Prometheus that finds pods."""
    return rendered(tmp_path_factory.mktemp("pods"))


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for a Prometheus that is given addresses."""
    folder = tmp_path_factory.mktemp("addresses")
    file = folder / "targets.yaml"
    file.write_text(yaml.safe_dump(TARGETS), encoding="utf-8")
    return rendered(folder, "--targets", str(file), "--exporter", "127.0.0.1:9410")


def rendered(folder: Path, *options: str) -> Path:
    arguments = ["--stack-file", str(EXAMPLE / "Pulumi.stg.yaml"), "--out", str(folder / "out"), *options]
    done = CliRunner().invoke(app, ["render", "--as", "prometheus", *arguments])
    assert done.exit_code == 0, done.output
    return folder / "out"


def checked(tool: Path, *arguments: str, within: Path) -> str:
    command = [str(tool), *arguments]
    done = subprocess.run(command, cwd=within, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_reads_the_configuration_with_addresses_and_every_rule(tools: Tools, addresses: Path) -> None:
    said = checked(tools.promtool, "check", "config", "prometheus.yml", within=addresses)
    assert "1 rule files found" in said
    assert "rules found" in said


def test_prometheus_reads_the_configuration_with_pods(tools: Tools, pods: Path) -> None:
    document = yaml.safe_load((pods / "prometheus.yml").read_text(encoding="utf-8"))
    # Debian's build knows no Kubernetes: that part is left out, the rest is read.
    found = [each.pop("kubernetes_sd_configs")[0] for each in document["scrape_configs"]]
    assert {each["role"] for each in found} == {"pod"}
    (pods / "without.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    checked(tools.promtool, "check", "config", "without.yml", within=pods)


def test_alertmanager_reads_its_configuration_and_templates(tools: Tools, pods: Path) -> None:
    said = checked(tools.amtool, "check-config", "alertmanager.yml", within=pods)
    assert "SUCCESS" in said
    assert "1 templates" in said


@pytest.mark.parametrize("field", ["title", "titleLink", "text", "color"])
def test_the_operators_resource_says_the_same_without_the_file_of_templates(
    tools: Tools, pods: Path, field: str
) -> None:
    (own, *_) = alert_routes.slack_resource(Slack(secret="kafka-alerts"), "stg")["receivers"][0]["slackConfigs"]
    (plain, *_) = alert_routes.slack_configuration(Slack(secret="kafka-alerts"), "secrets")["receivers"][0][
        "slack_configs"
    ]
    name = {"titleLink": "title_link"}.get(field, field)

    def said(text: str, files: str) -> str:
        return checked(
            tools.amtool, "template", "render", f"--template.glob={files}", f"--template.text={text}", within=pods
        )

    assert said(own[field], "/dev/null").strip() == said(plain[name], "templates/*.tmpl").strip() != ""


@pytest.mark.parametrize(("severity", "key"), [("critical", "pager"), ("warning", "url"), ("info", "url")])
def test_an_alert_of_the_stage_is_reported_by_the_webhook_of_its_severity(
    tools: Tools, pods: Path, severity: str, key: str
) -> None:
    labels = ["stage=production", f"severity={severity}", "stack=stg", "alertname=X"]
    routes = ["config", "routes", "test", "--config.file=alertmanager.yml", *labels]
    receivers = checked(tools.amtool, *routes, within=pods).split()
    known = yaml.safe_load((pods / "alertmanager.yml").read_text(encoding="utf-8"))["receivers"]
    configs = [config for each in known if each["name"] in receivers for config in each.get("slack_configs", [])]
    assert [Path(config["api_url_file"]).name for config in configs] == [key]
