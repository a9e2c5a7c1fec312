"""Mirrors between any two ends: where they run, which Secrets are copied there, and what is taken from where."""

import json
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from ...support.pulumi_engine import Engine, is_secret, mirror, revealed, target, up
from ...support.recorded_program import CERTIFICATE, PASSWORD, SOURCE_OUTPUTS

SOURCE_COPIES = {
    "rt-inv-dev-user": {"password": "source password"},
    "rt-inventory-dev-cluster-ca-cert": {"ca.crt": "source certificate"},
}
OWN = {("stg", "writer-credentials"): {"password": PASSWORD}}
PEM = CERTIFICATE + "\n"
CLOUD = ["broker-0.example.com:9093", "broker-1.example.com:9093"]


def with_(**changes: Any) -> dict[str, Any]:
    """Outputs of the source stack with changes."""
    return {**SOURCE_OUTPUTS, **changes}


def external(**settings: Any) -> dict[str, Any]:
    """A mirror from an external cluster."""
    source = {"name": "cloud", "cluster": {"bootstrapServers": CLOUD}, "secret": {"name": "cloud-login"}, **settings}
    return mirror(source={"alias": "es-src", "external": source})


def specs(engine: Engine) -> dict[tuple[str, str], Any]:
    """Specs of the mirrors by namespace and name."""
    return {place: inputs["spec"] for place, inputs in engine.all("v1:KafkaMirrorMaker2").items()}


def test_in_the_targets_namespace_only_the_sources_secrets_are_copied() -> None:
    engine = Engine()
    up(engine, target())
    assert engine.secrets() == OWN | {("stg", name): data for name, data in SOURCE_COPIES.items()}
    assert list(specs(engine)) == [("stg", "mm2")]
    values = [inputs.get("stringData") or inputs["data"] for inputs in engine.all("v1:Secret").values()]
    assert all(is_secret(each) for each in values)


def test_in_a_namespace_of_its_own_a_mirror_finds_the_secrets_of_both_ends() -> None:
    engine = Engine()
    seen = up(engine, target(mirrors=[mirror(namespace="mirrors")]))
    copies = SOURCE_COPIES | {
        "writer": {"password": PASSWORD},
        "kafka-stg-cluster-ca-cert": {"ca.crt": PEM},
    }
    assert engine.secrets() == OWN | {("mirrors", name): data for name, data in copies.items()}
    assert list(specs(engine)) == [("mirrors", "mm2")]
    assert set(engine.all("v1:Namespace")) == {("", "stg"), ("", "mirrors")}
    assert seen.exports["mirrors"]["mm2"]["namespace"] == "mirrors"


def test_what_was_read_from_a_secret_is_copied_as_a_secret() -> None:
    engine = Engine(existing={"stg/writer": {"user.crt": "certificate", "user.key": "key"}})
    cluster = {"name": "kafka-stg", "namespace": "stg", "protect": False}
    listeners = [{"name": "tls", "port": 9093, "authentication": "tls"}]
    user = {"name": "writer", "authentication": "tls"}
    up(engine, target(cluster={**cluster, "listeners": listeners}, users=[user], mirrors=[mirror(namespace="own")]))
    copy = engine.one("v1:Secret", "writer")
    assert is_secret(copy["stringData"])
    assert revealed(copy["stringData"]) == {"user.crt": "certificate", "user.key": "key"}


@pytest.mark.parametrize("namespace", ["stg", "elsewhere"])
def test_where_the_sources_secrets_are_said_to_be_none_is_copied(namespace: str) -> None:
    source = {**mirror()["source"], "copySecrets": False}
    engine = Engine()
    up(engine, target(mirrors=[mirror(source=source, namespace=namespace)]))
    copied = {name for _, name in engine.secrets()} - {"writer-credentials"}
    assert copied == (set() if namespace == "stg" else {"writer", "kafka-stg-cluster-ca-cert"})
    authentication = specs(engine)[namespace, "mm2"]["mirrors"][0]["source"]["authentication"]
    assert authentication["passwordSecret"]["secretName"] == "rt-inv-dev-user"


def test_two_mirrors_of_the_same_user_share_one_copy_in_a_namespace() -> None:
    engine = Engine()
    mirrors = [mirror(name=name, namespace=place) for name, place in (("a", "one"), ("b", "one"), ("c", "two"))]
    up(engine, target(mirrors=mirrors))
    assert sorted(place for place, name in engine.secrets() if name == "rt-inv-dev-user") == ["one", "two"]
    assert sorted(specs(engine)) == [("one", "a"), ("one", "b"), ("two", "c")]


