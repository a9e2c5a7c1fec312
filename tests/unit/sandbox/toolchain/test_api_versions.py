"""How definitions of other API versions are derived, and how they are written."""

import copy
from typing import Any

import pytest
import yaml

from sandbox.toolchain import api_versions, locate
from sandbox.toolchain.__main__ import ensure
from sandbox.toolchain.api_versions import yaml_text

from .conftest import Machine, definition


def of(parsed: dict[str, Any], version: str) -> dict[str, Any]:
    return api_versions.version_of(parsed, version)


def test_event_streams_has_strimzis_schema_in_its_own_group_and_v1beta2_only() -> None:
    strimzi = definition("kafkatopic")
    result = api_versions.forked_definition(strimzi)
    assert result["metadata"] == {"name": "kafkatopics.eventstreams.ibm.com"}
    assert [version["name"] for version in result["spec"]["versions"]] == ["v1beta2"]
    (version,) = result["spec"]["versions"]
    assert version["served"]
    assert version["storage"]
    assert version["schema"] == of(strimzi, "v1beta2")["schema"]
    assert version["additionalPrinterColumns"][0]["jsonPath"] == r".metadata.labels.eventstreams\.ibm\.com/cluster"


def test_a_kind_of_event_streams_takes_no_short_name_from_strimzi() -> None:
    names = api_versions.forked_definition(definition("kafkatopic"))["spec"]["names"]
    assert names == {"kind": "kafkatopic", "plural": "kafkatopics"}


def test_an_event_streams_needs_its_license_and_takes_a_kafka_with_or_without_node_pools() -> None:
    result = api_versions.event_streams(definition("kafka"), definition("kafkanodepool"))
    spec = api_versions.spec_of(result, "v1beta2")
    assert spec["required"] == ["license", "strimziOverrides"]
    assert spec["properties"]["license"]["required"] == ["accept"]
    overrides = spec["properties"]["strimziOverrides"]
    assert overrides["required"] == ["kafka"]
    assert overrides["properties"]["kafka"]["required"] == ["listeners"]
    assert overrides["properties"]["nodePools"]["items"]["required"][0] == "name"
    (rule,) = overrides["x-kubernetes-validations"]
    assert "has(self.nodePools) || (has(self.zookeeper)" in rule["rule"]


def test_deriving_leaves_the_strimzi_definitions_as_they_are() -> None:
    kafka, pool = definition("kafka"), definition("kafkanodepool")
    before = copy.deepcopy((kafka, pool))
    api_versions.event_streams(kafka, pool)
    api_versions.forked_definition(pool)
    api_versions.both_versions(kafka, pool)
    assert (kafka, pool) == before


def test_a_version_that_a_definition_lacks_is_named() -> None:
    with pytest.raises(KeyError, match="has no version v2"):
        api_versions.version_of(definition("kafka"), "v2")


def test_both_versions_are_served_with_their_own_schemas_and_neither_is_stored() -> None:
    result = api_versions.both_versions(definition("kafka"), definition("kafka"))
    flags = {entry["name"]: (entry["served"], entry["storage"]) for entry in result["spec"]["versions"]}
    assert flags == {"v1": (True, False), "v1beta2": (True, False), "stored": (False, True)}
    assert api_versions.spec_of(result, "v1")["title"] == "v1"
    assert api_versions.spec_of(result, "v1beta2")["title"] == "v1beta2"
    assert result["spec"]["conversion"] == {"strategy": "None"}


def test_what_is_stored_loses_no_field_and_has_the_same_subresources() -> None:
    stored = of(api_versions.both_versions(definition("kafka"), definition("kafka")), "stored")
    assert stored["schema"]["openAPIV3Schema"]["x-kubernetes-preserve-unknown-fields"] is True
    assert stored["subresources"] == {"status": {}}


def test_texts_are_left_out_and_a_field_called_description_stays() -> None:
    spec = api_versions.spec_of(api_versions.without_descriptions(definition("kafka")), "v1beta2")
    assert "description" not in spec
    assert spec["properties"]["description"] == {"type": "string"}


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1, "b": None, "c": True, "d": 1.5, "e": "yes", "f": "1.0", "g": 'say "x": y # z'},
        {"list": [1, "two", {"a": {"b": [1]}, "c": []}, {}, [3]], "empty": {}},
        {"on": 1, "x-kubernetes-int-or-string": True, "a b": 2, "n": 3, "1": 4, "": 5},
        {"text": "line\nline", "pattern": "^[a-z]{1,11}\\.$", "unicode": "ä \u2028"},
    ],
)
def test_written_yaml_reads_back_the_same(value: dict[str, Any]) -> None:
    assert yaml.safe_load(yaml_text(value)) == value


def test_what_is_installed_is_valid_yaml_and_named_as_its_definition(machine: Machine) -> None:
    ensure(machine.paths)
    tools = locate(machine.paths)
    for folder, suffix in ((tools.strimzi_v1beta2_crds, "kafka.strimzi.io"), (tools.event_streams_crds, "ibm.com")):
        for file in folder.glob("*.yaml"):
            name = yaml.safe_load(file.read_text(encoding="utf-8"))["metadata"]["name"]
            assert name.startswith(file.stem)
            assert name.endswith(suffix)
    both = {file.name for file in tools.served_crds.glob("*.json")}
    assert "kafkas.kafka.strimzi.io.json" in both
    assert not any("eventstreams" in name for name in both), "kubectl could not tell their kinds apart"
