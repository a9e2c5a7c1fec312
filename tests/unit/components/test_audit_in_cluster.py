"""The audit in the cluster: its pods for each mirror, what they may do, who reaches them, and when they are others."""

import json
from functools import cache
from typing import Any

import pytest

from spark.audit.command import main

from ...support.pulumi_engine import Engine, is_secret, mirror, revealed, target, up

IMAGE = "registry.example.com/kafka/verification:1.4.0"
MONITORED: dict[str, Any] = {
    "cluster": {"name": "kafka-stg", "namespace": "stg", "protect": False},
    "mirrors": [mirror(metrics={})],
    "monitoring": {"operator": True},
}
OPEN_SHIFT = {"type": "strimzi", "version": "1.2.0", "distribution": "openshift"}
APPLICATION = "v1beta2:SparkApplication"
NAME, RESOURCE = "mm2-audit", "mm2-verification-audit-application"


class Pods:
    """What a stack makes for the audit of its mirrors, by a Deployment or as Spark has it, read in the same words."""

    def __init__(self, by_spark: bool) -> None:
        self.by_spark = by_spark
        self.kind = APPLICATION if by_spark else "v1:Deployment"
        self.place = ("stg-verification" if by_spark else "stg", NAME)
        self.run = {"how": "spark-application", "image": IMAGE} if by_spark else {}
        self.engine = Engine()

    def make(self, audit: Any = None, verification: Any = None, **settings: Any) -> "Pods":
        run = {"run": self.run} if self.run else {}
        given = {"when": "never", **run, "audit": {"image": IMAGE, **(audit or {})}, **(verification or {})}
        up(self.engine, target(verification=given, **settings))
        return self

    def all(self, kind: str) -> dict[tuple[str, str], dict[str, Any]]:
        return self.engine.all(kind)

    def one(self, kind: str, suffix: str = "") -> dict[str, Any]:
        namespace, name = self.place
        return self.engine.all(kind)[namespace, name + suffix]

    @property
    def spec(self) -> dict[str, Any]:
        found: dict[str, Any] = self.one(self.kind)["spec"]
        return found

    @property
    def pod(self) -> dict[str, Any]:
        """The pod with the metrics as a Deployment has it; the spec of the application, which has the same keys."""
        found: dict[str, Any] = self.spec if self.by_spark else self.spec["template"]["spec"]
        return found

    @property
    def container(self) -> dict[str, Any]:
        found: dict[str, Any] = self.spec["driver"] if self.by_spark else self.pod["containers"][0]
        return found

    @property
    def metadata(self) -> dict[str, Any]:
        """Labels and annotations of the pod with the metrics."""
        found: dict[str, Any] = self.container if self.by_spark else self.spec["template"]["metadata"]
        return found

    @property
    def arguments(self) -> list[str]:
        found: list[str] = self.spec["arguments"] if self.by_spark else self.container["args"]
        return found

    @property
    def account(self) -> str:
        return str(self.container["serviceAccount"] if self.by_spark else self.pod["serviceAccountName"])

    @property
    def volumes(self) -> dict[str, Any]:
        return {each["name"]: each for each in self.pod["volumes"]}


@cache
def default(by_spark: bool) -> Pods:
    """What is made by default, for tests that only read it."""
    return Pods(by_spark).make()


@pytest.fixture(params=[False, True], ids=["deployment", "spark-application"])
def pods(request: pytest.FixtureRequest) -> Pods:
    return Pods(by_spark=request.param)


@pytest.fixture
def application() -> Pods:
    return Pods(by_spark=True)


def test_without_the_setting_there_is_none() -> None:
    engine = Engine()
    up(engine, target(verification={"when": "never"}, **MONITORED))
    assert not engine.all("v1:Deployment")
    assert not engine.all("v1:PodMonitor").get(("stg", "kafka-stg-audits"))


def test_one_pod_audits_with_the_times_that_are_set(pods: Pods) -> None:
    pods.make({"everySeconds": 30, "bucketSeconds": 300, "withinSeconds": 120})
    assert pods.all(pods.kind).keys() == {pods.place}
    assert (pods.spec if pods.by_spark else pods.container)["image"] == IMAGE
    assert pods.arguments == [
        *("audit", "--request", "/etc/verification/request.json"),
        *("--state", "/audit/mm2-audit/state", "--report", "/audit/mm2-audit/audit.json"),
        *("--metrics", "0.0.0.0:9404", "--bucket", "300", "--within", "120", "--every", "30"),
    ]


def test_a_deployment_ends_its_pod_before_it_starts_another() -> None:
    spec = default(by_spark=False).spec
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_the_command_takes_these_arguments(pods: Pods, capsys: pytest.CaptureFixture[str]) -> None:
    command, *arguments = default(pods.by_spark).arguments
    assert command == "audit"
    assert main(["--request", "/nowhere/request.json", *arguments[2:]]) == 2
    assert "/nowhere/request.json" in capsys.readouterr().err