def test_two_users_of_one_source_have_a_copy_each_and_share_the_authority() -> None:
    users = {name: {**SOURCE_OUTPUTS["users"]["rt-inv-dev-user"], "secretName": name} for name in ("one", "two")}
    credentials = {name: {"password": f"of {name}"} for name in users}
    engine = Engine(stacks={"dev": with_(users=users, userCredentials=credentials)})
    source = mirror()["source"]
    up(engine, target(mirrors=[mirror(name=name, source={**source, "user": name}) for name in users]))
    assert engine.secrets() == OWN | {
        ("stg", "one"): {"password": "of one"},
        ("stg", "two"): {"password": "of two"},
        ("stg", "rt-inventory-dev-cluster-ca-cert"): {"ca.crt": "source certificate"},
    }


@pytest.mark.parametrize(
    ("settings", "secret"),
    [
        ({"users": [{"name": "rt-inv-dev-user"}]}, "rt-inv-dev-user"),
        (
            {"cluster": {"name": "rt-inventory-dev", "namespace": "stg", "protect": False}},
            "rt-inventory-dev-cluster-ca-cert",
        ),
    ],
)
def test_a_secret_never_stands_for_both_clusters(settings: dict[str, Any], secret: str) -> None:
    user = settings.get("users", [{"name": "writer"}])[0]["name"]
    flow = mirror(target={"alias": "es-tgt", "user": user})
    message = f"mirror mm2: Secret {secret} in namespace stg must belong to one cluster .got stack dev and this stack"
    with pytest.raises(pulumi.RunError, match=message):
        up(Engine(), target(mirrors=[flow], **settings))


def test_users_of_one_name_in_two_source_stacks_are_distinguished() -> None:
    engine = Engine(stacks={"dev": SOURCE_OUTPUTS, "qa": SOURCE_OUTPUTS})
    other = {**mirror()["source"], "stack": "qa", "alias": "qa"}
    with pytest.raises(pulumi.RunError, match="got stack dev and stack qa"):
        up(engine, target(mirrors=[mirror(), mirror(name="second", source=other)]))


def test_an_external_source_with_a_public_authority_needs_its_password_only() -> None:
    engine = Engine(existing={"stg/cloud-login": {"apikey": "cloud key", "password": "wrong"}})
    login = {"authentication": "plain", "username": "token", "secret": {"name": "cloud-login", "passwordKey": "apikey"}}
    seen = up(engine, target(mirrors=[external(**login)]))
    assert engine.secrets() == OWN
    source = specs(engine)["stg", "mm2"]["mirrors"][0]["source"]
    assert source["bootstrapServers"] == ",".join(CLOUD)
    assert source["tls"] == {"trustedCertificates": []}
    assert source["authentication"] == {
        "type": "plain",
        "username": "token",
        "passwordSecret": {"secretName": "cloud-login", "password": "apikey"},
    }
    environment = seen.exports["verificationEnvironment"]["mm2"]
    assert environment == {"SOURCE_PASSWORD": "cloud key", "TARGET_PASSWORD": PASSWORD, "TARGET_CA": PEM}
    config = seen.exports["verificationRequests"]["mm2"]["source"]["client_config"]
    assert config == {
        "bootstrap.servers": ",".join(CLOUD),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "token",
        "sasl.password": {"env": "SOURCE_PASSWORD"},
    }


def test_an_external_source_that_lets_everybody_in_needs_no_secret() -> None:
    engine = Engine()
    cluster = {"bootstrapServers": CLOUD, "tls": False}
    seen = up(engine, target(mirrors=[external(cluster=cluster, authentication="none", secret=None)]))
    assert engine.secrets() == OWN
    source = specs(engine)["stg", "mm2"]["mirrors"][0]["source"]
    assert source == {"alias": "es-src", "bootstrapServers": ",".join(CLOUD), "config": {}}
    assert seen.exports["verificationEnvironment"]["mm2"] == {"TARGET_PASSWORD": PASSWORD, "TARGET_CA": PEM}
    config = seen.exports["verificationRequests"]["mm2"]["source"]["client_config"]
    assert config == {"bootstrap.servers": ",".join(CLOUD), "security.protocol": "PLAINTEXT"}


