"""Users: where their credentials come from, what is kept secret, what is read, and what a rotation replaces."""

from typing import Any

import pulumi
import pytest

from ...support.pulumi_engine import Engine, is_secret, mirror, revealed, target, up
from ...support.recorded_program import PASSWORD

CLOUD = {
    "name": "cloud",
    "namespace": "stg",
    "external": {"bootstrapServers": ["cloud.example.com:9093"]},
    "protect": False,
}
BY_CERTIFICATE = {"listeners": [{"name": "tls", "port": 9093, "authentication": "tls"}]}
MANAGED = {"name": "kafka-stg", "namespace": "stg", "protect": False}
# As the operator writes it: the key store is no text.
PAIR: dict[str, str | bytes] = {"user.crt": "certificate", "user.key": "key", "user.p12": b"\x30\x82\xff\xfe"}


def users(*found: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """A stack with these users, exported, and no mirror."""
    return target(users=[{"exported": True, **each} for each in found], mirrors=[], **settings)


def test_a_generated_password_is_a_secret_from_birth_and_lies_in_one_secret() -> None:
    engine = Engine()
    seen = up(engine, users({"name": "app", "passwordLength": 40}))
    password = engine.resources["randomPassword:RandomPassword", "users-app-password"]
    assert {key: password.get(key) for key in ("length", "special", "keepers")} == {
        "length": 40,
        "special": False,
        "keepers": None,
    }
    secret = engine.one("v1:Secret")
    assert is_secret(secret["stringData"])
    assert engine.secrets() == {("stg", "app-credentials"): {"password": PASSWORD}}
    assert list(engine.asked("users-app").dependencies) == [
        urn for urn in engine.asked("users-app").dependencies if urn.endswith("users-app-credentials")
    ]
    assert {"userPasswords", "userCredentials"} <= seen.secrets
    assert "users" not in seen.secrets
    assert seen.exports["users"]["app"] == {
        "secretName": "app",
        "key": "password",
        "authentication": "scram-sha-512",
        "username": "app",
        "certificateKey": "user.crt",
        "privateKeyKey": "user.key",
        "application": True,
    }


@pytest.mark.parametrize(("generation", "keepers"), [(1, None), (2, {"generation": "2"}), (7, {"generation": "7"})])
def test_a_higher_generation_replaces_the_password_and_the_first_leaves_old_ones_alone(
    generation: int, keepers: dict[str, str] | None
) -> None:
    engine = Engine()
    up(engine, users({"name": "app", "passwordGeneration": generation}))
    assert engine.resources["randomPassword:RandomPassword", "users-app-password"].get("keepers") == keepers
    assert list(engine.asked("users-app-password").ignoreChanges) == ["length"]


def test_a_rotation_changes_the_spec_of_the_user_so_that_its_operator_reads_the_password_at_once() -> None:
    """The annotation on its Secret says which password that holds; Ready in the new generation says so too."""
    specs = {}
    for generation in (1, 2, 3):
        engine = Engine()
        up(engine, users({"name": "app", "passwordGeneration": generation}))
        specs[generation] = engine.one("v1:KafkaUser")["spec"]
    assert "template" not in specs[1], "a stack without a rotation stays as it was"
    for generation in (2, 3):
        metadata = {"annotations": {"rt-inventory/password-generation": str(generation)}}
        assert specs[generation].pop("template") == {"secret": {"metadata": metadata}}
        assert specs[generation] == specs[1]


def test_what_logs_in_with_a_password_waits_until_the_cluster_knows_it() -> None:
    engine = Engine()
    up(
        engine,
        target(
            mirrors=[
                mirror(active="target", state="stopped", clients={"source": "rt-inv-dev-user", "target": "writer"})
            ]
        ),
    )
    needs = {urn.rpartition("::")[2] for urn in engine.asked("mm2-clients-secret").dependencies}
    assert {"users-writer", "users-writer-password"} <= needs


def test_user_and_secret_are_protected_with_the_cluster_and_the_password_can_be_rotated() -> None:
    for protect in (True, False):
        engine = Engine()
        up(engine, users({"name": "app"}, cluster={**MANAGED, "protect": protect}))
        guarded = {name: engine.asked(f"users-app{name}").protect for name in ("", "-credentials", "-password")}
        assert guarded == {"": protect, "-credentials": protect, "-password": False}


def test_an_existing_password_is_read_where_it_is_and_clients_still_mount_the_operators_secret() -> None:
    engine = Engine(existing={"stg/from-vault": {"pw": "vault password"}})
    user = {"name": "app", "secret": {"name": "from-vault", "passwordKey": "pw"}}
    seen = up(engine, users(user))
    assert not {"randomPassword:RandomPassword", "v1:Secret"} & set(engine.kinds())
    reference = engine.one("v1:KafkaUser")["spec"]["authentication"]["password"]["valueFrom"]["secretKeyRef"]
    assert reference == {"name": "from-vault", "key": "pw"}
    assert seen.exports["userCredentials"] == {"app": {"password": "vault password"}}
    facts = seen.exports["users"]["app"]
    assert (facts["secretName"], facts["key"]) == ("app", "password")


def test_a_password_that_the_operator_made_is_read_and_none_is_generated() -> None:
    engine = Engine(existing={"stg/app": {"password": "of the operator", "sasl.jaas.config": "x"}})
    seen = up(engine, users({"name": "app", "generatedBy": "operator"}))
    assert not {"randomPassword:RandomPassword", "v1:Secret"} & set(engine.kinds())
    assert engine.reads == {"users-app-login": "stg/app"}
    assert seen.exports["userCredentials"] == {"app": {"password": "of the operator"}}


def test_a_certificate_is_read_from_the_secret_that_the_operator_writes() -> None:
    engine = Engine(existing={"stg/app": PAIR})
    seen = up(engine, users({"name": "app", "authentication": "tls"}, cluster={**MANAGED, **BY_CERTIFICATE}))
    assert engine.one("v1:KafkaUser")["spec"] == {"authentication": {"type": "tls"}}
    assert engine.reads == {"users-app-login": "stg/app"}
    assert seen.exports["userCredentials"] == {"app": {"certificate": "certificate", "privateKey": "key"}}
    assert seen.exports["userPasswords"] == {"app": None}
    assert {"userPasswords", "userCredentials"} <= seen.secrets
    assert (seen.exports["cluster"]["securityProtocol"], seen.exports["cluster"]["saslMechanism"]) == ("SSL", None)


def test_the_first_preview_does_not_look_for_a_certificate_that_no_operator_wrote_yet() -> None:
    engine = Engine(preview=True)
    seen = up(engine, users({"name": "app", "authentication": "tls"}, cluster={**MANAGED, **BY_CERTIFICATE}))
    assert not engine.reads
    assert {"userCredentials", "userPasswords"} <= seen.unknown
    assert "users" not in seen.unknown


@pytest.mark.parametrize(
    ("user", "existing", "credentials", "facts"),
    [
        (
            {"authentication": "plain", "username": "token", "secret": {"name": "login", "passwordKey": "apikey"}},
            {"apikey": "cloud key"},
            {"password": "cloud key"},
            {"secretName": "login", "key": "apikey", "username": "token"},
        ),
        (
            {"authentication": "scram-sha-256", "secret": {"name": "login"}},
            {"password": "p"},
            {"password": "p"},
            {"secretName": "login", "key": "password", "username": "app"},
        ),
        (
            {
                "authentication": "tls",
                "secret": {"name": "login", "certificateKey": "tls.crt", "privateKeyKey": "tls.key"},
            },
            {"tls.crt": "c", "tls.key": "k"},
            {"certificate": "c", "privateKey": "k"},
            {"secretName": "login", "certificateKey": "tls.crt", "privateKeyKey": "tls.key"},
        ),
    ],
)
def test_an_external_clusters_user_is_only_known_by_its_secret(
    user: dict[str, Any], existing: dict[str, str], credentials: dict[str, str], facts: dict[str, str]
) -> None:
    engine = Engine(existing={"stg/login": existing})
    seen = up(engine, users({"name": "app", **user}, cluster=CLOUD))
    assert not {"v1:KafkaUser", "v1:Secret", "randomPassword:RandomPassword"} & set(engine.kinds())
    assert seen.exports["userCredentials"] == {"app": credentials}
    assert {key: seen.exports["users"]["app"][key] for key in facts} == facts
    protocol = "SSL" if user["authentication"] == "tls" else "SASL_SSL"
    assert seen.exports["cluster"]["securityProtocol"] == protocol


def test_a_user_of_the_wrong_kind_of_secret_is_reported_the_missing_key() -> None:
    user = {"name": "app", "authentication": "plain", "username": "token", "secret": {"name": "login"}}
    engine = Engine(existing={"stg/login": {"apikey": "cloud key"}})
    with pytest.raises(pulumi.RunError, match=r"Secret login: must have the key password .got apikey in stg") as error:
        up(engine, users(user, cluster=CLOUD))
    assert "cloud key" not in str(error.value)


def test_rights_reach_the_users_resource_with_the_ready_made_sets_expanded() -> None:
    engine = Engine()
    sets = [{"set": "consumer", "topics": ["items"], "groups": ["g"]}]
    up(engine, users({"name": "app", "aclSets": sets}))
    written = revealed(engine.one("v1:KafkaUser")["spec"]["authorization"])
    named = [(rule["resource"]["type"], rule["resource"]["name"], rule["operations"]) for rule in written["acls"]]
    assert named == [("topic", "items", ["Read", "Describe"]), ("group", "g", ["Read", "Describe"])]
