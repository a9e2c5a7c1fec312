"""The custom resource definitions of Strimzi (v1), OLM and monitoring, as in their releases."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from . import crd_generator, java, maven, pins
from .cache import Entry
from .commands import Commands
from .place import GO_MODULE, Place
from .steps import Step

# File name and model class, as in Strimzi's own release.
STRIMZI_KINDS = {
    "040-Crd-kafka": "kafka.Kafka",
    "041-Crd-kafkaconnect": "connect.KafkaConnect",
    "042-Crd-strimzipodset": "podset.StrimziPodSet",
    "043-Crd-kafkatopic": "topic.KafkaTopic",
    "044-Crd-kafkauser": "user.KafkaUser",
    "045-Crd-kafkanodepool": "nodepool.KafkaNodePool",
    "046-Crd-kafkabridge": "bridge.KafkaBridge",
    "047-Crd-kafkaconnector": "connector.KafkaConnector",
    "048-Crd-kafkamirrormaker2": "mirrormaker2.KafkaMirrorMaker2",
    "049-Crd-kafkarebalance": "rebalance.KafkaRebalance",
}
_DESCRIPTION = re.compile(r" *description: *\S")
OLM_MODULE = "github.com/operator-framework/api"
# Module → its files of definitions that the product uses.
OLM_FILES = {OLM_MODULE: ("crds/*.yaml",)}
MONITORING_FILES = {
    "github.com/prometheus-operator/prometheus-operator": tuple(
        f"example/prometheus-operator-crd/monitoring.coreos.com_{plural}.yaml"
        for plural in ("alertmanagerconfigs", "podmonitors", "prometheusrules", "servicemonitors")
    ),
    "github.com/kedacore/keda/v2": ("config/crd/bases/keda.sh_scaledobjects.yaml",),
}


def strimzi(place: Place) -> Entry:
    """Strimzi's definitions, one YAML file a kind, serving v1."""
    return place.entry("strimzi-crds", f"{pins.STRIMZI}-v1")


def olm(place: Place) -> Entry:
    """OLM's definitions, one YAML file a kind."""
    return place.entry("olm-crds", pins.OLM_API)


def monitoring(place: Place) -> Entry:
    """The definitions of the Prometheus Operator and of KEDA that the product uses, a YAML file a kind, without texts.

    The texts are most of them, and the API server keeps several copies.
    """
    return place.entry("monitoring-crds", f"{pins.PROMETHEUS_OPERATOR}-{pins.KEDA}-bare")


def steps(place: Place) -> list[Step]:
    """Generate Strimzi's definitions, copy the others'."""
    return [
        Step(
            name="strimzi-crds",
            title=f"Strimzi {pins.STRIMZI} definitions",
            is_done=strimzi(place).is_complete,
            run=lambda commands: _generate(place, commands),
            needs=("strimzi-generator", "java", "venv"),
        ),
        Step(
            name="olm-crds",
            title=f"OLM {pins.OLM_API} definitions",
            is_done=olm(place).is_complete,
            run=lambda commands: _copy(olm(place), "olm", OLM_FILES, commands),
            tool="go",
        ),
        Step(
            name="monitoring-crds",
            title=f"Prometheus Operator {pins.PROMETHEUS_OPERATOR} and KEDA {pins.KEDA} definitions",
            is_done=monitoring(place).is_complete,
            run=lambda commands: _copy(monitoring(place), "monitoring", MONITORING_FILES, commands, bare=True),
            tool="go",
        ),
    ]


def generating_java(place: Place, commands: Commands) -> Path:
    """A `java` that runs the newest generator, fetched if the machine has none."""
    if runtime := java.generator_java(place):
        return runtime
    java.fetch(place, commands)
    return java.fetched_java(place)


def without_descriptions(text: str) -> str:
    """The YAML of a definition, as Kubernetes' generator writes it, without the texts in its schemas.

    A field that is called description has a schema below it and no text beside it.
    """
    kept: list[str] = []
    left_out: int | None = None  # the indentation of a text that goes on
    for line in text.splitlines(keepends=True):
        indentation = len(line) - len(line.lstrip(" "))
        if left_out is not None and (indentation > left_out or not line.strip()):
            continue
        left_out = indentation if _DESCRIPTION.match(line) else None
        if left_out is None:
            kept.append(line)
    return "".join(kept)


def _generate(place: Place, commands: Commands) -> None:
    runtime = generating_java(place, commands)
    with strimzi(place).build() as folder:
        files = {folder / f"{name}.yaml": model for name, model in STRIMZI_KINDS.items()}
        crd_generator.generate(commands, runtime, maven.class_path(maven.strimzi(place)), files, (crd_generator.V1,))


def _copy(
    entry: Entry, name: str, files: Mapping[str, tuple[str, ...]], commands: Commands, *, bare: bool = False
) -> None:
    """Copy files out of the Go modules that carry them; `name` is the folder of the go.mod that pins those."""
    with entry.build() as folder:
        module = shutil.copytree(GO_MODULE / name, folder / "module")
        for path, patterns in files.items():
            described = commands.output(["go", "mod", "download", "-json", path], cwd=module, env={"GOWORK": "off"})
            source = Path(json.loads(described)["Dir"])
            for file in sorted(file for pattern in patterns for file in source.glob(pattern)):
                text = file.read_text(encoding="utf-8")
                (folder / file.name).write_text(without_descriptions(text) if bare else text, encoding="utf-8")
        shutil.rmtree(module)
