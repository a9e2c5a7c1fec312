"""Planned deletions and replacements: which matter, which are allowed, and what Pulumi refuses by itself."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ops.errors import OpsError
from ops.policy import Finding, Judgement, judging
from ops.policy.judging import RULE, judge
from ops.pulumi import events
from ops.pulumi.stack import EngineRun

from ...support import event_logs as recorded

SECRET = recorded.urn("kubernetes:core/v1:Secret", "users-app-credentials")
OTHER_SECRET = recorded.urn("kubernetes:core/v1:Secret", "copied")
USER = recorded.urn(f"{recorded.KAFKA_TYPES}KafkaUser", "users-app")
LOGIN = {"authentication": {"password": {"valueFrom": {"secretKeyRef": {"name": "app-credentials", "key": "p"}}}}}


def found(*happened: recorded.Event, level: str | None = "mandatory") -> list[Finding]:
    return [*judging.removal_findings(events.read_event_log(recorded.log(*happened).splitlines()), level)]


def excused(value: str) -> dict[str, Any]:
    return {"annotations": {f"exception.rt-inventory/{RULE}": value}}


def judged(*happened: recorded.Event, whole: bool, level: str | None = "mandatory") -> Judgement:
    log = events.read_event_log(recorded.log(*happened, whole=whole, failed=True).splitlines())
    preview = EngineRun(log=log, exit_code=255, stdout="", stderr="")
    return judge("stg", Path("policies"), preview, level)


@pytest.mark.parametrize(
    ("type_", "lost"),
    [
        ("kafka.strimzi.io/v1:Kafka", "All of its records go with it."),
        ("kafka.strimzi.io/v1beta2:Kafka", "All of its records go with it."),
        ("eventstreams.ibm.com/v1beta2:EventStreams", "All of its records go with it."),
        ("kafka.strimzi.io/v1:KafkaNodePool", "Its brokers go with it, and with them their replicas."),
        ("eventstreams.ibm.com/v1beta2:KafkaTopic", "Its records go with it."),
        ("core/v1:PersistentVolumeClaim", "The records on its volume may go with it."),
        ("core/v1:Namespace", "Everything in it goes with it."),
        ("apiextensions.k8s.io/v1:CustomResourceDefinition", "Every resource of its kind goes with it."),
    ],
)
def test_what_holds_records_must_stay(type_: str, lost: str) -> None:
    urn = recorded.urn(f"kubernetes:{type_}", "pulumi-name")
    (finding,) = found(recorded.step("delete", urn, name="it"), recorded.done("delete", urn))
    kind = type_.rsplit(":", 1)[-1]
    assert finding.message == f"{kind} it: must stay (got delete). {lost}"
    assert (finding.rule, finding.severity, finding.level) == ("deletion-protection", "critical", "mandatory")


def test_a_replacement_counts_once() -> None:
    steps = [
        recorded.step(op, recorded.topic(), name="items") for op in ("create-replacement", "replace", "delete-replaced")
    ]
    (finding,) = found(*steps)
    assert finding.message == "KafkaTopic items: must stay (got replace). Its records go with it."


@pytest.mark.parametrize("op", ["create-replacement", "replace", "delete-replaced"])
def test_each_step_of_a_replacement_reports_of_it(op: str) -> None:
    (finding,) = found(recorded.step(op, recorded.topic(), name="items"))
    assert "(got replace)" in finding.message


@pytest.mark.parametrize("op", ["same", "create", "update", "refresh", "read", "import"])
def test_other_operations_are_no_removal(op: str) -> None:
    assert found(recorded.step(op, recorded.topic(), name="items")) == []


@pytest.mark.parametrize("type_", ["core/v1:ConfigMap", "kafka.strimzi.io/v1:KafkaMirrorMaker2", "apps/v1:Deployment"])
def test_what_holds_nothing_may_go(type_: str) -> None:
    assert found(recorded.step("delete", recorded.urn(f"kubernetes:{type_}", "x"), name="x")) == []


def test_a_kind_of_that_name_in_another_group_is_not_meant() -> None:
    assert found(recorded.step("delete", recorded.urn("kubernetes:example.com/v1:Kafka", "x"), name="x")) == []
    assert found(recorded.step("delete", recorded.urn("random:index/kafka:Kafka", "x"), name="x")) == []


def test_what_pulumi_leaves_in_the_cluster_may_leave_the_stack() -> None:
    assert found(recorded.step("delete", recorded.topic(), name="items", retained=True)) == []


def test_a_topic_that_the_operator_does_not_manage_may_go() -> None:
    annotated = {"annotations": {"strimzi.io/managed": "false"}}
    assert found(recorded.step("delete", recorded.topic(), name="items", metadata=annotated)) == []


def test_a_topic_of_event_streams_is_left_alone_by_the_annotation_of_its_own_group() -> None:
    topic = recorded.urn("kubernetes:eventstreams.ibm.com/v1beta2:KafkaTopic", "topics-items")

    def lost(annotation: str) -> list[object]:
        return found(recorded.step("delete", topic, name="items", metadata={"annotations": {annotation: "false"}}))

    assert lost("eventstreams.ibm.com/managed") == []
    assert lost("strimzi.io/managed") != []


def test_of_the_secrets_those_of_users_must_stay() -> None:
    user = recorded.step("same", USER, name="app", spec=LOGIN)
    own = recorded.step("delete", SECRET, name="app-credentials")
    other = recorded.step("delete", OTHER_SECRET, name="copied")
    assert [finding.message for finding in found(user, own, other)] == [
        "Secret app-credentials: must stay (got delete). Clients and mirrors can log in no longer."
    ]


def test_without_users_in_the_preview_every_secret_must_stay() -> None:
    other = recorded.step("delete", OTHER_SECRET, name="copied")
    assert [str(finding.resource) for finding in found(other)] == ["Secret copied"]


def test_a_secret_whose_metadata_is_secret_is_known_by_its_id() -> None:
    step = recorded.step("delete", SECRET, name="app-credentials")
    step["resourcePreEvent"]["metadata"]["old"]["inputs"]["metadata"] = {"ciphertext": "[secret]"}
    user = recorded.step("same", USER, name="app", spec=LOGIN)
    assert [str(finding.resource) for finding in found(user, step)] == ["Secret app-credentials"]


def test_what_pulumi_refuses_to_delete_is_a_finding_and_the_judgement_says_that_it_is_not_complete() -> None:
    urn = recorded.topic()
    judgement = judged(recorded.step("delete", urn, name="items"), recorded.protected(urn), whole=False)
    assert [finding.message for finding in judgement.findings] == [
        "KafkaTopic items: must stay (got delete). Its records go with it. Pulumi protects it, so an update stops."
    ]
    assert not judgement.complete
    assert not judgement.passed


def test_what_pulumi_refuses_to_replace_is_a_finding_and_the_judgement_is_complete() -> None:
    urn = recorded.topic()
    refused = recorded.protected(urn, recorded.NOT_REPLACED)
    judgement = judged(refused, recorded.step("replace", urn, name="items"), whole=True)
    assert "got replace" in judgement.findings[0].message
    assert judgement.complete


@pytest.mark.parametrize("days", [0, 1])
def test_an_active_exception_lifts_the_rule_and_is_listed(days: int) -> None:
    day = datetime.now(UTC).date() + timedelta(days=days)
    deleted = recorded.step("delete", recorded.topic(), name="items", metadata=excused(f"until {day}: moved away"))
    (finding,) = found(deleted)
    assert (finding.rule, finding.level) == ("active-exceptions", "advisory")
    assert finding.message == (
        f"KafkaTopic items: deletion-protection is lifted from its delete until {day}: moved away"
    )


@pytest.mark.parametrize("value", ["until 2020-01-01: too late", "until 2020-13-01: no day", "always", ""])
def test_an_exception_that_is_expired_or_cannot_be_read_lifts_nothing(value: str) -> None:
    deleted = recorded.step("delete", recorded.topic(), name="items", metadata=excused(value))
    assert [finding.level for finding in found(deleted)] == ["mandatory"]


def test_an_exception_of_another_rule_lifts_nothing() -> None:
    other = {"annotations": {"exception.rt-inventory/topic-replication": "until 2999-01-01: x"}}
    deleted = recorded.step("delete", recorded.topic(), name="items", metadata=other)
    assert [finding.level for finding in found(deleted)] == ["mandatory"]


def test_an_exception_of_a_user_also_lets_its_secret_go() -> None:
    user = recorded.step("delete", USER, name="app", spec=LOGIN, metadata=excused("until 2999-01-01: left"))
    (finding,) = found(user, recorded.step("delete", SECRET, name="app-credentials"))
    assert finding.message.startswith("Secret app-credentials: deletion-protection is lifted")


def test_what_pulumi_refuses_is_a_finding_whatever_it_is_and_whatever_lifts_the_rule() -> None:
    urn = recorded.urn(f"{recorded.KAFKA_TYPES}KafkaMirrorMaker2", "mm2")
    judgement = judged(recorded.protected(urn), whole=False, level=None)
    assert [(finding.level, finding.message) for finding in judgement.findings] == [
        ("mandatory", "KafkaMirrorMaker2 mm2: must stay (got delete). Pulumi protects it, so an update stops.")
    ]
    deleted = recorded.step("delete", recorded.topic(), name="items", metadata=excused("until 2999-01-01: x"))
    assert not judged(deleted, recorded.protected(recorded.topic()), whole=False).passed


@pytest.mark.parametrize("level", ["advisory", None])
def test_a_level_below_mandatory_does_not_fail(level: str | None) -> None:
    reported = found(recorded.step("delete", recorded.topic(), name="items"), level=level)
    assert [finding.level for finding in reported] == ([level] if level else [])


@pytest.mark.parametrize(
    ("of_the_stack", "given", "expected"),
    [
        (None, None, "mandatory"),
        ({"topic-replication": "disabled"}, None, "mandatory"),
        ({RULE: "advisory"}, None, "advisory"),
        ({RULE: "disabled"}, None, None),
        ({RULE: {"enforcementLevel": "disabled", "kinds": []}}, None, None),
        ({RULE: {"kinds": []}}, None, "mandatory"),
        ({"all": "remediate"}, None, "mandatory"),
        ({"all": "disabled", RULE: "mandatory"}, None, "mandatory"),
        ({RULE: "disabled"}, {RULE: "mandatory"}, "mandatory"),
        ({RULE: "mandatory"}, {"all": "advisory"}, "advisory"),
        ({RULE: "often"}, None, "mandatory"),
    ],
)
def test_the_packs_configuration_decides_and_what_is_given_goes_on_top(
    of_the_stack: object, given: object, expected: str | None, tmp_path: Path
) -> None:
    if of_the_stack is not None:
        (tmp_path / "config.stg.json").write_text(json.dumps(of_the_stack), encoding="utf-8")
    (tmp_path / "config.dev.json").write_text('{"all": "disabled"}', encoding="utf-8")
    file = tmp_path / "given.json"
    file.write_text(json.dumps(given or {}), encoding="utf-8")
    assert (
        judging.configured_level(judging.configuration_files(tmp_path, tmp_path, "stg", file if given else None))
        == expected
    )
    long = "organization/rt-inventory/stg"
    assert (
        judging.configured_level(judging.configuration_files(tmp_path, tmp_path, long, file if given else None))
        == expected
    )


@pytest.mark.parametrize(
    ("text", "message"), [("no json", "must be JSON"), ("[]", "must be an object"), (None, "exist")]
)
def test_a_configuration_that_cannot_be_read_is_refused(text: str | None, message: str, tmp_path: Path) -> None:
    file = tmp_path / "given.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(OpsError, match=message):
        judging.configured_level([file])
