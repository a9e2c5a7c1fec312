"""Certificates of users: signed by the authority of their cluster's clients, kept in the user's Secret.

Owns the values of that Secret for a user with a certificate. Does not own the authority nor the user's rights.
"""

import secrets
from typing import Any

from . import authorities, cluster_certificates, layout, pki
from .cluster_lookup import ClusterLookup
from .errors import NotReadyError
from .kubernetes_api import Object

STORE_PASSWORD_LENGTH = 16


def values(lookup: ClusterLookup, resource: Object, cluster: str) -> tuple[dict[str, str], bool]:
    """Values of the Secret of a user, and whether they are final.

    The present values are kept while their certificate is good. A certificate of a new authority is given out once
    every broker trusts it; until then the present one is kept and is not final.
    """
    name, namespace = resource["metadata"]["name"], resource["metadata"]["namespace"]
    clients = authorities.stored(lookup.kubernetes, namespace, cluster, authorities.CLIENTS)
    plan = layout.load(lookup.folder / namespace / cluster, namespace, cluster)
    known = lookup.kubernetes.secret(namespace, name) or {}
    if clients and plan and cluster_certificates.may_sign_users(plan, clients):
        if _is_good(known, name, clients.current.certificate):
            return known, True
        return _new(clients.current, name, resource["spec"]["authentication"]), True
    if clients and _is_good(known, name, *clients.trusted):
        return known, False
    raise NotReadyError(
        "ClusterNotReady", f"KafkaUser {name}: the brokers of {cluster} do not trust its authority yet.", retry_s=1
    )


def _is_good(known: dict[str, str], name: str, *accepted: str) -> bool:
    complete = all(known.get(key) for key in ("ca.crt", "user.crt", "user.key", "user.p12", "user.password"))
    return (
        complete
        and pki.common_name(known["user.crt"]) == name
        and any(pki.is_issued_by(known["user.crt"], certificate) for certificate in accepted)
    )


def _new(ca: pki.KeyPair, name: str, authentication: dict[str, Any]) -> dict[str, str]:
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
