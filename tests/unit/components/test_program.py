"""The program with the shipped stack files: what it registers, in which wiring, and what it exports."""

import json
from typing import Any

import pulumi
import pytest

from components.custom_resource import READY
from components.kafka.mirror_maker_2 import NO_TASK_FAILED
from components.verification.verification import proven

from ...support.recorded_program import CERTIFICATE, FOUND, PASSWORD, SOURCE_OUTPUTS, Recorder, Run, run, stack_values

SECRET_VALUE = "value"  # a secret reaches the engine as an envelope with its value


@pytest.fixture(scope="module")
def dev() -> Run:
    return run("dev")


@pytest.fixture(scope="module")
def stg() -> Run:
    return run("stg")


def test_the_source_stack_makes_a_cluster_its_users_and_its_topics(dev: Run) -> None:
    custom = [kind for kind in dev.recorder.kinds() if not kind.startswith(("Namespaces", "rt-"))]
    assert [kind for kind in custom if kind.startswith(("v1:", "v1alpha1:", "randomPassword"))] == [
        "randomPassword:RandomPassword",
        "randomPassword:RandomPassword",
        "v1:ConfigMap",
        "v1:Kafka",
        "v1:KafkaNodePool",
        "v1:KafkaTopic",
        "v1:KafkaTopic",
        "v1:KafkaTopic",
        "v1:KafkaUser",
        "v1:KafkaUser",
        "v1:Namespace",
        "v1:OperatorGroup",
        "v1:Secret",
        "v1:Secret",
        "v1alpha1:Subscription",
    ]


def test_the_target_stack_declares_no_topic_that_the_mirror_creates(stg: Run) -> None:
    assert "v1:KafkaTopic" not in stg.recorder.kinds()
    assert stg.exports["topics"] == []


def test_secrets_of_the_source_are_copied_under_their_own_names(stg: Run) -> None:
    user = stg.recorder.one("v1:Secret", "rt-inv-dev-user")
    authority = stg.recorder.one("v1:Secret", "rt-inventory-dev-cluster-ca-cert")
    assert user["stringData"][SECRET_VALUE] == {"password": "source password"}
    assert authority["stringData"][SECRET_VALUE] == {"ca.crt": "source certificate"}
    assert {user["metadata"]["namespace"], authority["metadata"]["namespace"]} == {"rt-inventory-stg"}


@pytest.mark.parametrize("stack", ["dev", "stg"])
def test_a_secret_that_the_stack_makes_is_taken_back_and_nothing_else(
    stack: str, request: pytest.FixtureRequest
) -> None:
    resources = request.getfixturevalue(stack).recorder.resources.items()
    forced = {
        kind
        for (kind, _), inputs in resources
        if "pulumi.com/patchForce" in (inputs.get("metadata", {}).get("annotations") or {})
    }
    made = {
        "pulumi.com/patchForce" in (inputs["metadata"].get("annotations") or {})
        for (kind, _), inputs in resources
        if kind == "v1:Secret"
    }
    assert (forced, made) == ({"v1:Secret"}, {True})


def test_a_user_gets_its_password_by_reference_to_the_stacks_own_secret(dev: Run) -> None:
    spec = dev.recorder.one("v1:KafkaUser", "rt-inv-dev-user")["spec"]
    reference = spec["authentication"]["password"]["valueFrom"]["secretKeyRef"]
    assert reference == {"name": "rt-inv-dev-user-credentials", "key": "password"}
    assert dev.recorder.one("v1:Secret", reference["name"])["stringData"][SECRET_VALUE] == {"password": PASSWORD}
    assert PASSWORD not in json.dumps(spec)


def test_every_custom_resource_waits_for_its_operator_with_a_deadline(stg: Run) -> None:
    waiting = {
        name: inputs["metadata"]["annotations"]
        for (_, name), inputs in stg.recorder.resources.items()
        if "pulumi.com/waitFor" in inputs.get("metadata", {}).get("annotations", {})
    }
    users = {"users-rt-inv-app-stg-user", "users-rt-inv-stg-user"}
    assert set(waiting) == {"cluster-kafka", "mm2-mirror", "operator-subscription"} | users
    assert json.loads(waiting["cluster-kafka"]["pulumi.com/waitFor"]) == list(READY)
    # Strimzi calls a mirror Ready whose task has failed.
    assert json.loads(waiting["mm2-mirror"]["pulumi.com/waitFor"]) == [*READY, NO_TASK_FAILED]
    assert {name: entry["pulumi.com/timeoutSeconds"] for name, entry in waiting.items()} == {
        "cluster-kafka": "900",
        "mm2-mirror": "600",
        "operator-subscription": "600",
        **dict.fromkeys(users, "300"),
    }


