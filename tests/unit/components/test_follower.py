"""The follower of a mirror: when it has a pod, what the pod gets, as whom it logs in, and who reaches it."""

import json
from functools import cache
from typing import Any

import pytest

from contract.verification_request import OffsetSyncs
from ops.recovery import mirror_context
from settings.mirror_parts import FOLLOWED

from ...support.pulumi_engine import Engine, is_secret, mirror, revealed, target, up

IMAGE = "registry.example.com/kafka/follower:1.4.0"
NAME = ("stg", "mm2-follower")
LOCKED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


def made(exact: Any = None, stack: Any = None, **settings: Any) -> Engine:
    engine = Engine()
    followed = mirror(exactOffsets={"image": IMAGE, **(exact or {})}, **settings)
    up(engine, target(verification={"when": "never"}, mirrors=[followed], **(stack or {})))
    return engine


@cache
def default() -> Engine:
    """What is made by default, for tests that only read it."""
    return made()


def spec(engine: Engine) -> dict[str, Any]:
    found: dict[str, Any] = engine.all("v1:Deployment")[NAME]["spec"]
    return found


def pod(engine: Engine) -> dict[str, Any]:
    found: dict[str, Any] = spec(engine)["template"]["spec"]
    return found


def container(engine: Engine) -> dict[str, Any]:
    (found,) = pod(engine)["containers"]
    return dict(found)


def test_without_the_setting_there_is_none() -> None:
    engine = Engine()
    up(engine, target(verification={"when": "never"}, mirrors=[mirror()]))
    assert not engine.all("v1:Deployment")


def test_one_pod_follows_and_never_two() -> None:
    engine = default()
    assert (spec(engine)["replicas"], spec(engine)["strategy"]) == (1, {"type": "Recreate"})
    assert spec(engine)["selector"]["matchLabels"].items() <= spec(engine)["template"]["metadata"]["labels"].items()
    assert container(engine)["image"] == IMAGE
    assert container(engine)["args"] == [
        *("--stack", "stg", "--mirror", "mm2", "--outputs", "/etc/follower/outputs.json"),
        *("--listen", "0.0.0.0:9411"),
    ]


def test_the_pod_learns_the_mirror_from_its_files_and_variables_alone() -> None:
    engine = made(exactlyOnce=True)
    text = engine.all("v1:ConfigMap")[NAME]["data"]["outputs.json"]
    values = engine.all("v1:Secret")[NAME]["stringData"]
    assert is_secret(values)
    assert set(revealed(values)) == {"SOURCE_PASSWORD", "SOURCE_CA", "TARGET_PASSWORD", "TARGET_CA"}
    assert not any(value in text + json.dumps(spec(engine)) for value in revealed(values).values())
    assert container(engine)["envFrom"] == [{"secretRef": {"name": "mm2-follower"}}]
    known = mirror_context.of_outputs("stg", json.loads(text), "mm2", revealed(values))
    assert (known.state, known.active, known.outputs.exactly_once) == ("running", "source", True)
    mirror = known.request.mirror
    assert (mirror.checkpoints_name, mirror.offset_syncs_topic) == (
        "es-src.checkpoints.internal",
        OffsetSyncs(name="mm2-offset-syncs.es-src.internal", location="target"),
    )
    assert (known.request.mirror.exact_offsets, known.request.mirror.sync_group_offsets) == (True, False)
    login = {key: known.request.target.client_config[key] for key in ("sasl.username", "sasl.password")}
    assert login == {"sasl.username": "writer", "sasl.password": "generated-password"}


def test_mirrormaker_sets_no_group_that_a_follower_sets() -> None:
    resource = default().one("v1:KafkaMirrorMaker2", "mm2")
    assert resource["metadata"]["annotations"].items() >= FOLLOWED.items(), "or the policy pack would miss it"
    flow = revealed(resource["spec"])["mirrors"][0]
    assert flow["checkpointConnector"]["config"]["sync.group.offsets.enabled"] is False
    assert flow["checkpointConnector"]["config"].get("emit.checkpoints.enabled", True) is True


