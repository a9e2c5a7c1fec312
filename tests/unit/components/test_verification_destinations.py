"""Where the result of a verification is sent: the gateway as an argument, the webhook's address by a Secret only."""

import json
from pathlib import Path
from typing import Any

import pytest

from components import verification_run as verification_job

from ...support.pulumi_engine import Engine, is_secret, revealed, target, up
from .test_verification import job

GATEWAY = "http://push.monitoring:9091"
ADDRESS = "https://hooks.slack.com/services/T0/B0/made-up"
EXISTING = {"stg/alerts": {"address": ADDRESS}}
DESTINATIONS = ["--push-gateway", GATEWAY, "--slack-webhook", "env:SLACK_WEBHOOK"]
BOTH: dict[str, Any] = {"pushGateway": GATEWAY, "slackWebhook": {"secret": "alerts", "key": "address"}}
VARIABLE = {
    "name": "SLACK_WEBHOOK",
    "valueFrom": {"secretKeyRef": {"name": "alerts", "key": "address", "optional": True}},
}
SCHEDULE = {"schedule": "@daily"}


def made(how: str = "local", **settings: Any) -> Engine:
    engine = Engine(existing=EXISTING)
    run = {} if how == "local" else {"how": how, "image": "verification:1.0.0", "schedule": SCHEDULE}
    up(engine, target(verification={"run": run, **settings}))
    return engine


def one(engine: Engine, kind: str) -> dict[str, Any]:
    (found,) = (spec["spec"] for spec in engine.all(kind).values())
    assert isinstance(found, dict)
    return found


def local(engine: Engine) -> dict[str, Any]:
    (found,) = (inputs for (kind, _), inputs in engine.resources.items() if kind.endswith("Run"))
    return found


def test_a_job_and_its_schedule_notify_the_gateway_and_slack() -> None:
    engine = made("job", **BOTH)
    for spec in (one(engine, "v1:Job"), one(engine, "v1:CronJob")["jobTemplate"]["spec"]):
        container = spec["template"]["spec"]["containers"][0]
        assert container["args"][-4:] == DESTINATIONS
        assert VARIABLE in container["env"]


def test_a_spark_application_and_its_schedule_notify_the_gateway_and_slack_from_the_driver() -> None:
    engine = made("spark-application", **BOTH)
    scheduled = one(engine, "v1beta2:ScheduledSparkApplication")["template"]
    for spec in (one(engine, "v1beta2:SparkApplication"), scheduled):
        assert spec["arguments"][-4:] == DESTINATIONS
        assert VARIABLE in spec["driver"]["env"]
        assert "env" not in spec["executor"]


@pytest.mark.parametrize("how", ["job", "spark-application"])
def test_the_address_for_a_pod_never_passes_through_pulumi(how: str) -> None:
    engine = made(how, **BOTH)
    assert "stg/alerts" not in engine.reads.values()
    assert ADDRESS not in json.dumps([revealed(inputs) for inputs in engine.resources.values()])


@pytest.mark.parametrize("how", ["local", "job"])
def test_nobody_is_reported_unless_it_is_asked_for(how: str) -> None:
    engine = made(how)
    assert not engine.reads
    if how == "local":
        assert local(engine)["told"] == ["--index", "reports"]
        return
    container = one(engine, "v1:Job")["template"]["spec"]["containers"][0]
    assert not set(DESTINATIONS) & set(container["args"])
    assert "SLACK_WEBHOOK" not in {each["name"] for each in container["env"]}


def test_a_process_beside_pulumi_gets_the_address_as_a_secret_variable() -> None:
    engine = made(**BOTH)
    props = local(engine)
    assert props["told"] == ["--index", "reports", *DESTINATIONS]
    assert is_secret(props["environment"])
    assert revealed(props["environment"])["SLACK_WEBHOOK"] == ADDRESS
    assert ADDRESS not in json.dumps({key: value for key, value in props.items() if key != "environment"})


def test_runs_are_listed_in_the_folder_of_all_reports_or_the_one_that_is_set() -> None:
    assert local(made(reportDir="/var/kafka"))["told"] == ["--index", "/var/kafka"]


def test_the_stacks_outputs_do_not_hold_the_address() -> None:
    engine = Engine(existing=EXISTING)
    seen = up(engine, target(verification=BOTH))
    assert ADDRESS not in json.dumps(revealed(seen.exports))


def test_the_process_gets_what_it_is_to_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body = """
        (report / "report.json").write_text(json.dumps({"verdict": "pass", "checks": []}))
        print(*sys.argv[5:])
        """
    job(monkeypatch, tmp_path, body)
    said: list[str] = []
    request = {"mirror": {"name": "mm2"}, "limits": {"allow_unknown": []}}
    verification_job.run(request, {}, report_dir=Path("r"), deadline_s=30, log=said.append, destinations=DESTINATIONS)
    assert said == [" ".join(DESTINATIONS)]
