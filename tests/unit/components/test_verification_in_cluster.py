"""The verification in the cluster: what the program makes for it, with which rights, and when a run is made anew."""

import json
from typing import Any

import pytest

from ...support.pulumi_engine import Engine, is_secret, mirror, revealed, target, up

IMAGE = "registry.example.com/kafka/verification:1.4.0"
SCHEDULE = {"schedule": "0 * * * *", "timeZone": "Europe/Paris"}
NAME, BY_SPARK = ("stg", "mm2-verify"), ("stg-verification", "mm2-verify")
KINDS = ("v1:ConfigMap", "v1:Secret", "v1:ServiceAccount", "v1:Role", "v1:RoleBinding", "v1:Job", "v1:CronJob",
         "v1:NetworkPolicy")  # fmt: skip
SPARK = "v1beta2:SparkApplication"
SCHEDULED = "v1beta2:ScheduledSparkApplication"


def made(
    how: str = "job", when: str = "on-change", platform: Any = None, engine: Engine | None = None, **run: Any
) -> tuple[Engine, dict[str, Any]]:
    engine = engine or Engine()
    settings = target(verification={"when": when, "run": {"how": how, "image": IMAGE, **run}})
    seen = up(engine, settings if platform is None else {**settings, "platform": platform})
    return engine, seen.exports["verifications"]["mm2"]


def one(engine: Engine, kind: str) -> dict[str, Any]:
    """The only object of a kind."""
    (found,) = engine.all(kind).values()
    return found


def container(engine: Engine) -> dict[str, Any]:
    found: dict[str, Any] = one(engine, "v1:Job")["spec"]["template"]["spec"]["containers"][0]
    return found


def test_a_process_beside_pulumi_makes_nothing_in_the_cluster() -> None:
    engine = Engine()
    up(engine, target(verification={"when": "on-change"}))
    assert not any(engine.all(kind) for kind in (*KINDS, SPARK, SCHEDULED) if kind not in ("v1:Secret",))
    assert NAME not in engine.all("v1:Secret")
    assert any(kind.endswith("Run") for kind in engine.kinds())


@pytest.mark.parametrize(
    ("how", "kind", "namespace"), [("job", "v1:Job", "stg"), ("spark-application", SPARK, "stg-verification")]
)
def test_pods_take_the_place_of_the_process(how: str, kind: str, namespace: str) -> None:
    engine, outcome = made(how)
    assert not any(kind.endswith(":Run") or kind == "Run" for kind in engine.kinds())
    assert (outcome["how"], outcome["namespace"], outcome["verdict"]) == (how, namespace, "pass")
    assert engine.all(kind).keys() == {(namespace, outcome["run"])}


def test_the_request_lies_in_a_config_map_and_its_secrets_in_a_secret() -> None:
    engine, _ = made()
    request = engine.all("v1:ConfigMap")[NAME]["data"]["request.json"]
    assert json.loads(request)["mirror"]["name"] == "mm2"
    values = engine.all("v1:Secret")[NAME]["stringData"]
    assert is_secret(values)
    assert set(revealed(values)) == {"SOURCE_PASSWORD", "SOURCE_CA", "TARGET_PASSWORD", "TARGET_CA"}
    assert not any(value in request for value in revealed(values).values())


def test_a_network_policy_admits_the_pods_to_connect_which_the_operator_fences() -> None:
    engine, _ = made(namespace="verification")
    (policy,) = engine.all("v1:NetworkPolicy").items()
    assert policy[0] == ("stg", "mm2-verify"), "where the workers are, not where the pods are"
    spec = policy[1]["spec"]
    assert spec["podSelector"]["matchLabels"] == {
        "strimzi.io/cluster": "mm2",
        "strimzi.io/kind": "KafkaMirrorMaker2",
    }
    assert spec["policyTypes"] == ["Ingress"]
    (rule,) = spec["ingress"]
    (peer,), (port,) = rule["from"], rule["ports"]
    assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "verification"}
    pods = one(engine, "v1:Job")["spec"]["template"]["metadata"]["labels"]
    assert peer["podSelector"]["matchLabels"].items() <= pods.items()
    assert port == {"protocol": "TCP", "port": 8083}


def test_a_network_policy_finds_workers_by_the_labels_of_their_own_operator() -> None:
    platform = {"type": "event-streams", "version": "12.0.0", "license": {"accept": True}}
    listener = {"name": "tls", "bootstrapServers": "es:9093", "certificates": ["c"]}
    engine, _ = made(platform=platform, engine=Engine(status={"kafkaListeners": [listener]}))
    (policy,) = engine.all("v1:NetworkPolicy").values()
    assert policy["spec"]["podSelector"]["matchLabels"] == {
        "eventstreams.ibm.com/cluster": "mm2",
        "eventstreams.ibm.com/kind": "KafkaMirrorMaker2",
    }