def test_the_request_names_the_addresses_of_the_cluster_and_its_secrets_lie_in_a_secret(pods: Pods) -> None:
    pods = default(pods.by_spark)
    request = pods.one("v1:ConfigMap")["data"]["request.json"]
    assert json.loads(request)["mirror"]["name"] == "mm2"
    values = pods.one("v1:Secret")["stringData"]
    assert is_secret(values)
    assert set(revealed(values)) == {"SOURCE_PASSWORD", "SOURCE_CA", "TARGET_PASSWORD", "TARGET_CA"}
    made = json.dumps(pods.one(pods.kind))
    assert not any(value in request + made for value in revealed(values).values())
    assert pods.container["envFrom"] == [{"secretRef": {"name": NAME}}]


def test_it_may_change_nothing_but_its_volumes(pods: Pods) -> None:
    pods = default(pods.by_spark)
    assert pods.account == NAME
    contexts = (pods.container if pods.by_spark else pods.pod)[
        "podSecurityContext" if pods.by_spark else "securityContext"
    ]
    assert contexts["runAsNonRoot"] is True
    assert pods.container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = [each["mountPath"] for each in pods.container["volumeMounts"] if not each.get("readOnly")]
    assert writable == ["/audit", "/tmp"]  # noqa: S108 - of the pod


def test_a_deployment_has_no_rights() -> None:
    pods = default(by_spark=False)
    assert not pods.all("v1:Role")
    assert not pods.all("v1:RoleBinding")
    assert pods.one("v1:ServiceAccount")["automountServiceAccountToken"] is False
    assert pods.pod["automountServiceAccountToken"] is False


def test_a_driver_may_handle_its_executors_in_its_namespace_and_nothing_else() -> None:
    application = default(by_spark=True)
    assert application.all("v1:Role").keys() == {("stg-verification", "mm2-audit-driver")}
    rules = application.one("v1:Role", "-driver")["rules"]
    assert {word for rule in rules for word in rule["resources"]} == {"pods", "configmaps", "services"}
    binding = application.one("v1:RoleBinding", "-driver")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": NAME, "namespace": "stg-verification"}]
    assert binding["roleRef"]["name"] == "mm2-audit-driver"


def test_open_shift_is_asked_for_the_images_user_and_an_own_account_is_used(pods: Pods) -> None:
    binding = pods.make(platform=OPEN_SHIFT).one("v1:RoleBinding", "-nonroot")
    assert binding["roleRef"]["name"] == "system:openshift:scc:nonroot-v2"
    other = Pods(pods.by_spark).make({"serviceAccount": "auditor"}, platform=OPEN_SHIFT)
    assert not any(other.all(kind) for kind in ("v1:ServiceAccount", "v1:Role", "v1:RoleBinding"))
    assert other.account == "auditor"


def test_a_claim_keeps_what_was_counted(pods: Pods) -> None:
    assert default(pods.by_spark).volumes["state"] == {"name": "state", "emptyDir": {}}
    other = Pods(pods.by_spark).make({"stateClaim": "audits", "imagePullSecrets": ["pull"]})
    assert other.volumes["state"]["persistentVolumeClaim"] == {"claimName": "audits"}
    assert other.pod["imagePullSecrets"] == (["pull"] if pods.by_spark else [{"name": "pull"}])


def test_the_sizes_are_those_of_the_settings() -> None:
    container = default(by_spark=False).container
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "3072Mi"}
    container = Pods(by_spark=False).make({"driver": {"cores": 1, "memory": "1g"}}).container
    assert container["resources"]["requests"] == {"cpu": "1", "memory": "2048Mi"}


@pytest.mark.parametrize("part", ["driver", "executor"])
def test_the_sizes_of_an_application_are_those_of_the_settings(part: str) -> None:
    def size(audit: Any = None) -> list[Any]:
        made = Pods(by_spark=True).make(audit).spec[part]
        return [made.get(key) for key in ("coreRequest", "cores", "memory", "memoryOverhead")]

    assert size() == ["500m", 2, *(["2g", "1g"] if part == "driver" else ["1g", "512m"])]
    assert size({part: {"cores": 1, "memory": "3g"}}) == [None, 1, "3g", "1g"]


def test_only_its_metrics_are_reached(pods: Pods) -> None:
    pods = default(pods.by_spark)
    policy = pods.one("v1:NetworkPolicy")["spec"]
    assert selects(policy["podSelector"], pods.metadata["labels"])
    assert policy["ingress"][0] == {"ports": [{"protocol": "TCP", "port": 9404}]}
    assert len(policy["ingress"]) == (2 if pods.by_spark else 1)
    assert policy["policyTypes"] == ["Ingress"]


def test_a_probe_asks_for_the_metrics_of_a_deployment() -> None:
    found = default(by_spark=False).container
    assert found["readinessProbe"]["httpGet"] == {"path": "/metrics", "port": 9404}


