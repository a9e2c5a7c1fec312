"""The break-glass copy of a mirror: what is in it, what is not, and that it foresees what `up` writes at a switch."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from contract.stack_outputs import AUTHORITY_KEYS, KEY, BreakGlassCopy
from settings.users import ACTIVE_LABEL

from ...support.pulumi_engine import Engine, is_secret, mirror, revealed, target, up
from ...support.recorded_program import CERTIFICATE, SOURCE_OUTPUTS, STATUS, Run

CLIENTS = {"source": "rt-inv-dev-user", "target": "shop"}
USERS = [{"name": "writer"}, {"name": "shop", "aclSets": [{"set": "producer", "topics": ["items"]}]}]
AT_TARGET = {"active": "target", "state": "stopped"}
LICENSE = {"accept": True, "use": "CloudPakForIntegrationNonProduction"}
PLATFORMS: dict[str, dict[str, Any]] = {
    "v1": {"type": "strimzi", "version": "1.2.0"},
    "v1beta2": {"type": "strimzi", "version": "0.51.0"},
    "event-streams": {"type": "event-streams", "version": "11.0.0", "license": LICENSE},
}


def made(platform: str = "v1", engine: Engine | None = None, **settings: Any) -> tuple[Engine, Run]:
    """The program of a stack whose mirror has these settings."""
    made_by = engine or Engine(status=None if platform == "v1" else STATUS)
    values = target(mirrors=[mirror(clients=CLIENTS, **settings)], users=USERS, platform=PLATFORMS[platform])
    return made_by, up(made_by, values)


def values(engine: Engine, name: str = "mm2-break-glass") -> dict[str, str]:
    """What the Secret holds, decoded."""
    data = revealed(engine.one("v1:Secret", name)["data"])
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def copy_of(engine: Engine) -> BreakGlassCopy:
    return BreakGlassCopy.read(values(engine)[KEY])


def specs(engine: Engine) -> dict[tuple[str, str], Any]:
    """The specs of mirrors and users, by kind and name."""
    return {
        (inputs["kind"], inputs["metadata"]["name"]): revealed(inputs["spec"])
        for (kind, _), inputs in engine.resources.items()
        if kind.endswith((":KafkaMirrorMaker2", ":KafkaUser"))
    }


def credentials(value: Any) -> Iterator[str]:
    """All texts of a secret output but the authorities' certificates, which are public."""
    if isinstance(value, str) and value.strip() not in (CERTIFICATE, SOURCE_OUTPUTS["clusterCaCertificate"]):
        yield value
    elif isinstance(value, dict):
        for below in value.values():
            yield from credentials(below)


def test_no_credential_is_in_it() -> None:
    engine, seen = made()
    found = [text for name in seen.secrets for text in credentials(seen.exports[name])]
    assert {"generated-password", "source password"} <= set(found)
    inputs = engine.one("v1:Secret", "mm2-break-glass")
    held = json.dumps([revealed(inputs), values(engine)])
    assert not [text for text in found if text in held]
    assert is_secret(inputs["data"])
    assert "stringData" not in inputs


def test_it_lies_beside_the_mirror_and_names_the_active_side() -> None:
    engine, _ = made(namespace="mirrors", **AT_TARGET)
    inputs = engine.one("v1:Secret", "mm2-break-glass")
    assert (inputs["type"], inputs["metadata"]["namespace"]) == ("Opaque", "mirrors")
    assert inputs["metadata"]["labels"] == {
        "app.kubernetes.io/name": "rt-inventory-break-glass",
        "app.kubernetes.io/part-of": "rt-inventory",
        "app.kubernetes.io/instance": "mm2",
        ACTIVE_LABEL: "target",
    }


def test_it_has_the_outputs_of_the_mirror_and_says_where_each_credential_is() -> None:
    engine, seen = made(namespace="mirrors")
    copy = copy_of(engine)
    assert copy.outputs["cluster"] == seen.exports["cluster"]
    assert copy.outputs["mirrors"] == {"mm2": seen.exports["mirrors"]["mm2"]}
    assert copy.outputs["verificationRequests"] == {"mm2": seen.exports["verificationRequests"]["mm2"]}
    assert copy.source_cluster is not None
    assert copy.source_cluster.document() == SOURCE_OUTPUTS["cluster"]
    known = {name: one.document() for name, one in copy.references["mm2"].items()}
    assert known == {
        "SOURCE_PASSWORD": {"namespace": "mirrors", "secretName": "rt-inv-dev-user", "key": "password"},
        "TARGET_PASSWORD": {"namespace": "stg", "secretName": "writer", "key": "password"},
        "SOURCE_CA": {"namespace": "mirrors", "secretName": "mm2-break-glass", "key": "source.ca.crt"},
        "TARGET_CA": {"namespace": "mirrors", "secretName": "mm2-break-glass", "key": "target.ca.crt"},
    }
    environment = seen.exports["verificationEnvironment"]["mm2"]
    assert set(known) == set(environment)
    assert ("mirrors", "rt-inv-dev-user") in engine.all("v1:Secret")
    held = values(engine)
    assert {side: held[key] for side, key in AUTHORITY_KEYS.items()} == {
        side: environment[f"{side.upper()}_CA"] for side in AUTHORITY_KEYS
    }


