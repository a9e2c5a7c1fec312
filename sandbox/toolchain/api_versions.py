"""The definitions of the API versions beside Strimzi's v1: v1beta2, Event Streams', and what the API server serves.

Owns the cache entry of the three. How Event Streams' definitions are derived is said by `event_streams`, how two
versions become one definition by `served`.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import crd_generator, crds, event_streams, java, maven, pins, served
from .cache import Entry, key_of
from .commands import Commands
from .crd_generator import OLDER, V1, V1BETA2
from .event_streams import Definition
from .place import Place
from .steps import Step
from .yaml_text import yaml_text

STRIMZI, EVENT_STREAMS, SERVED = "strimzi-v1beta2", "event-streams", "served"
# Kind → model class of Strimzi 0.45 and later; of the release below Event Streams, which has no node pools.
KINDS = {
    "Kafka": "kafka.Kafka",
    "KafkaTopic": "topic.KafkaTopic",
    "KafkaUser": "user.KafkaUser",
    "KafkaNodePool": "nodepool.KafkaNodePool",
    "KafkaMirrorMaker2": "mirrormaker2.KafkaMirrorMaker2",
}
BASE_KINDS = {kind: kind for kind in KINDS if kind != "KafkaNodePool"}
_WITH_OLDER = ("KafkaTopic", "KafkaUser")
_WRITTEN_BY = ("api_versions.py", "crd_generator.py", "event_streams.py", "served.py", "yaml_text.py")

Definitions = Mapping[str, Definition]


def entry(place: Place) -> Entry:
    """The cache entry: a folder each for Strimzi's v1beta2, Event Streams' and the served definitions."""
    here = Path(__file__).parent
    key = key_of(*maven.STRIMZI, *maven.STRIMZI_V1BETA2, *maven.EVENT_STREAMS, *(here / name for name in _WRITTEN_BY))
    return place.entry("api-versions", f"{pins.STRIMZI_V1BETA2}-{key}")


def strimzi_v1beta2(place: Place) -> Path:
    """Folder of Strimzi's v1beta2 definitions, a YAML file a kind, with the release's content."""
    return entry(place).path / STRIMZI


def of_event_streams(place: Place) -> Path:
    """Folder of Event Streams' definitions, a YAML file a kind."""
    return entry(place).path / EVENT_STREAMS


def served_folder(place: Place) -> Path:
    """Folder of what the sandbox's API server serves of Strimzi, a JSON or YAML file a kind."""
    return entry(place).path / SERVED


def step(place: Place) -> Step:
    """Generates Strimzi's v1beta2 definitions and derives the others."""
    return Step(
        name="api-versions",
        title=f"Strimzi {pins.STRIMZI_V1BETA2} and Event Streams {pins.EVENT_STREAMS} definitions",
        is_done=entry(place).is_complete,
        run=lambda commands: _write(place, commands),
        needs=("strimzi-crds", "strimzi-v1beta2-generator", "event-streams-generator", "java"),
        disk_mib=5,
    )


def _write(place: Place, commands: Commands) -> None:
    runtime = java.running_java(place) or java.fetched_java(place)
    newest = crds.generating_java(place, commands)
    with entry(place).build() as folder:
        work = folder / "work"
        class_path = maven.class_path(maven.strimzi_v1beta2(place))
        plain = {kind: model for kind, model in KINDS.items() if kind not in _WITH_OLDER}
        others = {kind: KINDS[kind] for kind in _WITH_OLDER}
        v1beta2 = {
            **_generated(commands, runtime, class_path, work, plain, (V1BETA2,)),
            **_generated(commands, runtime, class_path, work, others, (*OLDER, V1BETA2)),
        }
        class_path = maven.class_path(maven.event_streams(place))
        base = _generated(commands, runtime, class_path, work, BASE_KINDS, (V1BETA2,))
        v1 = _generated(commands, newest, maven.class_path(maven.strimzi(place)), work, KINDS, (V1,))
        forked = _forked(base, v1beta2["KafkaNodePool"])
        _write_yaml(folder / STRIMZI, v1beta2)
        _write_yaml(folder / EVENT_STREAMS, forked)
        _write_served(folder / SERVED, [served.both_versions(v1[kind], v1beta2[kind]) for kind in KINDS])
        for name, model in crds.STRIMZI_KINDS.items():
            if model not in KINDS.values():
                shutil.copy(crds.strimzi(place).path / f"{name}.yaml", folder / SERVED)


def _generated(
    commands: Commands,
    runtime: Path,
    class_path: str,
    folder: Path,
    kinds: Mapping[str, str],
    versions: Sequence[str],
) -> Definitions:
    folder.mkdir()
    files = {folder / f"{kind}.json": model for kind, model in kinds.items()}
    crd_generator.generate(commands, runtime, class_path, files, versions)
    definitions = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}
    shutil.rmtree(folder)
    return definitions


def _write_yaml(folder: Path, definitions: Definitions) -> None:
    folder.mkdir()
    for kind, definition in definitions.items():
        (folder / f"{kind.lower()}.yaml").write_text(yaml_text(definition), encoding="utf-8")


def _write_served(folder: Path, definitions: Sequence[Definition]) -> None:
    folder.mkdir()
    for definition in definitions:
        file = folder / f"{definition['metadata']['name']}.json"
        file.write_text(json.dumps(definition, separators=(",", ":")), encoding="utf-8")


def _forked(base: Definitions, node_pool: Definition) -> Definitions:
    kinds = [kind for kind in base if kind != "Kafka"]
    return {
        "EventStreams": event_streams.event_streams(base["Kafka"], node_pool),
        **{kind: event_streams.renamed(base[kind]) for kind in kinds},
        "KafkaNodePool": event_streams.renamed(node_pool),
    }
