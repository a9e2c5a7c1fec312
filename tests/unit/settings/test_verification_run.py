"""Where the verification runs: schedules, images and sizes as Kubernetes takes them, and what belongs together."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from settings import parse
from settings.verification import Cron, Image, TimeZone, Verification

from ...support.stack_values import TARGET, with_value
from .test_rules import problems

IMAGE = "registry.example.com/kafka/verification:1.0.0"
JOB = {"how": "job", "image": IMAGE}
SPARK = {"how": "spark-application", "image": IMAGE}


def accepts(kind: Any, value: str) -> bool:
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    "schedule",
    ["* * * * *", "*/5 0-6,22 1 jan-mar MON", "0 3 * * *", "? 12 ? * 0", "5/15 * * * 1-5/2", "@hourly", "@midnight"],
)
def test_a_schedule_is_what_both_controllers_read(schedule: str) -> None:
    assert accepts(Cron, schedule)


@pytest.mark.parametrize(
    "schedule",
    [
        "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "5-1 * * * *",
        "*/0 * * * *", "*/x * * * *", "* * * * funday", "1,,2 * * * *", "@every 5m", "@reboot", "TZ=UTC 0 3 * * *",
    ],
)  # fmt: skip
def test_what_they_would_refuse_is_no_schedule(schedule: str) -> None:
    assert not accepts(Cron, schedule)


def test_a_time_zone_is_known_by_its_name() -> None:
    assert accepts(TimeZone, "UTC")
    assert accepts(TimeZone, "America/Argentina/Buenos_Aires")
    assert not any(accepts(TimeZone, zone) for zone in ("Local", "Europe/Pariss", "", "../etc/passwd", "UTC "))


@pytest.mark.parametrize(
    ("image", "pinned"),
    [
        (IMAGE, True),
        ("registry.example.com:5000/verification@sha256:" + "a" * 64, True),
        ("verification:1.0.0", True),
        ("registry.example.com:5000/verification", False),
        ("registry.example.com/verification:latest", False),
        ("registry.example.com/verification:Main", False),
        ("registry.example.com/verification@sha256:abc", False),
        ("registry.example.com/veri fication:1.0.0", False),
    ],
)
def test_an_image_has_a_digest_or_a_tag_that_does_not_move(image: str, pinned: bool) -> None:
    assert accepts(Image, image) is pinned


def test_sparks_driver_has_a_namespace_of_its_own() -> None:
    stack = parse(with_value(TARGET, "verification/run", SPARK), "stg")
    (mirror,) = stack.mirrors
    assert stack.verification_namespace(mirror) == "passive-verification"
    assert "passive-verification" in stack.namespaces
    ((key, message),) = problems(with_value(TARGET, "verification/run", {**SPARK, "namespace": "passive"}))
    assert key == "verification.run.namespace"
    assert "must not be that of a cluster or mirror with how spark-application (got passive; the driver may" in message
    job = parse(with_value(TARGET, "verification/run", {**JOB, "namespace": "passive"}), "stg")
    assert job.verification_namespace(mirror) == "passive"
    long = with_value(TARGET, "mirrors/0/namespace", "n" * 60)
    found = dict(problems(with_value(long, "verification/run", SPARK)))
    assert f"must be given (got nothing). {'n' * 60}-verification is longer" in found["verification.run.namespace"]


@pytest.mark.parametrize(
    ("run", "key", "reported"),
    [
        ({"how": "pod"}, "how", "allowed local, job, spark-application"),
        ({"how": "job"}, "image", "must be given with how job (got nothing)"),
        ({"image": IMAGE}, "image", "must not be set with how local"),
        ({"schedule": {"schedule": "@daily"}}, "schedule", "must not be set with how local"),
        ({**JOB, "executor": {"instances": 4}}, "executor", "must not be set with how job"),
        ({**JOB, "sparkVersion": "4.0.1"}, "sparkVersion", "must not be set with how job"),
        ({**JOB, "image": "verification"}, "image", "a tag that does not move (got 'verification')"),
        ({**JOB, "schedule": {"schedule": "61 * * * *"}}, "schedule.schedule", "got minute 61 in '61 * * * *'"),
        ({**JOB, "schedule": {}}, "schedule.schedule", "must be given"),
        (
            {**JOB, "schedule": {"schedule": "@daily", "timeZone": "Mars"}},
            "schedule.timeZone",
            "IANA name (got 'Mars')",
        ),
        ({**JOB, "driver": {"coreLimit": "2 cores"}}, "driver.coreLimit", "as Kubernetes writes it"),
        ({**JOB, "driver": {"memory": "2Gi"}}, "driver.memory", "an amount of memory as Java writes it"),
        ({**JOB, "envFrom": ["Not_A_Name"]}, "envFrom[0]", "must be a name for Kubernetes"),
        (
            {**SPARK, "schedule": {"schedule": "@daily", "startingDeadlineSeconds": 60}},
            "schedule.startingDeadlineSeconds",
            "must not be set with how spark-application",
        ),
    ],
)
def test_one_mistake_is_reported_with_its_key(run: dict[str, Any], key: str, reported: str) -> None:
    found = problems(with_value(TARGET, "verification", {"run": run}))
    assert list(dict(found)) == [f"verification.run.{key}"]
    assert reported in found[0][1]


def test_every_mistake_is_reported_at_once() -> None:
    run = {"how": "job", "image": "x", "schedule": {"schedule": "daily"}, "driver": {"cores": 0}}
    keys = {key for key, _ in problems(with_value(TARGET, "verification", {"run": run}))}
    assert keys == {
        "verification.run.image", "verification.run.schedule.schedule", "verification.run.driver.cores",
    }  # fmt: skip


def test_a_folder_of_reports_belongs_to_a_process_beside_pulumi() -> None:
    found = dict(problems(with_value(TARGET, "verification", {"reportDir": "r", "run": JOB})))
    assert list(found) == ["verification.reportDir"]


@pytest.mark.parametrize(("run", "longest"), [(JOB, 45), (SPARK, 29)])
def test_names_of_pods_are_not_too_long(run: dict[str, Any], longest: int) -> None:
    values = with_value(TARGET, "verification", {"run": run})
    assert parse(with_value(values, "mirrors/0/name", "m" * longest), "stg")
    found = dict(problems(with_value(values, "mirrors/0/name", "m" * (longest + 1))))
    assert f"at most {longest} characters" in found["mirrors[0].name"]


@pytest.mark.parametrize(
    "address", ["push.example.com:9091", "ftp://push", "https://", "http://push?a=b", "http://a b"]
)
def test_a_push_gateway_is_a_plain_address(address: str) -> None:
    found = problems(with_value(TARGET, "verification", {"pushGateway": address}))
    assert list(dict(found)) == ["verification.pushGateway"]


def test_the_address_of_a_webhook_is_refused_and_not_repeated() -> None:
    address = "https://hooks.slack.com/services/T0/B0/made-up"
    found = problems(with_value(TARGET, "verification", {"slackWebhook": address}))
    assert [key for key, _ in found] == ["verification.slackWebhook"]
    assert "Put it into a Secret" in found[0][1]
    assert "made-up" not in str(found)


@pytest.mark.parametrize(
    ("audit", "key", "reported"),
    [
        ({}, "image", "must be given unless run.image is (got nothing)"),
        ({"image": "verification:latest"}, "image", "a tag that does not move (got 'verification:latest')"),
        ({"image": IMAGE, "everySeconds": 0}, "everySeconds", "got 0"),
        ({"image": IMAGE, "bucketSeconds": 86_401}, "bucketSeconds", "got 86401"),
        ({"image": IMAGE, "withinSeconds": "1m"}, "withinSeconds", "got '1m'"),
        ({"image": IMAGE, "stateClaim": "No_Name"}, "stateClaim", "must be a name for Kubernetes"),
        ({"image": IMAGE, "driver": {"cores": 0}}, "driver.cores", "got 0"),
        ({"image": IMAGE, "port": 9404}, "port", "must be a known key"),
        ({"image": IMAGE, "executor": {"instances": 3}}, "executor", "must not be set with how local"),
    ],
)
def test_a_mistake_of_the_audit_is_reported_with_its_key(audit: dict[str, Any], key: str, reported: str) -> None:
    found = problems(with_value(TARGET, "verification", {"audit": audit}))
    assert list(dict(found)) == [f"verification.audit.{key}"]
    assert reported in found[0][1]


def test_an_audit_has_executors_as_a_spark_application_only() -> None:
    audit = {"executor": {"instances": 3}}
    (problem,) = problems(with_value(TARGET, "verification", {"run": JOB, "audit": audit}))
    assert problem[0] == "verification.audit.executor"
    taken = parse(with_value(TARGET, "verification", {"run": SPARK, "audit": audit}), "stg").verification
    assert taken.audit is not None
    assert taken.audit.executor.instances == 3


def test_an_audit_is_none_unless_asked_for_and_takes_the_image_of_the_run() -> None:
    assert Verification().audit is None
    taken = parse(with_value(TARGET, "verification", {"run": JOB, "audit": {}}), "stg").verification
    assert (taken.audit_image, taken.audit and taken.audit.driver.core_request) == (IMAGE, "500m")


def test_nothing_runs_in_the_cluster_unless_it_is_asked_for() -> None:
    assert not Verification().run.in_cluster
