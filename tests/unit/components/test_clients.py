"""The Secret by which applications reach the active side: its values, as whom, and when there is none."""

import base64
from typing import Any

import pytest

from settings.users import ACTIVE_LABEL

from ...support.pulumi_engine import Engine, is_secret, mirror, revealed, target, up
from ...support.recorded_program import CERTIFICATE, PASSWORD, SOURCE_OUTPUTS

CLIENTS = {"source": "shop", "target": "shop-stg"}
SHOP = {**SOURCE_OUTPUTS["users"]["rt-inv-dev-user"], "secretName": "shop", "username": "shop"}
DEV: dict[str, Any] = {
    **SOURCE_OUTPUTS,
    "users": {**SOURCE_OUTPUTS["users"], "shop": SHOP},
    "userCredentials": {**SOURCE_OUTPUTS["userCredentials"], "shop": {"password": 'pass"word\\'}},
}
USERS = [{"name": "writer"}, {"name": "shop-stg"}]
JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required"
INLINE = CERTIFICATE.replace("\n", "\\n") + "\\n"


def switched(active: str = "target", **more: Any) -> dict[str, Any]:
    """A mirror whose applications use a side; at rest while that is the target."""
    state = {"state": "stopped"} if active == "target" else {}
    return mirror(active=active, clients=CLIENTS, **state, **more)


def made(*mirrors: dict[str, Any], **settings: Any) -> Engine:
    engine = settings.pop("engine", None) or Engine(stacks={"dev": DEV})
    up(engine, target(mirrors=list(mirrors), **{"users": USERS, **settings}))
    return engine


def secret(engine: Engine, name: str = "mm2-clients") -> dict[str, str]:
    """What the Secret says, decoded."""
    data = revealed(engine.one("v1:Secret", name)["data"])
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def test_while_the_source_is_active_applications_get_its_address_and_their_own_user_there() -> None:
    engine = made(switched("source"))
    values = secret(engine)
    properties = values.pop("client.properties").splitlines()
    assert values == {
        "type": "kafka",
        "bootstrapServers": "127.0.0.1:9000",
        "securityProtocol": "SASL_SSL",
        "saslMechanism": "SCRAM-SHA-512",
        "user": "shop",
        "password": 'pass"word\\',
        "sasl.jaas.config": f'{JAAS} username="shop" password="pass\\"word\\\\";',
        "ca.crt": "source certificate",
    }
    assert properties == [
        "bootstrap.servers=127.0.0.1:9000",
        "security.protocol=SASL_SSL",
        "ssl.truststore.type=PEM",
        "ssl.truststore.certificates=source certificate",
        "sasl.mechanism=SCRAM-SHA-512",
        f'sasl.jaas.config={JAAS} username="shop" password="pass\\\\"word\\\\\\\\";',
    ]


def test_while_the_target_is_active_they_get_this_stacks_cluster_and_their_user_here() -> None:
    values = secret(made(switched()))
    assert (values["bootstrapServers"], values["user"]) == ("127.0.0.1:9093", "shop-stg")
    assert (values["password"], values["ca.crt"]) == (PASSWORD, CERTIFICATE + "\n")
    assert f"ssl.truststore.certificates={INLINE}\n" in values["client.properties"]


def test_the_secret_says_what_it_is_and_whom_it_names_and_every_value_is_a_secret() -> None:
    for active in ("source", "target"):
        inputs = made(switched(active, namespace="mirrors")).one("v1:Secret", "mm2-clients")
        assert inputs["type"] == "servicebinding.io/kafka"
        assert inputs["metadata"]["namespace"] == "mirrors"
        assert inputs["metadata"]["labels"][ACTIVE_LABEL] == active
        assert inputs["metadata"]["annotations"] == {"pulumi.com/patchForce": "true"}
        assert is_secret(inputs["data"])
        assert "stringData" not in inputs


def test_it_is_written_after_the_mirror_is_as_declared() -> None:
    engine = made(switched())
    needed = {urn.rsplit("::", 1)[-1] for urn in engine.asked("mm2-clients").dependencies}
    assert "mm2-mirror" in needed


