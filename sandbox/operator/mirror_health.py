"""What is wrong with a mirror, as Strimzi judges it, and the workers' log where a worker does not come up.

Strimzi judges the connectors alone: a mirror is Ready with a failed task, and with a source that refuses its user: the
connector is RUNNING without a task then. Who needs to know looks at the tasks in the status.
"""

import re
from typing import Any

from .connectors import Connector

# Written by org.apache.kafka.clients.NetworkClient for every refused connection, whichever client it is.
REFUSED = re.compile(r"Connection to node -?\d+ \((?P<host>[^/)]*)/(?P<ip>[^)]*):(?P<port>\d+)\) failed authentication "
                     r"due to: (?P<cause>.*?) \(org\.apache")  # fmt: skip
Problem = tuple[str, str]
FAILED = "FAILED"


def connector_problem(name: str, connector: Connector, status: dict[str, Any] | None) -> Problem | None:
    """Reason and message if the connector itself failed or has no state yet, None otherwise; `status` is Connect's."""
    subject = f"KafkaMirrorMaker2 {name}: connector {connector.name}"
    if status is None:
        return "ConnectorStarting", f"{subject} was created and has no state yet."
    if status["connector"]["state"] != FAILED:
        return None
    trace = status["connector"].get("trace", "").strip()
    cause = trace.splitlines()[0][:300] if trace else "no trace"
    return "ConnectorFailed", f"{subject}: connector FAILED: {cause}. Correct the cause; see the worker's log."


def has_failed(status: dict[str, Any] | None) -> bool:
    """Whether the connector or one of its tasks has failed."""
    return status is not None and FAILED in (status["connector"]["state"], *(task["state"] for task in status["tasks"]))


def refusal(name: str, cluster: dict[str, Any], log: str) -> Problem | None:
    """Reason and message if the log tells that this side refused a connection, None otherwise; never the password."""
    servers = {server.strip() for server in cluster["bootstrapServers"].split(",")}
    for match in REFUSED.finditer(log):
        addresses = {f"{match['host']}:{match['port']}", f"{match['ip']}:{match['port']}"}
        if not addresses & servers:
            continue
        subject = f"KafkaMirrorMaker2 {name}"
        if "SSL" in match["cause"]:
            secrets = ", ".join(
                entry["secretName"] for entry in (cluster.get("tls") or {}).get("trustedCertificates") or []
            )
            return "TlsFailed", (
                f"{subject}: the certificate of the cluster {cluster['alias']} is not trusted ({match['cause']}). "
                f"tls.trustedCertificates ({secrets or 'none'}) must hold the cluster's authority: correct it, the "
                "mirror goes on by itself."
            )
        authentication = cluster.get("authentication") or {}
        if pair := authentication.get("certificateAndKey"):
            return "AuthenticationFailed", (
                f"{subject}: its certificate was refused by the cluster {cluster['alias']} ({match['cause']}). Secret "
                f"{pair['secretName']} keys {pair['certificate']} and {pair['key']} must hold a certificate that the "
                "cluster's clients authority signed: correct it, the mirror goes on by itself."
            )
        secret = authentication.get("passwordSecret") or {}
        return "AuthenticationFailed", (
            f"{subject}: user {authentication.get('username')} was refused by the cluster {cluster['alias']} "
            f"({authentication.get('type')}). Secret {secret.get('secretName')} key {secret.get('password')} must hold "
            "that user's password there: correct it, the mirror goes on by itself."
        )
    return None
