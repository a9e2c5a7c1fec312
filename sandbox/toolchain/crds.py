"""The custom resource definitions of Strimzi (v1) and OLM, as in their releases."""

import json
import shutil
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
OLM_MODULE = "github.com/operator-framework/api"


def strimzi(place: Place) -> Entry:
    """Strimzi's definitions, one YAML file a kind, serving v1."""
    return place.entry("strimzi-crds", f"{pins.STRIMZI}-v1")


def olm(place: Place) -> Entry:
    """OLM's definitions, one YAML file a kind."""
    return place.entry("olm-crds", pins.OLM_API)


def steps(place: Place) -> list[Step]:
    """Generate Strimzi's definitions, copy OLM's."""
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
            run=lambda commands: _copy(place, commands),
            tool="go",
        ),
    ]


def generating_java(place: Place, commands: Commands) -> Path:
    """A `java` that runs the newest generator, fetched if the machine has none."""
    if runtime := java.generator_java(place):
        return runtime
    java.fetch(place, commands)
    return java.fetched_java(place)


def _generate(place: Place, commands: Commands) -> None:
    runtime = generating_java(place, commands)
    with strimzi(place).build() as folder:
        files = {folder / f"{name}.yaml": model for name, model in STRIMZI_KINDS.items()}
        crd_generator.generate(commands, runtime, maven.class_path(maven.strimzi(place)), files, (crd_generator.V1,))


def _copy(place: Place, commands: Commands) -> None:
    with olm(place).build() as folder:
        module = shutil.copytree(GO_MODULE / "olm", folder / "module")
        described = commands.output(["go", "mod", "download", "-json", OLM_MODULE], cwd=module, env={"GOWORK": "off"})
        for file in sorted((Path(json.loads(described)["Dir"]) / "crds").glob("*.yaml")):
            (folder / file.name).write_bytes(file.read_bytes())
        shutil.rmtree(module)