def test_applications_have_users_of_their_own_and_may_not_write_on_the_standby(dev: Run, stg: Run) -> None:
    rights = {
        name: [
            (rule["type"], rule["operations"])
            for rule in run.recorder.one("v1:KafkaUser", name)["spec"]["authorization"]["acls"]
        ]
        for run, name in ((dev, "rt-inv-app-dev-user"), (stg, "rt-inv-app-stg-user"), (dev, "rt-inv-dev-user"))
    }
    denial = ("deny", ["Write", "Delete", "Alter"])
    assert rights["rt-inv-app-stg-user"] == [*rights["rt-inv-app-dev-user"], *[denial] * 3]
    assert not [operations for _, operations in rights["rt-inv-dev-user"] if "Write" in operations]
    assert stg.exports["verificationRequests"]["mm2"]["mirror"]["active"] == "source"
    applications = {name: user["application"] for run in (dev, stg) for name, user in run.exports["users"].items()}
    assert applications == {
        "rt-inv-app-dev-user": True,
        "rt-inv-dev-user": False,
        "rt-inv-app-stg-user": True,
        "rt-inv-stg-user": False,
    }


def test_the_mirror_is_wired_from_one_cluster_to_the_other(stg: Run) -> None:
    spec = stg.recorder.one("v1:KafkaMirrorMaker2")["spec"]
    source, target = spec["mirrors"][0]["source"], spec["target"]
    assert (source["bootstrapServers"], target["bootstrapServers"]) == ("127.0.0.1:9000", "127.0.0.1:9093")
    assert source["authentication"]["passwordSecret"] == {"secretName": "rt-inv-dev-user", "password": "password"}
    assert target["authentication"]["passwordSecret"] == {"secretName": "rt-inv-stg-user", "password": "password"}


def test_the_verification_beside_pulumi_reaches_both_sides_from_outside(stg: Run) -> None:
    request = stg.exports["verificationRequests"]["mm2"]
    servers = [request[side]["client_config"]["bootstrap.servers"] for side in ("source", "target")]
    assert servers == ["127.0.0.1:9000", "kafka.example.com:9094"]


def test_the_verification_names_cluster_stack_and_namespace_of_both_sides(stg: Run) -> None:
    request = stg.exports["verificationRequests"]["mm2"]
    names = [[request[side][key] for key in ("cluster", "stack", "namespace")] for side in ("source", "target")]
    assert names == [[f"rt-inventory-{stack}", stack, f"rt-inventory-{stack}"] for stack in ("dev", "stg")]


def test_what_clusters_and_stacks_are_called_verifies_nothing_again(stg: Run) -> None:
    request = stg.exports["verificationRequests"]["mm2"]
    source = {key: value for key, value in request["source"].items() if key not in ("cluster", "stack", "namespace")}
    older = {**request, "source": source, "stack": "prod"}
    assert proven(request) == proven(older)
    assert proven(request) != proven({**request, "source": {**source, "alias": "other"}})