def test_an_external_sources_authority_is_found_in_the_mirrors_namespace() -> None:
    engine = Engine(existing={"stg/cloud-login": {"password": "p"}, "stg/cloud-ca": {"tls.crt": "authority"}})
    cluster = {"bootstrapServers": CLOUD, "certificateAuthority": {"secret": "cloud-ca", "key": "tls.crt"}}
    seen = up(engine, target(mirrors=[external(cluster=cluster)]))
    assert engine.secrets() == OWN
    trusted = specs(engine)["stg", "mm2"]["mirrors"][0]["source"]["tls"]["trustedCertificates"]
    assert trusted == [{"secretName": "cloud-ca", "certificate": "tls.crt"}]
    assert seen.exports["verificationEnvironment"]["mm2"]["SOURCE_CA"] == "authority"


def test_an_external_sources_authority_from_a_file_beside_the_stack_becomes_a_secret(tmp_path: Path) -> None:
    (tmp_path / "authority.pem").write_text(PEM)
    engine = Engine(existing={"stg/cloud-login": {"password": "p"}})
    cluster = {"bootstrapServers": CLOUD, "certificateAuthority": {"file": "authority.pem"}}
    up(engine, target(mirrors=[external(cluster=cluster)]), root=tmp_path)
    assert engine.secrets() == OWN | {("stg", "cloud-cluster-ca-cert"): {"ca.crt": PEM}}


@pytest.mark.parametrize(
    ("content", "reported"),
    [(None, "must be readable .got authority.pem: No such file"), ("nothing", "must hold a PEM certificate")],
)
def test_an_authority_that_cannot_be_used_is_reported(tmp_path: Path, content: str | None, reported: str) -> None:
    if content is not None:
        (tmp_path / "authority.pem").write_text(content)
    cluster = {"bootstrapServers": CLOUD, "certificateAuthority": {"file": "authority.pem"}}
    with pytest.raises(pulumi.RunError, match=f"certificateAuthority: file {reported}"):
        up(
            Engine(existing={"stg/cloud-login": {"password": "p"}}),
            target(mirrors=[external(cluster=cluster)]),
            root=tmp_path,
        )


def test_two_mirrors_read_the_same_external_source() -> None:
    engine = Engine(existing={"stg/cloud-login": {"password": "p"}})
    flow = external()
    up(engine, target(mirrors=[{**flow, "name": "a"}, {**flow, "name": "b"}]))
    assert sorted(engine.reads) == ["a-source-login", "b-source-login"]
    assert sorted(specs(engine)) == [("stg", "a"), ("stg", "b")]


def test_a_secret_without_the_key_is_reported_by_name_and_not_by_value() -> None:
    engine = Engine(existing={"stg/cloud-login": {"apikey": "cloud key"}})
    reported = "Secret cloud-login: must have the key password .got apikey in stg"
    with pytest.raises(pulumi.RunError, match=reported) as error:
        up(engine, target(mirrors=[external()]))
    assert "cloud key" not in str(error.value)


def test_clusters_in_one_namespace_need_no_exposed_listener_between_them() -> None:
    known = {**SOURCE_OUTPUTS["cluster"], "internalBootstrapServers": "inside:9093"}
    for copies, expected in ((True, "127.0.0.1:9000"), (False, "inside:9093")):
        engine = Engine(stacks={"dev": with_(cluster=known)})
        source = {"stack": "dev", "alias": "es-src", "user": "rt-inv-dev-user", "copySecrets": copies}
        seen = up(engine, target(mirrors=[mirror(source=source)]))
        assert specs(engine)["stg", "mm2"]["mirrors"][0]["source"]["bootstrapServers"] == expected
        request = seen.exports["verificationRequests"]["mm2"]
        assert request["source"]["client_config"]["bootstrap.servers"] == "127.0.0.1:9000"


def test_a_mirror_into_an_external_cluster_logs_in_as_its_user() -> None:
    cluster = {"name": "cloud", "namespace": "stg", "external": {"bootstrapServers": CLOUD}, "protect": False}
    login = {"name": "cloud-login", "passwordKey": "apikey"}
    user = {"name": "writer", "username": "token", "authentication": "plain", "secret": login}
    engine = Engine(existing={"stg/cloud-login": {"apikey": "cloud key"}})
    seen = up(engine, target(cluster=cluster, users=[user]))
    assert not {"v1:Kafka", "v1:KafkaNodePool", "v1:KafkaUser"} & set(engine.kinds())
    assert engine.secrets() == {("stg", name): data for name, data in SOURCE_COPIES.items()}
    end = specs(engine)["stg", "mm2"]["target"]
    assert end["bootstrapServers"] == ",".join(CLOUD)
    assert end["tls"] == {"trustedCertificates": []}
    assert end["authentication"] == {
        "type": "plain",
        "username": "token",
        "passwordSecret": {"secretName": "cloud-login", "password": "apikey"},
    }
    assert seen.exports["cluster"] == {
        "name": "cloud",
        "namespace": "stg",
        "bootstrapServers": ",".join(CLOUD),
        "internalBootstrapServers": ",".join(CLOUD),
        "context": None,
        "securityProtocol": "SASL_SSL",
        "saslMechanism": "PLAIN",
        "caSecret": None,
    }
    assert seen.exports["userCredentials"] == {"writer": {"password": "cloud key"}}


