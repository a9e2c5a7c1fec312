"""The two authorities of a Kafka cluster in their Secrets: created, renewed, replaced as with Strimzi.

`<cluster>-cluster-ca` signs brokers, `<cluster>-clients-ca` signs users. Annotating the Secret of the certificate with
strimzi.io/force-renew gives the same private key a new certificate: whoever trusts the old one goes on working.
Annotating the Secret of the key with strimzi.io/force-replace makes a new key; the old certificate stays in the Secret
as ca-<end>.crt and stays trusted until nothing signed by it is in use. Owns the Secrets; does not own the
certificates that are signed, nor the restarts that a change needs.
"""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime

from . import pki
from .errors import NotReadyError
from .kubernetes_api import LABEL, Kubernetes, Object
from .seen_secrets import StoredSecret

logger = logging.getLogger(__name__)

CLUSTER, CLIENTS = "cluster-ca", "clients-ca"
RENEW, REPLACE = "strimzi.io/force-renew", "strimzi.io/force-replace"
CERTIFICATE_GENERATION, KEY_GENERATION = "strimzi.io/ca-cert-generation", "strimzi.io/ca-key-generation"
_SPEC = {CLUSTER: "clusterCa", CLIENTS: "clientsCa"}


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


def stored(kubernetes: Kubernetes, namespace: str, cluster: str, kind: str) -> Authority | None:
    """The authority as its Secrets hold it now, None if they are not complete."""
    found = _read(kubernetes, namespace, cluster, kind)
    return _authority(*found) if found else None


def keep(kubernetes: Kubernetes, kafka: Object, kind: str) -> Authority:
    """The authority after doing what is asked of it: created if it is missing, renewed or replaced if annotated so.

    Raises NotReadyError if it is missing and the resource says that the user brings it.
    """
    namespace, cluster = kafka["metadata"]["namespace"], kafka["metadata"]["name"]
    settings = kafka["spec"].get(_SPEC[kind]) or {}
    own = settings.get("generateCertificateAuthority", True)
    validity_days = int(settings.get("validityDays") or 365)
    name = f"{cluster}-{kind}"
    found = _read(kubernetes, namespace, cluster, kind)
    if found is None:
        if not own:
            raise NotReadyError(
                "AuthorityNotFound",
                f"Kafka {cluster}: {_SPEC[kind]}.generateCertificateAuthority is false, so the Secrets {name} (ca.key) "
                f"and {name}-cert (ca.crt) must exist (at least one value is missing). Create them.",
                retry_s=2,
            )
        new = Authority(pki.authority(name, validity_days=validity_days))
        _write(kubernetes, kafka, kind, new, certificate=0, key=0)
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
        _write(kubernetes, kafka, kind, known, certificate=renewals + 1, key=generation)
    elif key.annotations.get(REPLACE) == "true":
        logger.info("%s/%s: new key and certificate", namespace, name)
        pair = pki.authority(name, generation + 1, validity_days=validity_days)
        known = Authority(pair, known.trusted)
        _write(kubernetes, kafka, kind, known, certificate=renewals + 1, key=generation + 1)
    elif not pki.belong_together(known.current):
        # Only one of the two Secrets was written when the operator was stopped in the middle of a replacement.
        logger.info("%s/%s: new certificate for the new key", namespace, name)
        known = Authority(pki.authority(name, generation, known.current.key, validity_days), known.trusted)
        _write(kubernetes, kafka, kind, known, certificate=renewals + 1, key=generation)
    elif ended := [former for former in known.former if pki.ends_at(former) < datetime.now(UTC)]:
        known = Authority(known.current, tuple(former for former in known.former if former not in ended))
        _write(kubernetes, kafka, kind, known, certificate=renewals, key=generation)
    return known


def forget_former(kubernetes: Kubernetes, kafka: Object, kind: str) -> Authority | None:
    """The authority without its earlier keys, once nothing that they signed is in use."""
    found = _read(kubernetes, kafka["metadata"]["namespace"], kafka["metadata"]["name"], kind)
    if found is None:
        return None
    key, certificate = found
    new = Authority(_authority(key, certificate).current)
    generations = (certificate.annotations.get(CERTIFICATE_GENERATION, 0), key.annotations.get(KEY_GENERATION, 0))
    _write(kubernetes, kafka, kind, new, certificate=int(generations[0]), key=int(generations[1]))
    return new


def _read(kubernetes: Kubernetes, namespace: str, cluster: str, kind: str) -> tuple[StoredSecret, StoredSecret] | None:
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


def _write(
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
