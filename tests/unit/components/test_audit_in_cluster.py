"""The audit in the cluster: one pod for each mirror, what it may do, who reaches it, and when it is another one."""

import json
from typing import Any

import pytest

from spark.audit.command import main

from ...support.pulumi_engine import Engine, is_secret, mirror, revealed, target, up

IMAGE = "registry.example.com/kafka/verification:1.4.0"
NAME = ("stg", "mm2-audit")
MONITORED: dict[str, Any] = {
    "cluster": {"name": "kafka-stg", "namespace": "stg", "protect": False},
    "mirrors": [mirror(metrics={})],
    "monitoring": {"operator": True},
}


def made(audit: Any = None, engine: Engine | None = None, verification: Any = None, **settings: Any) -> Engine:
    engine = engine or Engine()
    given = {"when": "never", "audit": {"image": IMAGE, **(audit or {})}, **(verification or {})}
    up(engine, target(verification=given, **settings))
    return engine


def pod(engine: Engine) -> dict[str, Any]:
    found: dict[str, Any] = engine.all("v1:Deployment")[NAME]["spec"]["template"]["spec"]
    return found


def container(engine: Engine) -> dict[str, Any]:
    (found,) = pod(engine)["containers"]
    return dict(found)


def test_without_the_setting_there_is_none() -> None:
    engine = Engine()
    up(engine, target(verification={"when": "never"}, **MONITORED))
    assert not engine.all("v1:Deployment")
    assert not engine.all("v1:PodMonitor").get(("stg", "kafka-stg-audits"))


def test_one_pod_audits_with_the_times_that_are_set() -> None:
    engine = made({"everySeconds": 30, "bucketSeconds": 300, "withinSeconds": 120})
    spec = engine.all("v1:Deployment")[NAME]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert container(engine)["image"] == IMAGE
    assert container(engine)["args"] == [
        *("audit", "--request", "/etc/verification/request.json"),
        *("--state", "/audit/mm2-audit/state", "--report", "/audit/mm2-audit/audit.json"),
        *("--metrics", "0.0.0.0:9404", "--bucket", "300", "--within", "120", "--every", "30"),
    ]


def test_the_command_takes_these_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    command, *arguments = container(made())["args"]
    assert command == "audit"
    assert main(["--request", "/nowhere/request.json", *arguments[2:]]) == 2
    assert "/nowhere/request.json" in capsys.readouterr().err


def test_the_request_names_the_addresses_of_the_cluster_and_its_secrets_lie_in_a_secret() -> None:
    engine = made()
    request = engine.all("v1:ConfigMap")[NAME]["data"]["request.json"]
    assert json.loads(request)["mirror"]["name"] == "mm2"
    values = engine.all("v1:Secret")[NAME]["stringData"]
    assert is_secret(values)
    assert set(revealed(values)) == {"SOURCE_PASSWORD", "SOURCE_CA", "TARGET_PASSWORD", "TARGET_CA"}
    deployed = json.dumps(engine.all("v1:Deployment")[NAME])
    assert not any(value in request + deployed for value in revealed(values).values())
    assert container(engine)["envFrom"] == [{"secretRef": {"name": "mm2-audit"}}]


def test_it_has_no_rights_and_may_change_nothing_but_its_volumes() -> None:
    engine = made()
    assert not engine.all("v1:Role")
    assert not engine.all("v1:RoleBinding")
    assert engine.all("v1:ServiceAccount")[NAME]["automountServiceAccountToken"] is False
    found = pod(engine)
    assert (found["serviceAccountName"], found["automountServiceAccountToken"]) == ("mm2-audit", False)
    assert found["securityContext"]["runAsNonRoot"] is True
    assert container(engine)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = [each["mountPath"] for each in container(engine)["volumeMounts"] if not each.get("readOnly")]
    assert writable == ["/audit", "/tmp"]  # noqa: S108 - of the pod


def test_open_shift_is_asked_for_the_images_user_and_an_own_account_is_used() -> None:
    open_shift = {"type": "strimzi", "version": "1.2.0", "distribution": "openshift"}
    binding = made(platform=open_shift).all("v1:RoleBinding")["stg", "mm2-audit-nonroot"]
    assert binding["roleRef"]["name"] == "system:openshift:scc:nonroot-v2"
    engine = made({"serviceAccount": "auditor"}, platform=open_shift)
    assert not engine.all("v1:ServiceAccount")
    assert not engine.all("v1:RoleBinding")
    assert pod(engine)["serviceAccountName"] == "auditor"


def test_a_claim_keeps_what_was_counted_and_the_sizes_are_those_of_the_settings() -> None:
    volumes = {each["name"]: each for each in pod(made())["volumes"]}
    assert volumes["state"] == {"name": "state", "emptyDir": {}}
    engine = made({"stateClaim": "audits", "imagePullSecrets": ["pull"], "driver": {"cores": 1, "memory": "1g"}})
    volumes = {each["name"]: each for each in pod(engine)["volumes"]}
    assert volumes["state"]["persistentVolumeClaim"] == {"claimName": "audits"}
    assert pod(engine)["imagePullSecrets"] == [{"name": "pull"}]
    assert container(made())["resources"]["requests"] == {"cpu": "500m", "memory": "3072Mi"}
    assert container(engine)["resources"]["requests"] == {"cpu": "1", "memory": "2048Mi"}


def test_only_its_metrics_are_reached_and_its_probe_asks_for_them() -> None:
    engine = made()
    policy = engine.all("v1:NetworkPolicy")[NAME]["spec"]
    labels = engine.all("v1:Deployment")[NAME]["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert policy["ingress"] == [{"ports": [{"protocol": "TCP", "port": 9404}]}]
    assert container(engine)["readinessProbe"]["httpGet"] == {"path": "/metrics", "port": 9404}


def test_a_pod_monitor_finds_it_and_keeps_its_labels() -> None:
    engine = made(**MONITORED)
    monitor = engine.all("v1:PodMonitor")["stg", "kafka-stg-audits"]["spec"]
    template = engine.all("v1:Deployment")[NAME]["spec"]["template"]
    labels = template["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    (named,) = monitor["selector"]["matchExpressions"]
    assert labels[named["key"]] in named["values"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True
    assert [endpoint["port"]] == [port["name"] for port in container(engine)["ports"]]


def test_another_request_or_password_makes_another_pod_and_the_same_ones_none() -> None:
    def annotations(**settings: Any) -> Any:
        return made(**settings).all("v1:Deployment")[NAME]["spec"]["template"]["metadata"]["annotations"]

    assert annotations() == annotations()
    assert annotations() != annotations(mirrors=[mirror(topics=["orders"])])
    assert annotations() == annotations(verification={"deadlineSeconds": 900})


def test_each_direction_has_one_and_a_mirror_at_rest_none() -> None:
    both = made(mirrors=[mirror(reverse={"topics": ["orders"]})])
    assert {name for _, name in both.all("v1:Deployment")} == {"mm2-audit", "mm2-reverse-audit"}
    assert not made(mirrors=[mirror(state="stopped")]).all("v1:Deployment")


def test_it_takes_image_and_namespace_of_a_verification_in_pods() -> None:
    run = {"how": "job", "image": IMAGE.replace("1.4.0", "1.5.0"), "namespace": "verification"}
    engine = Engine()
    up(engine, target(verification={"run": run, "audit": {}}))
    found = engine.all("v1:Deployment")["verification", "mm2-audit"]["spec"]["template"]["spec"]
    assert found["containers"][0]["image"].endswith(":1.5.0")
    assert ("", "verification") in engine.all("v1:Namespace")