def test_an_external_targets_authority_from_a_file_is_a_secret_beside_the_mirror(tmp_path: Path) -> None:
    (tmp_path / "authority.pem").write_text(PEM)
    authority = {"bootstrapServers": CLOUD, "certificateAuthority": {"file": "authority.pem"}}
    cluster = {"name": "cloud", "namespace": "stg", "external": authority, "protect": False}
    user = {"name": "writer", "secret": {"name": "cloud-login"}}
    engine = Engine(existing={"stg/cloud-login": {"password": "cloud password"}})
    up(engine, target(cluster=cluster, users=[user]), root=tmp_path)
    copies = SOURCE_COPIES | {"cloud-cluster-ca-cert": {"ca.crt": PEM}}
    assert engine.secrets() == {("stg", name): data for name, data in copies.items()}


def test_the_opposite_direction_runs_beside_with_group_and_topics_of_its_own() -> None:
    engine = Engine()
    flow = mirror(
        topics=["accounts", "orders"],
        naming="prefixed",
        groupId="chosen",
        reverse={"topics": ["accounts", "customers"], "groups": ["g"]},
    )
    seen = up(engine, target(mirrors=[flow]))
    there, back = (specs(engine)["stg", name] for name in ("mm2", "mm2-reverse"))
    assert (there["target"]["alias"], there["mirrors"][0]["source"]["alias"]) == ("es-tgt", "es-src")
    assert (back["target"]["alias"], back["mirrors"][0]["source"]["alias"]) == ("es-src", "es-tgt")
    assert back["target"]["bootstrapServers"] == "127.0.0.1:9000"
    assert back["mirrors"][0]["source"]["bootstrapServers"] == "127.0.0.1:9093"
    assert back["target"]["authentication"]["passwordSecret"]["secretName"] == "rt-inv-dev-user"
    assert back["mirrors"][0]["source"]["authentication"]["passwordSecret"]["secretName"] == "writer"
    assert (there["target"]["groupId"], back["target"]["groupId"]) == ("chosen", "mm2-reverse")
    for field in ("configStorageTopic", "offsetStorageTopic", "statusStorageTopic"):
        assert there["target"][field] != back["target"][field]
    assert there["mirrors"][0]["topicsPattern"] == "accounts|orders"
    assert (back["mirrors"][0]["topicsPattern"], back["mirrors"][0]["groupsPattern"]) == ("accounts|customers", "g")
    assert len(engine.secrets()) == len(OWN) + len(SOURCE_COPIES)
    assert set(seen.exports["mirrors"]) == set(seen.exports["verificationRequests"]) == {"mm2", "mm2-reverse"}
    endpoint = seen.exports["verificationRequests"]["mm2-reverse"]
    assert (endpoint["source"]["alias"], endpoint["target"]["alias"]) == ("es-tgt", "es-src")


def test_mutual_tls_at_the_source_copies_certificate_and_key() -> None:
    user = {**SOURCE_OUTPUTS["users"]["rt-inv-dev-user"], "authentication": "tls"}
    pair = {"certificate": "source pair", "privateKey": "source key"}
    cluster = {**SOURCE_OUTPUTS["cluster"], "securityProtocol": "SSL", "saslMechanism": None}
    outputs = with_(cluster=cluster, users={"rt-inv-dev-user": user}, userCredentials={"rt-inv-dev-user": pair})
    engine = Engine(stacks={"dev": outputs})
    seen = up(engine, target())
    assert engine.secrets()["stg", "rt-inv-dev-user"] == {"user.crt": "source pair", "user.key": "source key"}
    authentication = specs(engine)["stg", "mm2"]["mirrors"][0]["source"]["authentication"]
    assert authentication == {
        "type": "tls",
        "certificateAndKey": {"secretName": "rt-inv-dev-user", "certificate": "user.crt", "key": "user.key"},
    }
    request = seen.exports["verificationRequests"]["mm2"]["source"]["client_config"]
    assert request["security.protocol"] == "SSL"
    assert request["ssl.key.pem"] == {"env": "SOURCE_PRIVATE_KEY"}
    environment = seen.exports["verificationEnvironment"]["mm2"]
    assert environment["SOURCE_PRIVATE_KEY"] == "source key"
    assert "source key" not in json.dumps(seen.exports["verificationRequests"])


