"""The definitions of the API versions beside Strimzi's v1: v1beta2, Event Streams', and what the API server serves.

Event Streams is a fork of a Strimzi release: it keeps Strimzi's schemas under a group of its own and puts its one kind,
EventStreams, around a Kafka cluster. That kind is written here from IBM's documentation; a field that is not documented
takes any content. Owns the cache entry of the three, and writes YAML with the standard library alone.
"""

import copy
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox.toolchain import crds, java, maven, pins
from sandbox.toolchain.commands import Commands
from sandbox.toolchain.crds import OLDER, V1, V1BETA2
from sandbox.toolchain.paths import Entry, ToolchainPaths, key_of
from sandbox.toolchain.steps import Step

Definition = dict[str, Any]

Schema = dict[str, Any]

GROUP, VERSION = "eventstreams.ibm.com", "v1beta2"

_STRIMZI_LABEL, _LABEL = r"strimzi\.io/", r"eventstreams\.ibm\.com/"

_BARE_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

_NOT_TEXT = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

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
_WRITTEN_BY = ("api_versions.py", "crds.py")

Definitions = Mapping[str, Definition]


def entry(paths: ToolchainPaths) -> Entry:
    """The cache entry: a folder each for Strimzi's v1beta2, Event Streams' and the served definitions."""
    here = Path(__file__).parent
    key = key_of(*maven.STRIMZI, *maven.STRIMZI_V1BETA2, *maven.EVENT_STREAMS, *(here / name for name in _WRITTEN_BY))
    return paths.entry("api-versions", f"{pins.STRIMZI_V1BETA2}-{key}")


def strimzi_v1beta2(paths: ToolchainPaths) -> Path:
    """Folder of Strimzi's v1beta2 definitions, a YAML file a kind, with the release's content."""
    return entry(paths).path / STRIMZI


def of_event_streams(paths: ToolchainPaths) -> Path:
    """Folder of Event Streams' definitions, a YAML file a kind."""
    return entry(paths).path / EVENT_STREAMS


def served_folder(paths: ToolchainPaths) -> Path:
    """Folder of what the sandbox's API server serves of Strimzi, a JSON or YAML file a kind."""
    return entry(paths).path / SERVED


def step(paths: ToolchainPaths) -> Step:
    """Generates Strimzi's v1beta2 definitions and derives the others."""
    return Step(
        name="api-versions",
        title=f"Strimzi {pins.STRIMZI_V1BETA2} and Event Streams {pins.EVENT_STREAMS} definitions",
        is_done=entry(paths).is_complete,
        run=lambda commands: _write(paths, commands),
        needs=("strimzi-crds", "strimzi-v1beta2-generator", "event-streams-generator", "java"),
        disk_mib=5,
    )


def _write(paths: ToolchainPaths, commands: Commands) -> None:
    runtime = java.running_java(paths) or java.fetched_java(paths)
    newest = crds.generating_java(paths, commands)
    with entry(paths).build() as folder:
        work = folder / "work"
        class_path = maven.class_path(maven.strimzi_v1beta2(paths))
        plain = {kind: model for kind, model in KINDS.items() if kind not in _WITH_OLDER}
        others = {kind: KINDS[kind] for kind in _WITH_OLDER}
        v1beta2 = {
            **_generated(commands, runtime, class_path, work, plain, (V1BETA2,)),
            **_generated(commands, runtime, class_path, work, others, (*OLDER, V1BETA2)),
        }
        class_path = maven.class_path(maven.event_streams(paths))
        base = _generated(commands, runtime, class_path, work, BASE_KINDS, (V1BETA2,))
        v1 = _generated(commands, newest, maven.class_path(maven.strimzi(paths)), work, KINDS, (V1,))
        forked = _forked(base, v1beta2["KafkaNodePool"])
        _write_yaml(folder / STRIMZI, v1beta2)
        _write_yaml(folder / EVENT_STREAMS, forked)
        _write_served(folder / SERVED, [both_versions(v1[kind], v1beta2[kind]) for kind in KINDS])
        for name, model in crds.STRIMZI_KINDS.items():
            if model not in KINDS.values():
                shutil.copy(crds.strimzi(paths).path / f"{name}.yaml", folder / SERVED)


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
    crds.generate_definitions(commands, runtime, class_path, files, versions)
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
        "EventStreams": event_streams(base["Kafka"], node_pool),
        **{kind: forked_definition(base[kind]) for kind in kinds},
        "KafkaNodePool": forked_definition(node_pool),
    }


_ANY: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_ANY_OBJECT: Schema = {"type": "object", **_ANY}
_COMPONENTS = ("adminApi", "adminUI", "apicurioRegistry", "collector", "restProducer", "kafkaProxy")
_LICENSE: Schema = {
    "type": "object",
    "required": ["accept"],
    "properties": {
        "accept": {"type": "boolean"},
        "license": {"type": "string"},
        "use": {"type": "string"},
    },
}
# A release without node pools has ZooKeeper and the number of brokers; one with them has the numbers in the pools.
_NODES_RULE = "has(self.nodePools) || (has(self.zookeeper) && has(self.kafka.replicas) && has(self.kafka.storage))"
_NODES_MESSAGE = "must have nodePools, or zookeeper, kafka.replicas and kafka.storage"