def test_without_a_network_policy_of_the_operator_there_is_none_to_add_to() -> None:
    """A policy that stands alone would shut out all others, such as whoever scrapes the workers."""
    engine, _ = made(networkPolicy=False)
    assert not engine.all("v1:NetworkPolicy")


def test_a_job_may_read_the_status_of_its_mirror_and_nothing_else() -> None:
    engine, _ = made(namespace="verification")
    (role,), (binding,) = engine.all("v1:Role").items(), engine.all("v1:RoleBinding").items()
    assert role[0] == binding[0] == ("stg", "mm2-verify-status")
    assert role[1]["rules"] == [
        {
            "apiGroups": ["kafka.strimzi.io"],
            "resources": ["kafkamirrormaker2s"],
            "resourceNames": ["mm2"],
            "verbs": ["get"],
        }
    ]
    account = {"kind": "ServiceAccount", "name": "mm2-verify", "namespace": "verification"}
    assert binding[1]["subjects"] == [account]
    assert binding[1]["roleRef"]["name"] == "mm2-verify-status"
    assert one(engine, "v1:Job")["spec"]["template"]["spec"]["serviceAccountName"] == "mm2-verify"


def test_a_driver_may_besides_handle_its_executors_in_its_namespace() -> None:
    engine, _ = made("spark-application", namespace="verification")
    assert engine.all("v1:Role").keys() == {("stg", "mm2-verify-status"), ("verification", "mm2-verify-driver")}
    rules = engine.all("v1:Role")["verification", "mm2-verify-driver"]["rules"]
    assert {word for rule in rules for word in rule["resources"]} == {"pods", "configmaps", "services"}
    assert all("*" not in rule["verbs"] and rule["apiGroups"] == [""] for rule in rules)
    assert engine.all("v1:RoleBinding").keys() == engine.all("v1:Role").keys()
    assert one(engine, SPARK)["spec"]["driver"]["serviceAccount"] == "mm2-verify"


def test_an_own_service_account_is_used_and_none_is_made() -> None:
    engine, _ = made(serviceAccount="verifier")
    assert not any(engine.all(kind) for kind in ("v1:ServiceAccount", "v1:Role", "v1:RoleBinding"))
    assert one(engine, "v1:Job")["spec"]["template"]["spec"]["serviceAccountName"] == "verifier"


def test_open_shift_is_asked_for_the_images_user() -> None:
    engine, _ = made(platform={"type": "strimzi", "version": "1.2.0", "distribution": "openshift"})
    binding = engine.all("v1:RoleBinding")["stg", "mm2-verify-nonroot"]
    assert binding["roleRef"]["name"] == "system:openshift:scc:nonroot-v2"


def test_a_job_tries_once_and_its_pod_and_then_up_wait_longer_than_the_job_takes() -> None:
    engine, _ = made(ttlSecondsAfterFinished=600)
    job = one(engine, "v1:Job")
    spec = job["spec"]
    assert (spec["backoffLimit"], spec["ttlSecondsAfterFinished"]) == (0, 600)
    request = json.loads(engine.all("v1:ConfigMap")[NAME]["data"]["request.json"])
    assert (request["limits"]["deadline_seconds"], spec["activeDeadlineSeconds"]) == (900, 1200)
    assert job["metadata"]["annotations"] == {"pulumi.com/replaceUnready": "true"}
    assert engine.asked("mm2-verification-pods-run").customTimeouts.create == "1260s"


def test_up_waits_for_a_spark_application_to_complete() -> None:
    engine, _ = made("spark-application")
    annotations = one(engine, SPARK)["metadata"]["annotations"]
    assert json.loads(annotations["pulumi.com/waitFor"]) == ["jsonpath={.status.applicationState.state}=COMPLETED"]
    assert annotations["pulumi.com/timeoutSeconds"] == "1260"


def test_the_container_may_change_nothing_but_its_volumes() -> None:
    engine, _ = made()
    pod = one(engine, "v1:Job")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container(engine)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = [each["mountPath"] for each in container(engine)["volumeMounts"] if not each.get("readOnly")]
    assert writable == ["/reports", "/tmp"]  # noqa: S108 - of the pod