def test_both_stacks_export_what_their_users_rely_on(dev: Run, stg: Run) -> None:
    assert dev.exports["cluster"] == {
        "name": "rt-inventory-dev",
        "namespace": "rt-inventory-dev",
        "context": "dev",
        "bootstrapServers": "kafka.example.com:9094",
        "internalBootstrapServers": "127.0.0.1:9093",
        "securityProtocol": "SASL_SSL",
        "saslMechanism": "SCRAM-SHA-512",
        "caSecret": {"name": "rt-inventory-dev-cluster-ca-cert", "key": "ca.crt"},
    }
    assert dev.exports["users"] == SOURCE_OUTPUTS["users"]
    assert dev.exports["userCredentials"] == {
        "rt-inv-app-dev-user": {"password": PASSWORD},
        "rt-inv-dev-user": {"password": PASSWORD},
    }
    assert dev.exports["userPasswords"] == {"rt-inv-app-dev-user": PASSWORD, "rt-inv-dev-user": PASSWORD}
    assert dev.exports["clusterCaCertificate"] == CERTIFICATE + "\n"
    assert dev.exports["topics"] == ["items", "items.inventory", "store.inventory"]
    assert stg.exports["mirrors"]["mm2"]["connectUrl"] == "http://127.0.0.1:8083"
    assert stg.exports["mirrors"]["mm2"]["sourceStack"] == "dev"
    assert stg.exports["verifications"] == {
        "mm2": {
            "verdict": "pass",
            "report": FOUND["report"],
            "finishedAt": "2026-01-31T12:00:00+00:00",
            "recordsCompared": 10,
        }
    }
    assert dev.exports.keys() == stg.exports.keys()


@pytest.mark.parametrize("stack", ["dev", "stg"])
def test_what_is_secret_is_exported_as_a_secret(stack: str, dev: Run, stg: Run) -> None:
    secret = {"clusterCaCertificate", "userPasswords", "userCredentials"}
    secret |= {"verificationEnvironment"} if stack == "stg" else set()
    assert {"dev": dev, "stg": stg}[stack].secrets == secret


def test_the_verification_gets_secrets_by_name_only(stg: Run) -> None:
    request, environment = stg.exports["verificationRequests"]["mm2"], stg.exports["verificationEnvironment"]["mm2"]
    assert request["stack"] == "stg"
    assert request["source"]["client_config"]["sasl.password"] == {"env": "SOURCE_PASSWORD"}
    assert environment == {
        "SOURCE_PASSWORD": "source password",
        "SOURCE_CA": "source certificate",
        "TARGET_PASSWORD": PASSWORD,
        "TARGET_CA": CERTIFICATE + "\n",
    }
    assert not [secret for secret in environment.values() if secret in json.dumps(request)]


def test_the_verification_is_reported_what_the_mirror_keeps_and_copies_besides_records(stg: Run) -> None:
    mirror = stg.exports["verificationRequests"]["mm2"]["mirror"]
    assert mirror["resource"] == {
        "api_version": "kafka.strimzi.io/v1",
        "kind": "KafkaMirrorMaker2",
        "namespace": "rt-inventory-stg",
        "name": "mm2",
        "context": "stg",
    }
    assert mirror["topic_configs"] == {"sync": True, "exclude": [], "use_defaults_from": "target", "filter_class": None}
    assert mirror["sync_topic_acls"] is False
    assert mirror["sync_group_offsets"] is True
    assert {(one["name"], one["location"], one["replication_factor"]) for one in mirror["internal_topics"]} == {
        ("mm2-configs", "target", 3),
        ("mm2-offsets", "target", 3),
        ("mm2-status", "target", 3),
        ("mm2-offset-syncs.es-src.internal", "target", 3),
        ("es-src.checkpoints.internal", "target", 3),
        ("heartbeats", "target", None),
    }
    assert [one["name"] for one in mirror["internal_topics"] if not one["required"]] == ["heartbeats"]


def test_what_only_the_connectors_free_map_says_reaches_the_verification() -> None:
    values = stack_values("stg")
    values["rt-inventory:mirrors"][0] |= {
        "emitCheckpoints": False,
        "syncGroupOffsets": False,
        "syncTopicConfigs": False,
        "configPropertiesExclude": ["retention.ms"],
        "sourceConnectorConfig": {"use.defaults.from": "source", "emit.offset-syncs.enabled": False},
    }
    mirror = run("stg", values=values).exports["verificationRequests"]["mm2"]["mirror"]
    assert mirror["sync_group_offsets"] is False
    assert mirror["topic_configs"] == {
        "sync": False,
        "exclude": ["retention.ms"],
        "use_defaults_from": "source",
        "filter_class": None,
    }
    required = {one["name"]: one["required"] for one in mirror["internal_topics"]}
    assert not required["es-src.checkpoints.internal"]
    assert not required["mm2-offset-syncs.es-src.internal"]


