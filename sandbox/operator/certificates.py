"""Certificates of one Kafka cluster: its two authorities in Secrets, its own files, and its users' Secrets.

`<cluster>-cluster-ca` signs brokers, `<cluster>-clients-ca` signs users. They are created, renewed and replaced as with
Strimzi: annotating the Secret of the certificate with strimzi.io/force-renew gives the same private key a new
certificate, and clients that trust the old one still connect. Annotating the Secret of the key with
strimzi.io/force-replace makes a new key; the old certificate stays in the Secret as ca-<end>.crt, trusted until no
certificate signed by it is in use.

Files of a cluster: `ca.crt` is the authority that is published; `trusted.crt` adds its earlier keys and is what brokers
and operator trust among themselves; `clients-ca.crt` is what listeners with client certificates trust.
`clients-ca-issuer.crt` is written once all brokers run with it: from then on users get certificates of that authority.

Owns the Secrets and the files. Does not restart brokers, and does not own the users' ACLs.
"""

import logging
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sandbox import pki
from sandbox.operator import NotReadyError, kafka_nodes
from sandbox.operator.admin import ClusterLookup
from sandbox.operator.kafka_nodes import CLIENTS, CLIENTS_ISSUER, PUBLISHED, TRUSTED, Layout, Node
from sandbox.operator.kubernetes_api import LABEL, Kubernetes, Object, StoredSecret
from sandbox.state import write_private

from . import metrics_config

logger = logging.getLogger(__name__)

CLUSTER_CA, CLIENTS_CA = "cluster-ca", "clients-ca"
RENEW, REPLACE = "strimzi.io/force-renew", "strimzi.io/force-replace"
CERTIFICATE_GENERATION, KEY_GENERATION = "strimzi.io/ca-cert-generation", "strimzi.io/ca-key-generation"
_SPEC = {CLUSTER_CA: "clusterCa", CLIENTS_CA: "clientsCa"}


@dataclass(frozen=True)
class Authority:
    """Who signs now, and the certificates of earlier keys that are trusted still."""

    current: pki.KeyPair
    former: tuple[str, ...] = ()

    @property
    def trusted(self) -> tuple[str, ...]:
        """All certificates to trust, the current one first."""
        return (self.current.certificate, *self.former)

    @property
    def bundle(self) -> str:
        """All certificates to trust in one PEM text."""
        return "\n".join(certificate.strip() for certificate in self.trusted) + "\n"

    def signed(self, certificate: str) -> bool:
        """True if a trusted authority signed this certificate and it is valid."""
        return any(pki.is_issued_by(certificate, trusted) for trusted in self.trusted)


def stored_authority(kubernetes: Kubernetes, namespace: str, cluster: str, kind: str) -> Authority | None:
    """The authority of the present Secrets, None if they are not complete."""
    found = _read_authority(kubernetes, namespace, cluster, kind)
    return _authority(*found) if found else None