def forked_definition(strimzi: Definition) -> Definition:
    """Strimzi's definition of a kind as Event Streams has it: its group and labels, v1beta2 only, no short names."""
    names = {key: value for key, value in strimzi["spec"]["names"].items() if key not in {"shortNames", "categories"}}
    version = copy.deepcopy(version_of(strimzi, VERSION))
    for column in version.get("additionalPrinterColumns", []):
        column["jsonPath"] = column["jsonPath"].replace(_STRIMZI_LABEL, _LABEL)
    return _definition(names, version)


def event_streams(kafka: Definition, node_pool: Definition) -> Definition:
    """The definition of EventStreams around the spec of a Kafka and, in a list, those of its node pools."""
    spec: Schema = {
        "type": "object",
        "required": ["license", "strimziOverrides"],
        "properties": {
            "version": {"type": "string"},
            "license": _LICENSE,
            **dict.fromkeys((*_COMPONENTS, "images", "security"), _ANY_OBJECT),
            "requestIfMatch": _ANY,
            "strimziOverrides": _overrides(spec_of(kafka, VERSION), spec_of(node_pool, VERSION)),
        },
    }
    names = {
        "kind": "EventStreams",
        "listKind": "EventStreamsList",
        "singular": "eventstreams",
        "plural": "eventstreams",
    }
    version = {
        "name": VERSION,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Status", "jsonPath": ".status.phase", "type": "string"}],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "required": ["spec"],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": spec,
                    "status": _ANY_OBJECT,
                },
            }
        },
    }
    return _definition(names, version)


def version_of(definition: Definition, name: str) -> dict[str, Any]:
    """The entry of a version in a definition; raises KeyError if it has none of that name."""
    for version in definition["spec"]["versions"]:
        if version["name"] == name:
            return dict(version)
    raise KeyError(f"{definition['metadata']['name']}: has no version {name}")


def spec_of(definition: Definition, version: str) -> Schema:
    """A copy of the schema of `spec` in a version of a definition."""
    schema = version_of(definition, version)["schema"]["openAPIV3Schema"]
    return dict(copy.deepcopy(schema["properties"]["spec"]))


def _overrides(kafka: Schema, pool: Schema) -> Schema:
    cluster = kafka["properties"]["kafka"]
    cluster["required"] = [name for name in cluster["required"] if name not in {"replicas", "storage"}]
    pool["properties"] = {"name": {"type": "string"}, **pool["properties"]}
    pool["required"] = ["name", *pool.get("required", [])]
    kafka["properties"]["nodePools"] = {"type": "array", "minItems": 1, "items": pool}
    kafka["required"] = [name for name in kafka["required"] if name != "zookeeper"]
    kafka["x-kubernetes-validations"] = [{"rule": _NODES_RULE, "message": _NODES_MESSAGE}]
    return kafka


def _definition(names: dict[str, Any], version: dict[str, Any]) -> Definition:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Namespaced",
            "conversion": {"strategy": "None"},
            "versions": [version | {"served": True, "storage": True}],
        },
    }


STORED = "stored"
_KEPT_WHOLE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def both_versions(v1: Definition, v1beta2: Definition) -> Definition:
    """One definition of a kind that serves v1 and v1beta2 and loses no field of either."""
    stored = {
        "name": STORED,
        "served": False,
        "storage": True,
        "schema": {"openAPIV3Schema": _KEPT_WHOLE},
        "subresources": version_of(v1, V1).get("subresources", {}),
    }
    served = [version_of(v1, V1), version_of(without_descriptions(v1beta2), V1BETA2)]
    result = copy.deepcopy(v1)
    result["spec"]["versions"] = [*(version | {"served": True, "storage": False} for version in served), stored]
    result["spec"]["conversion"] = {"strategy": "None"}
    return result


def without_descriptions(definition: Definition) -> Definition:
    """A definition without the texts in its schemas: they are most of it, and the API server keeps several copies."""
    result = copy.deepcopy(definition)
    for version in result["spec"]["versions"]:
        version["schema"] = _bare(version["schema"])
    return result


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        # A field that is called description has a schema, which is no text.
        return {
            key: _bare(inner) for key, inner in value.items() if not (key == "description" and isinstance(inner, str))
        }
    if isinstance(value, list):
        return [_bare(inner) for inner in value]
    return value


def yaml_text(value: dict[str, Any]) -> str:
    """The YAML document of a mapping: a line a value, texts quoted as in JSON, lists and mappings by indentation."""
    return "".join(f"{line}\n" for line in _mapping(value))


def _mapping(value: dict[str, Any]) -> Iterator[str]:
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield f"{_key(key)}:"
            yield from (f"  {line}" for line in _mapping(inner))
        elif isinstance(inner, list) and inner:
            yield f"{_key(key)}:"
            yield from _items(inner)
        else:
            yield f"{_key(key)}: {json.dumps(inner)}"


def _items(values: list[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, dict) and value:
            first, *others = _mapping(value)
            yield f"- {first}"
            yield from (f"  {line}" for line in others)
        else:
            yield f"- {json.dumps(value)}"


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) and key.lower() not in _NOT_TEXT else json.dumps(key)
