"""Client listeners of a cluster: what Strimzi permits, and what each becomes in a broker's configuration.

Every type is served on loopback ports: there is no network outside of the sandbox that a route, an ingress, a node
port or a load balancer could open.
"""

from typing import Any

from .errors import NotReadyError
from .layout import CLIENTS, TRUSTED, Layout, Node, listener_key

INTERNAL = ("internal", "cluster-ip")
NEED_TLS = ("route", "tlsroute", "ingress")
SCRAM, CERTIFICATE = "scram-sha-512", "tls"
_TAKEN_PORTS = (9404, 9999)


def check(cluster: str, entries: list[dict[str, Any]]) -> None:
    """Raise NotReadyError for the first listener that Strimzi would refuse or that the sandbox cannot serve."""
    for field in ("name", "port"):
        values = [entry[field] for entry in entries]
        if twice := sorted({str(value) for value in values if values.count(value) > 1}):
            raise _invalid(f"Kafka {cluster}: listeners must have different {field}s (got {', '.join(twice)} twice).")
    for entry in entries:
        subject = f"Kafka {cluster}: listener {entry['name']}"
        kind, tls = authentication(entry), bool(entry.get("tls"))
        if kind not in (None, SCRAM, CERTIFICATE):
            raise NotReadyError(
                "UnsupportedListener",
                f"{subject} must have authentication {SCRAM}, {CERTIFICATE} or none in the sandbox (got {kind}). "
                "Change the listener.",
                retry_s=30,
            )
        if kind == CERTIFICATE and not tls:
            raise _invalid(f"{subject} must have tls true with authentication {CERTIFICATE} (got tls false).")
        if entry.get("type") in NEED_TLS and not tls:
            raise _invalid(f"{subject} must have tls true with type {entry['type']} (got tls false).")
        host = ((entry.get("configuration") or {}).get("bootstrap") or {}).get("host")
        if entry.get("type") == "ingress" and not host:
            raise _invalid(f"{subject} must have configuration.bootstrap.host with type ingress (got none).")
        if entry["port"] in _TAKEN_PORTS:
            raise _invalid(f"{subject} must have a port that Kafka's pods have free (got {entry['port']}).")


def warnings(cluster: str, entries: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Reason and message if a listener is open to the outside elsewhere and only to this machine here."""
    outside = [f"{entry['name']} ({entry['type']})" for entry in entries if entry.get("type") not in INTERNAL]
    if not outside:
        return []
    return [("ServedOnLoopback", f"Kafka {cluster}: {', '.join(outside)} on 127.0.0.1 only: this is the sandbox.")]


def authentication(entry: dict[str, Any]) -> str | None:
    """Type of a listener's authentication."""
    kind = (entry.get("authentication") or {}).get("type")
    return str(kind) if kind else None


def protocol(entry: dict[str, Any]) -> str:
    """Kafka's security protocol of a listener."""
    transport = "SSL" if entry.get("tls") else "PLAINTEXT"
    return f"SASL_{transport}" if authentication(entry) == SCRAM else transport


def client_properties(layout: Layout, node: Node, entry: dict[str, Any]) -> dict[str, object]:
    """Properties of one client listener on one node."""
    prefix = f"listener.name.{listener_key(entry['name'], entry['port'])}."
    result: dict[str, object] = {}
    if entry.get("tls"):
        demanded = authentication(entry) == CERTIFICATE
        result |= _tls(prefix, layout, node, "required" if demanded else "none", CLIENTS if demanded else TRUSTED)
    if authentication(entry) == SCRAM:
        result[prefix + "sasl.enabled.mechanisms"] = "SCRAM-SHA-512"
        result[prefix + "scram-sha-512.sasl.jaas.config"] = (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        )
    return result


def internal_properties(layout: Layout, node: Node, key: str) -> dict[str, object]:
    """Properties of a listener between brokers: only certificates of the cluster's own authority open it."""
    return _tls(f"listener.name.{key}.", layout, node, "required", TRUSTED)


def _tls(prefix: str, layout: Layout, node: Node, client_auth: str, truststore: str) -> dict[str, object]:
    return {
        prefix + "ssl.keystore.type": "PEM",
        prefix + "ssl.keystore.location": layout.home(node) / "keystore.pem",
        prefix + "ssl.truststore.type": "PEM",
        prefix + "ssl.truststore.location": layout.folder / truststore,
        prefix + "ssl.client.auth": client_auth,
    }


def _invalid(message: str) -> NotReadyError:
    return NotReadyError("InvalidListener", f"{message} Strimzi refuses it; change the listener.", retry_s=30)