def reconcile_authority(kubernetes: Kubernetes, kafka: Object, kind: str) -> Authority:
    """The authority after doing what is asked of it: created if it is missing, renewed or replaced if annotated so.

    Raises NotReadyError if it is missing and by the resource the user brings it.
    """
    namespace, cluster = kafka["metadata"]["namespace"], kafka["metadata"]["name"]
    settings = kafka["spec"].get(_SPEC[kind]) or {}
    own = settings.get("generateCertificateAuthority", True)
    validity_days = int(settings.get("validityDays") or 365)
    name = f"{cluster}-{kind}"
    found = _read_authority(kubernetes, namespace, cluster, kind)
    if found is None:
        if not own:
            raise NotReadyError(
                "AuthorityNotFound",
                f"Kafka {cluster}: {_SPEC[kind]}.generateCertificateAuthority is false, so the Secrets {name} (ca.key) "
                f"and {name}-cert (ca.crt) must exist (at least one value is missing). Create them.",
                retry_s=2,
            )
        new = Authority(pki.authority(name, validity_days=validity_days))
        _write_authority(kubernetes, kafka, kind, new, certificate=0, key=0)
        return new
    key, certificate = found
    known = _authority(key, certificate)
    if not own:
        return known
    generation = int(key.annotations.get(KEY_GENERATION, 0))
    renewals = int(certificate.annotations.get(CERTIFICATE_GENERATION, 0))
    if certificate.annotations.get(RENEW) == "true":
        logger.info("%s/%s: new certificate, same key", namespace, name)
        pair = pki.authority(name, generation, known.current.key, validity_days)
        known = Authority(pair, known.former)
        _write_authority(kubernetes, kafka, kind, known, certificate=renewals + 1, key=generation)
    elif key.annotations.get(REPLACE) == "true":
        logger.info("%s/%s: new key and certificate", namespace, name)
        pair = pki.authority(name, generation + 1, validity_days=validity_days)
        known = Authority(pair, known.trusted)
        _write_authority(kubernetes, kafka, kind, known, certificate=renewals + 1, key=generation + 1)
    elif not pki.belong_together(known.current):
        # Only one of the two Secrets was written when the operator was stopped in the middle of a replacement.
        logger.info("%s/%s: new certificate for the new key", namespace, name)
        known = Authority(pki.authority(name, generation, known.current.key, validity_days), known.trusted)
        _write_authority(kubernetes, kafka, kind, known, certificate=renewals + 1, key=generation)
    elif ended := [former for former in known.former if pki.ends_at(former) < datetime.now(UTC)]:
        known = Authority(known.current, tuple(former for former in known.former if former not in ended))
        _write_authority(kubernetes, kafka, kind, known, certificate=renewals, key=generation)
    return known


def forget_former_keys(kubernetes: Kubernetes, kafka: Object, kind: str) -> Authority | None:
    """The authority without its earlier keys, once nothing that they signed is in use."""
    found = _read_authority(kubernetes, kafka["metadata"]["namespace"], kafka["metadata"]["name"], kind)
    if found is None:
        return None
    key, certificate = found
    new = Authority(_authority(key, certificate).current)
    generations = (certificate.annotations.get(CERTIFICATE_GENERATION, 0), key.annotations.get(KEY_GENERATION, 0))
    _write_authority(kubernetes, kafka, kind, new, certificate=int(generations[0]), key=int(generations[1]))
    return new


def _read_authority(
    kubernetes: Kubernetes, namespace: str, cluster: str, kind: str
) -> tuple[StoredSecret, StoredSecret] | None:
    key = kubernetes.stored_secret(namespace, f"{cluster}-{kind}")
    certificate = kubernetes.stored_secret(namespace, f"{cluster}-{kind}-cert")
    complete = key and certificate and key.values.get("ca.key") and certificate.values.get("ca.crt")
    return (key, certificate) if key and certificate and complete else None


def _authority(key: StoredSecret, certificate: StoredSecret) -> Authority:
    former = sorted(name for name in certificate.values if name.endswith(".crt") and name != "ca.crt")
    return Authority(
        pki.KeyPair(certificate.values["ca.crt"], key.values["ca.key"]),
        tuple(certificate.values[name] for name in former),
    )


def _write_authority(
    kubernetes: Kubernetes, kafka: Object, kind: str, authority: Authority, *, certificate: int, key: int
) -> None:
    """Both Secrets, the key's first."""
    cluster = kafka["metadata"]["name"]
    labels = {LABEL: cluster, "strimzi.io/kind": "Kafka", "strimzi.io/component-type": "certificate-authority"}
    name = f"{cluster}-{kind}"
    values = {"ca.crt": authority.current.certificate}
    values |= {f"ca-{pki.ends_at(former):%Y-%m-%dT%H-%M-%SZ}.crt": former for former in authority.former}
    kubernetes.write_secret(kafka, name, {"ca.key": authority.current.key}, labels, {KEY_GENERATION: str(key)})
    kubernetes.write_secret(kafka, f"{name}-cert", values, labels, {CERTIFICATE_GENERATION: str(certificate)})


def write_trust(plan: Layout, cluster: Authority, clients: Authority) -> None:
    """Put what is trusted into files; brokers read them at their next start."""
    write_private(plan.folder / PUBLISHED, cluster.current.certificate)
    write_private(plan.folder / TRUSTED, cluster.bundle)
    write_private(plan.folder / CLIENTS, clients.bundle)


