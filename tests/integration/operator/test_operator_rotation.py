"""The operator when credentials change: certificates of users, new passwords, renewed and replaced authorities.

One broker with every kind of listener, and two mirrors of it to itself, one of them with two sources.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from sandbox import pki
from tests.support import records
from tests.support.small_cluster import ALL_RIGHTS, USER, Kit, mirror_spec, rotate, user_spec
from tests.support.waiting import wait_until

CLUSTER, BY_CERTIFICATE, BY_PASSWORD = "turning", "by-certificate", "by-password"
WITH_TWO, WITH_ONE = "with-two", "with-one"
UNSEEN_S, COPIED_WITHIN_S, LOG_END = 12, 60, 6000
SCRAM = {"name": "tls", "port": 9093, "type": "internal", "tls": True, "authentication": {"type": "scram-sha-512"}}
LISTENERS: list[dict[str, Any]] = [
    SCRAM,
    {"name": "mutual", "port": 9094, "type": "route", "tls": True, "authentication": {"type": "tls"}},
    {"name": "open", "port": 9095, "type": "internal", "tls": True},
    {"name": "plain", "port": 9092, "type": "internal", "tls": False},
]


@pytest.fixture(scope="module")
def kit(sandbox: Any) -> Iterator[Kit]:
    kit = Kit(sandbox.state, namespace="operator-rotation", cluster=CLUSTER)
    kit.create_cluster(LISTENERS)
    kit.secret("one-password", {"password": "by-password-one"})
    kit.apply("KafkaUser", BY_PASSWORD, user_spec("one-password", ALL_RIGHTS))
    kit.apply("KafkaUser", BY_CERTIFICATE, certificate_user())
    kit.apply("KafkaTopic", "mirrored", {"partitions": 1, "replicas": 1})
    for kind, name in (("KafkaUser", BY_PASSWORD), ("KafkaUser", BY_CERTIFICATE), ("KafkaTopic", "mirrored")):
        kit.ready(kind, name)
    yield kit
    users = [("KafkaUser", name) for name in (BY_PASSWORD, BY_CERTIFICATE)]
    mirrors = [("KafkaMirrorMaker2", name) for name in (WITH_TWO, WITH_ONE)]
    kit.remove_cluster(*mirrors, *users, ("KafkaTopic", "mirrored"))


@pytest.fixture(scope="module")
def mirrors(kit: Kit) -> Kit:
    """A mirror whose sources log in with a password and with a certificate, and one that uses neither."""
    for name, spec in ((WITH_TWO, two_sources(kit)), (WITH_ONE, mirror_spec(kit, USER))):
        spec["target"] |= {"groupId": name, **{f"{kind}StorageTopic": f"{name}-{kind}" for kind in KINDS}}
        kit.apply("KafkaMirrorMaker2", name, spec)
    for name in (WITH_TWO, WITH_ONE):
        kit.ready("KafkaMirrorMaker2", name)
    return kit


KINDS = ("config", "offset", "status")


def certificate_user() -> dict[str, Any]:
    return {"authentication": {"type": "tls"}, "authorization": {"type": "simple", "acls": ALL_RIGHTS}}


def two_sources(kit: Kit) -> dict[str, Any]:
    spec = mirror_spec(kit, BY_PASSWORD)
    (mirror,) = spec["mirrors"]
    mirror["source"]["authentication"]["username"] = BY_PASSWORD
    source = {**mirror["source"], "alias": "cert", "bootstrapServers": kit.listener("mutual")["bootstrapServers"]}
    pair = {"secretName": BY_CERTIFICATE, "certificate": "user.crt", "key": "user.key"}
    source["authentication"] = {"type": "tls", "certificateAndKey": pair}
    spec["mirrors"].append({**mirror, "source": source})
    return spec


def client(kit: Kit, listener: str, **more: Any) -> dict[str, Any]:
    found = kit.listener(listener)
    settings = {"bootstrap.servers": found["bootstrapServers"], "socket.timeout.ms": 3000, "log_level": 0}
    if found.get("certificates"):
        settings |= {"security.protocol": "SSL", "ssl.ca.pem": found["certificates"][0]}
    return settings | more


def own_certificate(kit: Kit) -> dict[str, str]:
    secret = kit.read_secret(BY_CERTIFICATE)
    return {"ssl.certificate.pem": secret["user.crt"], "ssl.key.pem": secret["user.key"]}


def may_write(settings: dict[str, Any]) -> bool:
    refused: list[Any] = []
    producer = Producer(settings | {"message.timeout.ms": 5000})
    producer.produce("mirrored", value="x", on_delivery=lambda error, _: refused.append(error) if error else None)
    return producer.flush(8) == 0 and not refused


def conditions(kit: Kit, kind: str, name: str) -> dict[str, str]:
    status = (kit.get(kind, name) or {}).get("status") or {}
    return {entry.get("reason", entry["type"]): entry.get("message", "") for entry in status.get("conditions", [])}


def test_every_listener_lets_in_whom_it_is_for_and_nobody_else(kit: Kit) -> None:
    assert kit.admits(kit.client_config())
    assert kit.admits(client(kit, "mutual", **own_certificate(kit)))
    assert kit.admits(client(kit, "open"))
    assert kit.admits(client(kit, "plain"))
    assert not kit.admits(client(kit, "mutual"))
    assert not kit.admits(kit.client_config() | {"bootstrap.servers": kit.listener("mutual")["bootstrapServers"]})
    assert not kit.admits(client(kit, "tls", **own_certificate(kit)))
    forged = pki.user_certificate(pki.authority(f"{CLUSTER}-clients-ca"), BY_CERTIFICATE)
    other = {"ssl.certificate.pem": forged.certificate, "ssl.key.pem": forged.key}
    assert not kit.admits(client(kit, "mutual", **other))


def test_a_listener_without_tls_publishes_no_certificate_and_one_for_the_outside_is_said_to_be_here(kit: Kit) -> None:
    assert "certificates" not in kit.listener("plain")
    assert kit.listener("open")["certificates"] == [kit.read_secret(f"{CLUSTER}-cluster-ca-cert")["ca.crt"]]
    assert "mutual (route)" in conditions(kit, "Kafka", CLUSTER)["ServedOnLoopback"]


def test_the_rights_of_a_certificate_are_those_of_its_user_and_nobody_has_any_without_a_name(kit: Kit) -> None:
    status = kit.ready("KafkaUser", BY_CERTIFICATE)["status"]
    assert (status["username"], status["secret"]) == (f"CN={BY_CERTIFICATE}", BY_CERTIFICATE)
    settings = client(kit, "mutual", **own_certificate(kit))
    wait_until("the user may write", lambda: may_write(settings))
    assert not may_write(client(kit, "open"))
    none: list[Any] = []
    kit.change("KafkaUser", BY_CERTIFICATE, {"spec": {"authorization": {"acls": none}}})
    wait_until("the user may write no more", lambda: not may_write(settings))
    kit.change("KafkaUser", BY_CERTIFICATE, {"spec": {"authorization": {"acls": ALL_RIGHTS}}})
    wait_until("the user may write again", lambda: may_write(settings))


# Both before there are mirrors, which would only restart their workers.
def test_a_renewed_clients_authority_gives_users_new_certificates_that_open_the_door(kit: Kit) -> None:
    old = kit.read_secret(BY_CERTIFICATE)
    kit.annotate_secret(f"{CLUSTER}-clients-ca-cert", "strimzi.io/force-renew")
    wait_until(
        "the user's certificate is new", lambda: kit.read_secret(BY_CERTIFICATE)["user.crt"] != old["user.crt"], 180
    )
    new = kit.read_secret(BY_CERTIFICATE)
    assert new["ca.crt"] == authority(kit, "clients-ca") != old["ca.crt"]
    admitted = client(kit, "mutual", **own_certificate(kit))
    wait_until("the new certificate is admitted", lambda: kit.admits(admitted), 60)


def test_a_renewed_cluster_authority_is_published_and_locks_nobody_out(kit: Kit) -> None:
    old, broker = authority(kit, "cluster-ca"), kit.pid(kit.broker())
    kit.annotate_secret(f"{CLUSTER}-cluster-ca-cert", "strimzi.io/force-renew")
    wait_until("the new certificate is in the status", lambda: published(kit) not in (old, ""), 180)
    assert authority(kit, "cluster-ca") == published(kit) != old
    assert "strimzi.io/force-renew" not in annotations(kit, f"{CLUSTER}-cluster-ca-cert")
    assert kit.pid(kit.broker()) not in (broker, None)
    for trusted in (old, published(kit)):
        trusting = kit.client_config() | {"ssl.ca.pem": trusted}
        wait_until("a client is admitted", lambda client=trusting: kit.admits(client), 60)


def require_copies_by_certificate(kit: Kit) -> None:
    """Write a record, and wait until the mirror that logs in with a certificate has copied it."""
    value = f"by certificate {time.time_ns()}"
    records.write(client(kit, "mutual", **own_certificate(kit)), "mirrored", [value])
    wait_until(
        "the record is copied",
        lambda: value in records.read(kit.client_config(), "cert.mirrored"),
        COPIED_WITHIN_S,
        otherwise=lambda: log(kit, kit.worker(WITH_TWO))[-LOG_END:],
    )


def test_a_mirror_that_logs_in_with_a_certificate_copies_records(mirrors: Kit) -> None:
    require_copies_by_certificate(mirrors)


def test_a_new_password_restarts_the_connectors_of_its_source_and_nothing_else(mirrors: Kit) -> None:
    kit = mirrors
    workers = [kit.worker(name) for name in (WITH_TWO, WITH_ONE)]
    before = [kit.pid(worker) for worker in workers]
    marks = {worker: len(log(kit, worker)) for worker in [*workers, "operator"]}
    kit.secret("one-password", {"password": "by-password-two"})
    time.sleep(UNSEEN_S)
    assert kit.read_secret(BY_PASSWORD)["password"] == "by-password-one", "the user operator does not watch that Secret"
    rotate(kit, BY_PASSWORD, 2)
    kit.ready("KafkaUser", BY_PASSWORD)
    assert kit.read_secret(BY_PASSWORD)["password"] == "by-password-two", "Ready in the new generation: it is applied"
    assert annotations(kit, BY_PASSWORD) == {"rt-inventory/password-generation": "2"}
    wait_until("the user's Secret has it", lambda: kit.read_secret(BY_PASSWORD)["password"] == "by-password-two", 10)
    wait_until("it is admitted", lambda: kit.admits(kit.client_config(BY_PASSWORD, "by-password-two")), 10)
    assert not kit.admits(kit.client_config(BY_PASSWORD, "by-password-one"))
    source = "restart connector here->there.MirrorSourceConnector with its new secrets"
    wait_until("the source connector restarts", lambda: source in log(kit, "operator")[marks["operator"] :], 60)
    kit.ready("KafkaMirrorMaker2", WITH_TWO)
    said = log(kit, "operator")[marks["operator"] :]
    assert "cert->there" not in said
    assert f"{WITH_ONE}:" not in said
    assert [kit.pid(worker) for worker in workers] == before

    def restarts(worker: str) -> int:
        return log(kit, worker)[marks[worker] :].count("to restart connector")

    wait_until("both connectors of the source restart", lambda: restarts(workers[0]) >= 2, 60)
    assert restarts(workers[1]) == 0


def log(kit: Kit, process: str) -> str:
    return (kit.state.logs / f"{process}.log").read_text(encoding="utf-8", errors="replace")


def authority(kit: Kit, kind: str) -> str:
    return kit.read_secret(f"{CLUSTER}-{kind}-cert")["ca.crt"]


def annotations(kit: Kit, name: str) -> dict[str, str]:
    return dict(kit.core.read_namespaced_secret(name, kit.namespace).metadata.annotations or {})


def published(kit: Kit) -> str:
    return str(kit.listener()["certificates"][0])


def test_a_replaced_cluster_authority_ends_the_old_one_and_the_mirrors_follow(mirrors: Kit) -> None:
    kit = mirrors
    old = authority(kit, "cluster-ca")
    kit.annotate_secret(f"{CLUSTER}-cluster-ca", "strimzi.io/force-replace")
    wait_until("the new certificate is in the status", lambda: published(kit) != old, 240)
    wait_until("it is admitted", lambda: kit.admits(kit.client_config()), 60)
    assert not kit.admits(kit.client_config() | {"ssl.ca.pem": old})
    assert set(kit.read_secret(f"{CLUSTER}-cluster-ca-cert")) == {"ca.crt"}
    assert not [name for name in annotations(kit, f"{CLUSTER}-cluster-ca") if "force" in name]
    for name in (WITH_TWO, WITH_ONE):
        kit.ready("KafkaMirrorMaker2", name, 240)
    require_copies_by_certificate(kit)


def test_a_user_that_gets_a_password_instead_of_a_certificate_loses_the_certificates_rights(kit: Kit) -> None:
    settings = client(kit, "mutual", **own_certificate(kit))
    wait_until("the certificate may write", lambda: may_write(settings))
    kit.secret("changed-password", {"password": "no-more-certificate"})
    spec = user_spec("changed-password", ALL_RIGHTS)
    kit.change("KafkaUser", BY_CERTIFICATE, {"spec": spec})
    kit.ready("KafkaUser", BY_CERTIFICATE)
    wait_until("the certificate may write no more", lambda: not may_write(settings))
    assert set(kit.read_secret(BY_CERTIFICATE)) == {"password", "sasl.jaas.config"}
    assert kit.admits(kit.client_config(BY_CERTIFICATE, "no-more-certificate"))