def test_a_source_without_tls_has_neither_authority_nor_copy_of_one() -> None:
    cluster = {**SOURCE_OUTPUTS["cluster"], "securityProtocol": "SASL_PLAINTEXT", "caSecret": None}
    engine = Engine(stacks={"dev": with_(cluster=cluster, clusterCaCertificate=None)})
    seen = up(engine, target())
    assert engine.secrets() == OWN | {("stg", "rt-inv-dev-user"): {"password": "source password"}}
    assert "tls" not in specs(engine)["stg", "mm2"]["mirrors"][0]["source"]
    assert "SOURCE_CA" not in seen.exports["verificationEnvironment"]["mm2"]


def source_file(folder: Path, **settings: Any) -> None:
    """Write the stack file of the source."""
    config = {
        "platform": {"type": "strimzi"},
        "operator": {"install": "none"},
        "cluster": {"name": "kafka-dev", "namespace": "dev"},
        "users": [{"name": "rt-inv-dev-user"}],
        "topics": [{"name": "items", "partitions": 1, "replicas": 3}],
        **settings,
    }
    document = {"config": {f"rt-inventory:{key}": value for key, value in config.items()}}
    (folder / "Pulumi.dev.yaml").write_text(yaml.safe_dump(document))


def test_the_first_preview_takes_a_source_that_is_not_up_from_its_stack_file(tmp_path: Path) -> None:
    source_file(tmp_path)
    engine = Engine(stacks={}, preview=True)
    seen = up(engine, target(), root=tmp_path)
    assert set(engine.all("v1:Secret")) == {
        ("stg", "writer-credentials"),
        ("stg", "rt-inv-dev-user"),
        ("stg", "kafka-dev-cluster-ca-cert"),
        ("stg", "mm2-break-glass"),
    }
    assert ("stg", "mm2") in engine.all("v1:KafkaMirrorMaker2")
    assert {"mirrors", "verificationRequests", "verificationEnvironment"} <= seen.unknown


def test_what_is_read_from_a_stack_file_is_good_for_a_preview_only(tmp_path: Path) -> None:
    source_file(tmp_path)
    engine = Engine(stacks={})
    with pytest.raises(pulumi.RunError, match=r"which does not exist.*Run `pulumi up -s dev` first"):
        up(engine, target(), root=tmp_path)
    assert not engine.resources


def test_a_user_that_the_stack_file_does_not_declare_is_reported_in_the_preview(tmp_path: Path) -> None:
    source_file(tmp_path, users=[{"name": "somebody"}])
    with pytest.raises(pulumi.RunError, match=r"source\.user must be a user of stack dev .*allowed somebody"):
        up(Engine(stacks={}, preview=True), target(), root=tmp_path)


def test_a_source_that_is_not_required_is_left_out_until_it_is_up(tmp_path: Path) -> None:
    flow = mirror(source={**mirror()["source"], "required": False})
    engine = Engine(stacks={})
    seen = up(engine, target(mirrors=[flow]), root=tmp_path)
    assert not specs(engine)
    assert engine.secrets() == OWN
    assert seen.exports["mirrors"] == {}


def test_a_mirror_that_runs_does_not_go_away_because_its_source_cannot_be_asked(tmp_path: Path) -> None:
    flow = mirror(source={**mirror()["source"], "required": False})
    engine = Engine(stacks={"stg": {"mirrors": {"mm2": {}}}})
    with pytest.raises(pulumi.RunError, match=r"source\.stack must be a stack that is up"):
        up(engine, target(mirrors=[flow]), root=tmp_path)


def test_values_of_secrets_stand_in_no_other_resource() -> None:
    engine = Engine()
    up(engine, target(mirrors=[mirror(namespace="mirrors")], verification={"when": "always"}))
    for (kind, name), inputs in engine.resources.items():
        if kind in ("v1:Secret", "verification:Run"):
            continue
        text = json.dumps(revealed(inputs), default=str)
        assert not [secret for secret in ("source password", PASSWORD) if secret in text], (kind, name)
    assert is_secret(engine.one("verification:Run")["environment"])