@pytest.mark.parametrize(
    ("settings", "pods"),
    [
        ({}, 1),
        ({"state": "stopped"}, 0),
        ({"state": "paused"}, 0),
        ({"active": "target", "state": "stopped"}, 0),
        ({"active": "target", "state": "running", "failback": "settling"}, 0),
        ({"active": "target", "state": "stopped", "failback": "prepared"}, 0),
    ],
)
def test_it_has_a_pod_while_the_mirror_copies_from_an_active_source(settings: dict[str, Any], pods: int) -> None:
    engine = made(**settings)
    assert {name for _, name in engine.all("v1:Deployment")} == {"mm2-follower"}
    assert spec(engine)["replicas"] == pods
    template = spec(default())["template"]
    assert spec(engine)["template"] == template, "a switch changes the number of pods and nothing else"


def test_both_directions_have_one() -> None:
    both = made(naming="prefixed", reverse={"topics": ["orders"]})
    assert {name for _, name in both.all("v1:Deployment")} == {"mm2-follower", "mm2-reverse-follower"}


def test_it_has_no_account_and_may_change_nothing_but_its_volume() -> None:
    engine = default()
    assert not engine.all("v1:ServiceAccount")
    assert not engine.all("v1:Role")
    assert pod(engine)["automountServiceAccountToken"] is False
    assert pod(engine)["securityContext"]["runAsNonRoot"] is True
    assert pod(engine)["securityContext"]["runAsUser"] == 10002
    assert container(engine)["securityContext"] == LOCKED
    writable = [each["mountPath"] for each in container(engine)["volumeMounts"] if not each.get("readOnly")]
    assert writable == ["/tmp"]  # noqa: S108 - of the pod
    open_shift = {"platform": {"type": "strimzi", "version": "1.2.0", "distribution": "openshift"}}
    assert "runAsUser" not in pod(made(stack=open_shift))["securityContext"]


def test_its_user_on_the_target_may_set_groups_and_write_the_followers_topic() -> None:
    rights = {"users": [{"name": "writer", "aclSets": [{"set": "mirror-target", "mirror": "mm2"}]}]}
    acls = made(stack=rights).one("v1:KafkaUser", "writer")["spec"]["authorization"]["acls"]
    of = {one["resource"]["name"]: set(one["operations"]) for one in acls if one["resource"].get("name")}
    assert of["mm2-follow.es-src.internal"] == {"Create", "Read", "Write", "Describe", "DescribeConfigs"}
    assert of["*"] >= {"Read", "Describe"}


def test_sizes_and_secrets_of_the_image_are_those_of_the_settings() -> None:
    assert container(default())["resources"] == {
        "requests": {"cpu": "200m", "memory": "256Mi"},
        "limits": {"memory": "512Mi"},
    }
    sized = made({"resources": {"requests": {"cpu": "1"}}, "imagePullSecrets": ["pull"]})
    assert container(sized)["resources"] == {"requests": {"cpu": "1"}}
    assert pod(sized)["imagePullSecrets"] == [{"name": "pull"}]


def test_only_its_metrics_are_reached_and_it_is_ready_while_rounds_succeed() -> None:
    engine = default()
    policy = engine.all("v1:NetworkPolicy")[NAME]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= spec(engine)["template"]["metadata"]["labels"].items()
    assert policy["ingress"] == [{"ports": [{"protocol": "TCP", "port": 9411}]}]
    assert container(engine)["readinessProbe"]["httpGet"] == {"path": "/ready", "port": 9411}
    assert container(engine)["livenessProbe"]["httpGet"] == {"path": "/metrics", "port": 9411}


def test_a_pod_monitor_finds_it_and_keeps_its_labels() -> None:
    cluster = {"name": "kafka-stg", "namespace": "stg", "protect": False}
    engine = made(stack={"cluster": cluster, "monitoring": {"operator": True}}, metrics={})
    monitor = engine.all("v1:PodMonitor")["stg", "kafka-stg-followers"]["spec"]
    labels = spec(engine)["template"]["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    (named,) = monitor["selector"]["matchExpressions"]
    assert labels[named["key"]] in named["values"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True
    assert [endpoint["port"]] == [port["name"] for port in container(engine)["ports"]]


def test_another_mirror_or_password_makes_another_pod_and_the_same_ones_none() -> None:
    def annotations(**settings: Any) -> Any:
        return spec(made(**settings))["template"]["metadata"]["annotations"]

    assert annotations() == annotations()
    assert annotations() != annotations(topics=["orders"])
    assert annotations() == annotations(metrics={}, syncTopicAcls=True), "what it does not use restarts nothing"
    rotated = {"users": [{"name": "writer", "passwordGeneration": 2}]}
    assert annotations() != annotations(stack=rotated)