def issue_certificates(plan: Layout, authority: Authority, accepted: Authority) -> None:
    """Give operator and brokers certificates of `authority`, except where they have one that `accepted` signed."""
    ca, cluster = authority.current, plan.cluster
    if not _is_signed(plan, "operator.crt", accepted):
        own = pki.operator_certificate(ca, cluster)
        write_private(plan.folder / "operator.key", own.key)
        write_private(plan.folder / "operator.crt", own.certificate)
    for node in plan.nodes:
        if not _is_signed(plan, f"{node.id}/broker.crt", accepted):
            pair = pki.broker_certificate(ca, cluster, plan.namespace, plan.pod(node))
            write_private(plan.home(node) / "keystore.pem", pair.keystore)
            write_private(plan.home(node) / "broker.crt", pair.certificate)


def record_clients_ca(plan: Layout, clients: Authority) -> None:
    """Remember that every broker trusts this authority of the clients."""
    write_private(plan.folder / CLIENTS_ISSUER, clients.current.certificate)


def is_trusted_by_all_brokers(plan: Layout, clients: Authority) -> bool:
    """True once every broker trusts this authority of the clients."""
    path = plan.folder / CLIENTS_ISSUER
    return path.exists() and path.read_text(encoding="utf-8") == clients.current.certificate


def files_read_at_start(plan: Layout, node: Node) -> list[bytes]:
    """Contents of the files that a broker reads only at its start."""
    home, folder = plan.home(node), plan.folder
    paths = [home / "server.properties", home / "broker.crt", folder / TRUSTED, folder / CLIENTS]
    rules = home / metrics_config.FILE
    paths += [rules] if rules.exists() else []
    return [path.read_bytes() for path in paths]


def _is_signed(plan: Layout, name: str, accepted: Authority) -> bool:
    path = plan.folder / name
    return path.exists() and accepted.signed(path.read_text(encoding="utf-8"))


STORE_PASSWORD_LENGTH = 16


def user_secret_values(lookup: ClusterLookup, resource: Object, cluster: str) -> tuple[dict[str, str], bool]:
    """Values of the Secret of a user, and whether they are final.

    The present values are kept while their certificate is good. A certificate of a new authority is given out once
    every broker trusts it; until then the present one is kept and is not final.
    """
    name, namespace = resource["metadata"]["name"], resource["metadata"]["namespace"]
    clients = stored_authority(lookup.kubernetes, namespace, cluster, CLIENTS_CA)
    plan = kafka_nodes.load(lookup.folder / namespace / cluster, namespace, cluster)
    known = lookup.kubernetes.secret(namespace, name) or {}
    if clients and plan and is_trusted_by_all_brokers(plan, clients):
        if _is_good_user_secret(known, name, clients.current.certificate):
            return known, True
        return _new_user_secret(clients.current, name, resource["spec"]["authentication"]), True
    if clients and _is_good_user_secret(known, name, *clients.trusted):
        return known, False
    raise NotReadyError(
        "ClusterNotReady", f"KafkaUser {name}: the brokers of {cluster} do not trust its authority yet.", retry_s=1
    )


def _is_good_user_secret(known: dict[str, str], name: str, *accepted: str) -> bool:
    complete = all(known.get(key) for key in ("ca.crt", "user.crt", "user.key", "user.p12", "user.password"))
    return (
        complete
        and pki.common_name(known["user.crt"]) == name
        and any(pki.is_issued_by(known["user.crt"], certificate) for certificate in accepted)
    )


def _new_user_secret(ca: pki.KeyPair, name: str, authentication: dict[str, Any]) -> dict[str, str]:
    pair = pki.user_certificate(ca, name, int(authentication.get("validityDays") or 365))
    password = secrets.token_urlsafe(STORE_PASSWORD_LENGTH)
    store = pki.pkcs12_store(pair, ca.certificate, name, password)
    return {
        "ca.crt": ca.certificate,
        "user.crt": pair.certificate,
        "user.key": pair.key,
        "user.p12": store.decode(errors="surrogateescape"),
        "user.password": password,
    }