@pytest.mark.parametrize(("platform", "rest"), [("v1", "stopped"), ("v1beta2", "stopped"), ("event-streams", "paused")])
def test_it_foresees_what_an_up_writes_once_the_target_is_active(platform: str, rest: str) -> None:
    before, _ = made(platform)
    after, seen = made(platform, active="target", state=rest)
    copy = copy_of(before)
    kinds = {"KafkaMirrorMaker2": rest, "KafkaUser": "target"}
    changing = {name for name, spec in specs(before).items() if spec != specs(after)[name]}
    assert {(each.kind, each.name) for each in copy.objects} == changing
    for each in copy.objects:
        was = revealed(before.one(f"{each.api_version.partition('/')[2]}:{each.kind}", each.name)["spec"])
        then = revealed(after.one(f"{each.api_version.partition('/')[2]}:{each.kind}", each.name)["spec"])
        changed = {**was, **each.specs[kinds[each.kind]]}
        assert {key: value for key, value in changed.items() if value is not None} == then
        assert was != then
    assert copy.switched("mm2", rest, "target").text() == values(after)[KEY]
    assert copy.switched("mm2", rest, "target").outputs["mirrors"]["mm2"] == seen.exports["mirrors"]["mm2"]
    assert copy.clients is not None
    inputs = after.one("v1:Secret", copy.clients.name)
    assert (inputs["type"], inputs["metadata"]["labels"]) == (copy.clients.type, dict(copy.clients.labels))


def test_it_foresees_the_end_of_a_reverse_too() -> None:
    reverse = {"naming": "prefixed", "reverse": {"topics": ["shop"]}}
    before, _ = made(**reverse)
    after, _ = made(**reverse, **AT_TARGET)
    assert ("v1:Secret", "mm2-reverse-break-glass-secret") not in before.resources
    back = next(each for each in copy_of(before).objects if each.name == "mm2-reverse")
    was = revealed(before.one("v1:KafkaMirrorMaker2", "mm2-reverse")["spec"])
    assert {**was, **back.specs["stopped"]} == revealed(after.one("v1:KafkaMirrorMaker2", "mm2-reverse")["spec"])


@pytest.mark.parametrize(("platform", "rest"), [("v1", "stopped"), ("event-streams", "paused")])
def test_it_foresees_that_followers_have_no_pod_once_the_mirror_is_stopped(platform: str, rest: str) -> None:
    settings = {"naming": "prefixed", "reverse": {"topics": ["shop"]}, "exactOffsets": {"image": "follower:1.0.0"}}
    before, _ = made(platform, **settings)
    after, _ = made(platform, **settings, active="target", state=rest)
    found = {each.name: each for each in copy_of(before).objects if each.kind == "Deployment"}
    assert set(found) == {"mm2-follower", "mm2-reverse-follower"}
    for name, each in found.items():
        assert (each.api_version, each.namespace, each.depends_on) == ("apps/v1", "stg", "state")
        assert each.specs == {"running": {"replicas": 1}, rest: {"replicas": 0}}
        was, then = (engine.one("v1:Deployment", name)["spec"] for engine in (before, after))
        assert {**was, **each.specs[rest]} == then, "a failover without Pulumi writes what `up` would"
    assert copy_of(before).objects == copy_of(after).objects


def test_a_mirror_without_clients_and_from_an_external_source_has_a_copy() -> None:
    cluster = {"bootstrapServers": ["kafka.example.com:9093"]}
    external = {"name": "cloud", "cluster": cluster, "secret": {"name": "cloud-login"}}
    engine = Engine(existing={"stg/cloud-login": {"password": "cloud password"}})
    source = {"external": external, "alias": "es-src"}
    up(engine, target(mirrors=[mirror(source=source)]))
    copy = copy_of(engine)
    assert (copy.clients, copy.source_cluster) == (None, None)
    assert copy.references["mm2"]["SOURCE_PASSWORD"].secret_name == "cloud-login"
    assert "cloud password" not in json.dumps(values(engine))


def test_a_first_preview_works() -> None:
    engine = Engine(preview=True)
    up(engine, target(mirrors=[mirror(clients=CLIENTS)], users=USERS))
    assert engine.one("v1:Secret", "mm2-break-glass")