def test_kubernetes_and_java_get_the_same_sizes() -> None:
    engine, _ = made(driver={"cores": 4, "memory": "1500m", "memoryOverhead": "1g", "coreLimit": "6"})
    variables = {each["name"]: each.get("value") for each in container(engine)["env"]}
    assert (variables["RT_INVENTORY_SPARK_MEMORY"], variables["RT_INVENTORY_SPARK_CORES"]) == ("1500m", "4")
    assert container(engine)["resources"] == {
        "requests": {"cpu": "4", "memory": "2524Mi"},
        "limits": {"cpu": "6", "memory": "2524Mi"},
    }


def test_secrets_reach_the_driver_by_its_environment_only() -> None:
    engine, _ = made("spark-application", envFrom=["s3"])
    spec = one(engine, SPARK)["spec"]
    assert spec["driver"]["envFrom"] == [{"secretRef": {"name": "mm2-verify"}}, {"secretRef": {"name": "s3"}}]
    assert "envFrom" not in spec["executor"]
    assert spec["sparkConf"]["spark.network.crypto.enabled"] == "true"
    secrets = revealed(engine.all("v1:Secret")[BY_SPARK]["stringData"]).values()
    assert not any(value in json.dumps(spec) for value in secrets)


def test_each_run_has_a_folder_of_its_own_on_a_claim() -> None:
    engine, _ = made(reportClaim="reports")
    volumes = {each["name"]: each for each in one(engine, "v1:Job")["spec"]["template"]["spec"]["volumes"]}
    assert volumes["reports"]["persistentVolumeClaim"] == {"claimName": "reports"}
    assert container(engine)["args"][-4:] == ["--report-dir", "/reports/$(POD_NAME)", "--index", "/reports"]


def test_without_a_claim_there_is_no_index_for_it_would_go_with_the_pod() -> None:
    engine, _ = made()
    assert "--index" not in container(engine)["args"]


def test_the_same_run_keeps_its_name_and_a_change_makes_another() -> None:
    first = made()[1]["run"]
    assert made()[1]["run"] == first
    others = [
        made(image=IMAGE.replace("1.4.0", "1.5.0"))[1]["run"],
        made(driver={"memory": "3g"})[1]["run"],
        made("spark-application")[1]["run"],
        made(when="always")[1]["run"],
        made(when="always")[1]["run"],
    ]
    assert len({first, *others}) == 6
    assert all(name.startswith("mm2-verify-") and len(name) == len("mm2-verify-") + 10 for name in [first, *others])


def test_a_schedule_verifies_again_without_overlap() -> None:
    engine, outcome = made(schedule={**SCHEDULE, "startingDeadlineSeconds": 300, "suspend": True})
    spec = engine.all("v1:CronJob")[NAME]["spec"]
    assert (spec["schedule"], spec["timeZone"], spec["concurrencyPolicy"]) == ("0 * * * *", "Europe/Paris", "Forbid")
    assert (spec["startingDeadlineSeconds"], spec["suspend"]) == (300, True)
    assert spec["jobTemplate"]["spec"] == one(engine, "v1:Job")["spec"]
    assert (outcome["schedule"], outcome["scheduledBy"]) == ("0 * * * *", "mm2-verify")


def test_a_spark_application_has_a_schedule_of_its_own_kind() -> None:
    engine, _ = made("spark-application", schedule=SCHEDULE)
    spec = engine.all(SCHEDULED)[BY_SPARK]["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["template"] == one(engine, SPARK)["spec"]
    assert not engine.all("v1:CronJob")


def test_a_schedule_without_up_verifies_by_the_schedule_alone() -> None:
    engine, outcome = made(when="never", schedule=SCHEDULE)
    assert not engine.all("v1:Job")
    assert NAME in engine.all("v1:CronJob")
    assert "run" not in outcome


def test_neither_up_nor_schedule_makes_nothing() -> None:
    engine, outcome = made(when="never")
    assert not any(engine.all(kind) for kind in ("v1:Job", "v1:CronJob", "v1:ConfigMap", "v1:ServiceAccount"))
    assert outcome == {"how": "job", "namespace": "stg"}


def test_pods_may_have_a_namespace_of_their_own_that_the_stack_makes() -> None:
    engine, outcome = made(namespace="verification")
    assert ("", "verification") in engine.all("v1:Namespace")
    assert ("verification", outcome["run"]) in engine.all("v1:Job")
    assert ("verification", "mm2-verify") in engine.all("v1:Secret")


def test_each_direction_has_a_run_of_its_own() -> None:
    engine = Engine()
    both = mirror(reverse={"topics": ["orders"]})
    up(engine, target(mirrors=[both], verification={"run": {"how": "job", "image": IMAGE}}))
    names = {name.rsplit("-", 1)[0] for _, name in engine.all("v1:Job")}
    assert names == {"mm2-verify", "mm2-reverse-verify"}
