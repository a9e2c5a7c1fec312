"""The rule on container images."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.security.pinned_images import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror

NAME = "registry.example.com:5000/kafka"
DIGEST = "@sha256:" + "0f" * 32
POD = {"initContainers": [{"name": "wait", "image": f"{NAME}:1.2"}], "containers": [{"name": "app", "image": NAME}]}


def violation() -> list[kit.Sample]:
    return broken_mirror("mm-image", lambda mirror: mirror.spec.update(image="registry.example.com/mm:latest"))


def message(described: str, place: str, got: str = NAME, wanted: str = "a tag that does not move") -> str:
    return (
        f"{described}: {place} must have {wanted} (got {got}). "
        "Otherwise a restart can bring another version than the one that was tested."
    )


def parts(cluster: kit.Sample) -> Any:
    return cluster.spec["strimziOverrides"] if cluster.shape == kit.EVENT_STREAMS else cluster.spec


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("sample", [kit.cluster, kit.node_pool, kit.mirror], ids=lambda sample: sample.__name__)
def test_images_that_are_left_to_the_operator_pass(shape: str, sample: Any) -> None:
    assert kit.judge(POLICY, sample(shape)) == []


@pytest.mark.parametrize("image", [f"{NAME}:4.3.1", f"{NAME}{DIGEST}", f"{NAME}:latest{DIGEST}", "kafka:1", " ", ""])
def test_a_tag_and_a_digest_pass(image: str) -> None:
    mirror = kit.mirror(kit.V1)
    mirror.spec["image"] = image
    assert kit.judge(POLICY, mirror) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    "image",
    ["kafka", NAME, f"{NAME}:", f"{NAME}:latest", f"{NAME}:Main", f"{NAME}:latest-kafka-4.3.1", f"{NAME}:stable"],
)
def test_no_tag_and_one_that_moves_are_reported(shape: str, image: str) -> None:
    mirror = kit.mirror(shape)
    mirror.spec["image"] = image
    assert kit.judge(POLICY, mirror) == [message("KafkaMirrorMaker2 mm2", "spec.image", image)]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    "path",
    [
        "kafka.image",
        "kafka.brokerRackInitImage",
        "zookeeper.image",
        "entityOperator.topicOperator.image",
        "entityOperator.userOperator.image",
        "entityOperator.tlsSidecar.image",
        "cruiseControl.image",
        "kafkaExporter.image",
    ],
)
def test_every_image_of_a_cluster_is_judged(shape: str, path: str) -> None:
    cluster = kit.cluster(shape)
    *keys, last = path.split(".")
    part = parts(cluster)
    for key in keys:
        part = part.setdefault(key, {})
    part[last] = NAME
    kind, where = ("EventStreams", "spec.strimziOverrides") if shape == kit.EVENT_STREAMS else ("Kafka", "spec")
    assert kit.judge(POLICY, cluster) == [message(f"{kind} {kit.NAMESPACE}", f"{where}.{path}")]


def connect(**spec: object) -> kit.Sample:
    return kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", {"metadata": {"name": "sink"}, "spec": spec})


def test_plugins_volumes_and_builds_of_connect_are_judged() -> None:
    sample = connect(
        build={"output": {"type": "docker", "image": NAME}, "plugins": [{"name": "a", "artifacts": [{"type": "jar"}]}]},
        plugins=[{"name": "jdbc", "artifacts": [{"type": "image", "reference": NAME}]}],
        template={"pod": {"volumes": [{"name": "extra", "image": {"reference": NAME, "pullPolicy": "Always"}}]}},
    )
    assert kit.judge(POLICY, sample) == [
        message("KafkaConnect sink", "spec.build.output.image"),
        message("KafkaConnect sink", "spec.plugins[jdbc].artifacts[0].reference"),
        message("KafkaConnect sink", "spec.template.pod.volumes[extra].image.reference"),
    ]


@pytest.mark.parametrize(
    ("type_", "spec", "where"),
    [
        ("core/v1:Pod", POD, "spec"),
        ("apps/v1:Deployment", {"template": {"spec": POD}}, "spec.template.spec"),
        ("apps/v1:StatefulSet", {"template": {"spec": POD}}, "spec.template.spec"),
        ("batch/v1:Job", {"template": {"spec": POD}}, "spec.template.spec"),
        (
            "batch/v1:CronJob",
            {"jobTemplate": {"spec": {"template": {"spec": POD}}}},
            "spec.jobTemplate.spec.template.spec",
        ),
    ],
)
def test_containers_of_workloads_are_judged(type_: str, spec: kit.Spec, where: str) -> None:
    sample = kit.Sample(f"kubernetes:{type_}", {"metadata": {"name": "app"}, "spec": spec})
    described = f"{type_.partition(':')[2]} app"
    assert kit.judge(POLICY, sample) == [message(described, f"{where}.containers[app].image")]
    assert kit.judge(POLICY, sample, floatingTags=[r"1\..*"]) == [
        message(described, f"{where}.initContainers[wait].image", f"{NAME}:1.2"),
        message(described, f"{where}.containers[app].image"),
    ]


@pytest.mark.parametrize(
    ("kind", "where"), [("SparkApplication", "spec"), ("ScheduledSparkApplication", "spec.template")]
)
def test_images_of_spark_are_judged(kind: str, where: str) -> None:
    application = {"image": NAME, "driver": {"image": f"{NAME}:latest"}}
    spec = {"template": application} if where.endswith("template") else application
    sample = kit.Sample(f"kubernetes:sparkoperator.k8s.io/v1beta2:{kind}", {"metadata": {"name": "app"}, "spec": spec})
    assert kit.judge(POLICY, sample) == [
        message(f"{kind} app", f"{where}.image"),
        message(f"{kind} app", f"{where}.driver.image", f"{NAME}:latest"),
    ]


def test_catalogs_of_operators_are_judged() -> None:
    type_ = "kubernetes:operators.coreos.com/v1alpha1:CatalogSource"
    sample = kit.Sample(type_, {"metadata": {"name": "ours"}, "spec": {"sourceType": "grpc", "image": NAME}})
    assert kit.judge(POLICY, sample) == [message("CatalogSource ours", "spec.image")]


def test_configuration_and_labels_with_a_key_called_image_are_no_images() -> None:
    sample = connect(config={"image": "column"}, template={"pod": {"metadata": {"labels": {"image": "kafka"}}}})
    assert kit.judge(POLICY, sample) == []


def test_digests_can_be_demanded_but_not_of_what_a_build_pushes() -> None:
    sample = connect(image=f"{NAME}:4.3.1", build={"output": {"type": "docker", "image": f"{NAME}:2"}})
    expected = [message("KafkaConnect sink", "spec.image", f"{NAME}:4.3.1", "a digest")]
    assert kit.judge(POLICY, sample, digests=True) == expected
    assert kit.judge(POLICY, connect(image=f"{NAME}:4.3.1{DIGEST}"), digests=True) == []


def test_the_tags_that_move_can_be_configured() -> None:
    sample = connect(image=f"{NAME}:stable")
    assert kit.judge(POLICY, sample, floatingTags=["latest"]) == []
    assert kit.judge(POLICY, sample, floatingTags=["sta.*"]) == [
        message("KafkaConnect sink", "spec.image", f"{NAME}:stable")
    ]


def test_an_expression_that_cannot_be_read_is_reported() -> None:
    found = kit.judge(POLICY, connect(image=f"{NAME}:1"), floatingTags=["*"])
    assert [each.partition(" (got")[0] for each in found] == [
        "KafkaConnect sink: option floatingTags must hold regular expressions"
    ]


def test_another_type_is_ignored() -> None:
    sample = connect(image=NAME)
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:KafkaConnect", sample.props)) == []


def test_one_unknown_image_hides_no_other() -> None:
    sample = connect(image=UNKNOWN_STRING_VALUE, clientRackInitImage=NAME)
    assert kit.judge(POLICY, sample) == [message("KafkaConnect sink", "spec.clientRackInitImage")]