def test_a_user_with_a_certificate_gets_certificate_and_key_in_place_of_a_password() -> None:
    files = {"user.crt": "certificate", "user.key": "key"}
    engine = Engine(stacks={"dev": DEV}, existing={f"stg/{user['name']}": files for user in USERS})
    listeners = [{"name": "tls", "port": 9093, "authentication": "tls"}]
    made(
        switched(),
        engine=engine,
        cluster={"name": "kafka-stg", "namespace": "stg", "protect": False, "listeners": listeners},
        users=[{**user, "authentication": "tls"} for user in USERS],
    )
    values = secret(engine)
    properties = values.pop("client.properties")
    assert values == {
        "type": "kafka",
        "bootstrapServers": "127.0.0.1:9093",
        "securityProtocol": "SSL",
        "user": "shop-stg",
        "ca.crt": CERTIFICATE + "\n",
        "user.crt": "certificate",
        "user.key": "key",
    }
    assert "ssl.keystore.type=PEM\nssl.keystore.certificate.chain=certificate\nssl.keystore.key=key\n" in properties
    assert "sasl" not in properties


def test_a_public_authority_needs_no_truststore() -> None:
    cluster = {k: v for k, v in SOURCE_OUTPUTS["cluster"].items() if k != "caSecret"}
    engine = Engine(stacks={"dev": {**DEV, "cluster": cluster, "clusterCaCertificate": None}})
    values = secret(made(switched("source"), engine=engine))
    assert "ca.crt" not in values
    assert "truststore" not in values["client.properties"]


def test_without_clients_nothing_is_made() -> None:
    engine = Engine(stacks={"dev": DEV})
    seen = up(engine, target(users=USERS))
    assert not [name for _, name in engine.resources if "clients" in name]
    assert not [kind for kind, _ in engine.resources if "Clients" in kind]
    assert seen.exports["mirrors"]["mm2"]["clientsSecret"] is None


def test_an_external_source_has_no_user_for_applications() -> None:
    source = {"name": "cloud", "cluster": {"bootstrapServers": ["cloud:9093"]}, "secret": {"name": "cloud-login"}}
    flow = {"source": {"alias": "es-src", "external": source}, "clients": {"target": "shop-stg"}}
    login = {"stg/cloud-login": {"password": "of the mirror"}}
    engine = made(mirror(**flow), engine=Engine(existing=login))
    assert ("stg", "mm2-clients") not in engine.all("v1:Secret")
    engine = made(mirror(**flow, active="target", state="stopped"), engine=Engine(existing=login))
    assert secret(engine)["user"] == "shop-stg"


def test_what_is_exported_says_state_active_side_and_secret_of_each_direction() -> None:
    engine = Engine(stacks={"dev": DEV})
    flow = switched("target", naming="prefixed", reverse={"topics": ["back"]})
    seen = up(engine, target(users=USERS, mirrors=[flow]))
    wanted = ("state", "active", "clientsSecret")
    exported = {name: tuple(facts[key] for key in wanted) for name, facts in seen.exports["mirrors"].items()}
    assert exported == {"mm2": ("stopped", "target", "mm2-clients"), "mm2-reverse": ("stopped", None, None)}
    assert len([name for _, name in engine.all("v1:Secret") if name.endswith("-clients")]) == 1


@pytest.mark.parametrize("restart", [True, False])
def test_a_failover_learns_whether_to_restart_the_workloads(restart: bool) -> None:
    engine = Engine(stacks={"dev": DEV})
    clients = {**CLIENTS, **({"restart": True} if restart else {})}
    seen = up(engine, target(users=USERS, mirrors=[mirror(clients=clients)]))
    assert seen.exports["mirrors"]["mm2"].get("restartClients", False) is restart


def test_a_user_for_applications_that_the_source_lacks_is_reported_before_anything_is_created() -> None:
    engine = Engine()
    with pytest.raises(Exception, match=r"mirror mm2: clients\.source must be a user of stack dev \(got shop, "):
        up(engine, target(users=USERS, mirrors=[switched("source")]))
    assert not engine.resources