def test_driver_and_executors_alone_reach_the_ports_of_spark(application: Pods) -> None:
    spec = application.make(mirrors=[mirror(), mirror(name="other")]).spec
    policy = application.one("v1:NetworkPolicy")["spec"]
    own = (spec["driver"]["labels"], spec["executor"]["labels"])
    others = default(by_spark=False).metadata["labels"] | {"app.kubernetes.io/instance": "other"}
    (peer,) = policy["ingress"][1]["from"]
    assert peer.keys() == {"podSelector"}, "of this namespace"
    for selector in (policy["podSelector"], peer["podSelector"]):
        assert [selects(selector, labels) for labels in (*own, others)] == [True, True, False]
    ports = {f"{each['port']:.0f}" for each in policy["ingress"][1]["ports"]}
    names = ("spark.driver.port", "spark.driver.blockManager.port", "spark.blockManager.port")
    assert {spec["sparkConf"][name] for name in names} == ports


def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    named = selector.get("matchExpressions", [])
    assert all(each["operator"] == "In" for each in named)
    return selector["matchLabels"].items() <= labels.items() and all(
        labels.get(each["key"]) in each["values"] for each in named
    )


def test_executors_get_no_secret_and_not_the_state(application: Pods) -> None:
    spec = application.make({"stateClaim": "audits"}).spec
    assert not {"env", "envFrom", "secrets", "ports", "annotations"} & spec["executor"].keys()
    assert [each["name"] for each in spec["executor"]["volumeMounts"]] == ["work"]
    assert spec["executor"]["instances"] == 2
    conf = spec["sparkConf"]
    assert (conf["spark.authenticate"], conf["spark.network.crypto.enabled"]) == ("true", "true")


def test_a_pod_monitor_finds_it_and_keeps_its_labels(pods: Pods) -> None:
    pods.make(**MONITORED)
    monitor = pods.all("v1:PodMonitor")[pods.place[0], "kafka-stg-audits"]["spec"]
    assert selects(monitor["selector"], pods.metadata["labels"])
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True
    assert [endpoint["port"]] == [port["name"] for port in pods.container["ports"]]
    if pods.by_spark:
        assert not selects(monitor["selector"], pods.spec["executor"]["labels"])


def test_the_operator_gives_the_labels_of_an_application_to_all_its_pods_and_they_change_nothing() -> None:
    application = default(by_spark=True)
    given, spec = application.one(APPLICATION)["metadata"]["labels"], application.spec
    for part in ("driver", "executor"):
        assert given | spec[part]["labels"] == spec[part]["labels"]


def test_another_request_or_password_makes_another_pod_and_the_same_ones_none(pods: Pods) -> None:
    def annotations(**settings: Any) -> Any:
        return Pods(pods.by_spark).make(**settings).metadata["annotations"]

    assert annotations() == annotations()
    assert annotations() != annotations(mirrors=[mirror(topics=["orders"])])
    assert annotations() == annotations(verification={"deadlineSeconds": 900})


def test_a_driver_that_ends_is_started_again_for_ever() -> None:
    policy = default(by_spark=True).spec["restartPolicy"]
    assert policy["type"] == "Always"
    # Without them the operator's webhook fills them in, and the next `up` would find another spec.
    assert {"onFailureRetryInterval", "onSubmissionFailureRetryInterval"} <= policy.keys()


def test_up_waits_for_executors_of_the_application_that_it_made_and_of_no_other() -> None:
    application = default(by_spark=True)
    annotations = application.one(APPLICATION)["metadata"]["annotations"]
    assert json.loads(annotations["pulumi.com/waitFor"]) == [
        "jsonpath={.status.applicationState.state}=RUNNING",
        "jsonpath={.status.executorState}",
    ]
    assert annotations["pulumi.com/timeoutSeconds"] == "600"
    asked = application.engine.asked(RESOURCE)
    assert (list(asked.replaceOnChanges), asked.deleteBeforeReplace) == (["spec"], True)


def test_each_direction_has_one_and_a_mirror_at_rest_none(pods: Pods) -> None:
    pods.make(mirrors=[mirror(reverse={"topics": ["orders"]})])
    assert {name for _, name in pods.all(pods.kind)} == {NAME, "mm2-reverse-audit"}
    other = Pods(pods.by_spark).make(mirrors=[mirror(state="stopped")])
    assert not other.all(pods.kind)


def test_it_takes_image_and_namespace_of_a_verification_in_pods() -> None:
    run = {"how": "job", "image": IMAGE.replace("1.4.0", "1.5.0"), "namespace": "verification"}
    engine = Engine()
    up(engine, target(verification={"run": run, "audit": {}}))
    found = engine.all("v1:Deployment")["verification", NAME]["spec"]["template"]["spec"]
    assert found["containers"][0]["image"].endswith(":1.5.0")
    assert ("", "verification") in engine.all("v1:Namespace")


def test_an_application_has_its_own_image_and_the_sparks_version_of_the_run(application: Pods) -> None:
    application.run |= {"image": IMAGE.replace("1.4.0", "1.5.0"), "sparkVersion": "4.0.1"}
    spec = application.make().spec
    assert (spec["image"], spec["sparkVersion"]) == (IMAGE, "4.0.1")
