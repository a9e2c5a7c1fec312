"""The definitions of IBM Event Streams, derived from those of the Strimzi release that it is a fork of.

Event Streams keeps Strimzi's schemas under a group of its own and puts its one kind, EventStreams, around a Kafka
cluster. That kind is written here from IBM's documentation: what is not documented field by field takes any content.
"""

import copy
from typing import Any

Definition = dict[str, Any]
Schema = dict[str, Any]

GROUP, VERSION = "eventstreams.ibm.com", "v1beta2"
_STRIMZI_LABEL, _LABEL = r"strimzi\.io/", r"eventstreams\.ibm\.com/"
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
# A release without node pools has ZooKeeper and says how many brokers there are; one with them says so in the pools.
_NODES_RULE = "has(self.nodePools) || (has(self.zookeeper) && has(self.kafka.replicas) && has(self.kafka.storage))"
_NODES_MESSAGE = "must have nodePools, or zookeeper, kafka.replicas and kafka.storage"


def renamed(strimzi: Definition) -> Definition:
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