def test_a_canary_is_asked_for_where_the_mirror_copies_its_topic() -> None:
    values = stack_values("stg")
    values["rt-inventory:verification"] |= {"canary": {"topic": "items", "records": 20}, "canaryP99MsMax": 900}
    request = run("stg", values=values).exports["verificationRequests"]["mm2"]
    assert request["mirror"]["canary"] == {"topic": "items", "records": 20, "partition": None}
    assert request["limits"]["canary_p99_ms_max"] == 900


@pytest.mark.parametrize("stack", ["dev", "stg"])
def test_the_first_preview_takes_what_does_not_exist_for_unknown(stack: str) -> None:
    seen = run(stack, Recorder(preview=True))
    assert {"cluster", "clusterCaCertificate", "userPasswords"} <= seen.unknown
    assert "topics" not in seen.unknown


def test_a_bad_verdict_ends_the_up_with_the_checks_that_failed() -> None:
    failed = {**FOUND, "passed": False, "verdict": "fail", "message": "mirror mm2: 3 lost in items-0"}
    with pytest.raises(pulumi.RunError, match="3 lost in items-0"):
        run("stg", Recorder(found=failed))


def test_an_up_prints_the_verdict_the_report_and_the_names_of_checks_that_do_not_hold() -> None:
    names = {"lag": True, "records_complete": True, "canary_latency": None, "groups_synced": None, "acls_synced": False}
    checks = [{"name": name, "ok": ok, "expected": "e", "observed": "o"} for name, ok in names.items()]
    exported = run("stg", Recorder(found={**FOUND, "checks": checks})).exports["verifications"]["mm2"]
    assert exported == {
        "verdict": "pass",
        "failed": "acls_synced",
        "unknown": "canary_latency, groups_synced",
        "report": FOUND["report"],
        "finishedAt": "2026-01-31T12:00:00+00:00",
        "recordsCompared": 10,
    }


def test_a_stack_that_never_verifies_makes_no_run() -> None:
    values = stack_values("stg")
    values["rt-inventory:verification"] = {"when": "never"}
    seen = run("stg", values=values)
    assert "verification:Run" not in seen.recorder.kinds()
    assert seen.exports["verifications"] == {"mm2": None}
    assert seen.exports["verificationRequests"]["mm2"]["mirror"]["name"] == "mm2"


@pytest.mark.parametrize("outputs", [None, {}, {"cluster": SOURCE_OUTPUTS["cluster"]}])
def test_a_source_that_is_not_up_is_reported_before_anything_is_created(outputs: dict[str, Any] | None) -> None:
    recorder = Recorder(source_outputs=outputs)
    with pytest.raises(
        pulumi.RunError, match=r"source\.stack must be a stack that is up .*Run `pulumi up -s dev` first"
    ):
        run("stg", recorder)
    assert not recorder.resources


def test_a_user_that_the_source_does_not_have_is_reported_before_anything_is_created() -> None:
    recorder = Recorder(source_outputs={**SOURCE_OUTPUTS, "users": {"somebody": {}}})
    with pytest.raises(pulumi.RunError, match=r"source\.user must be a user of stack dev .*allowed somebody"):
        run("stg", recorder)
    assert not recorder.resources


def test_all_mistakes_of_a_stack_file_are_reported_before_anything_is_created() -> None:
    values = stack_values("dev")
    values["rt-inventory:topics"][0]["replicas"] = 3
    values["rt-inventory:users"] = "nobody"
    values["rt-inventory:cluter"] = {}
    recorder = Recorder()
    with pytest.raises(pulumi.RunError) as error:
        run("dev", recorder, values)
    for key in ("topics[0].replicas", "users", "cluter"):
        assert f"rt-inventory:{key}: " in str(error.value)
    assert str(error.value).startswith("3 problems")
    assert not recorder.resources


def test_another_name_of_the_same_kubernetes_cluster_verifies_nothing_again() -> None:
    def trigger(context: str) -> Any:
        found = run("stg", values={**stack_values("stg"), "kubernetes:context": context})
        assert found.exports["verificationRequests"]["mm2"]["mirror"]["resource"]["context"] == context
        (made,) = [inputs for inputs in found.recorder.resources.values() if "trigger" in inputs]
        return made["trigger"]

    assert trigger("stg") == trigger("arn:aws:eks:eu-west-1:1:cluster/stg")
