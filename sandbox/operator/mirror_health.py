"""What is wrong with a mirror: read from Connect's status, and from the workers' log where the status is silent.

A connector whose user is refused stays RUNNING without tasks in Connect's status; only the log tells.
"""

import re
from typing import Any

from .connectors import Connector

# Written by org.apache.kafka.clients.NetworkClient for every refused connection, whichever client it is.
REFUSED = re.compile(r"Connection to node -?\d+ \((?P<host>[^/)]*)/(?P<ip>[^)]*):(?P<port>\d+)\) failed authentication "
                     r"due to: (?P<cause>.*?) \(org\.apache")  # fmt: skip
Problem = tuple[str, str]
# A connector without tasks may have nothing to mirror, or not have found out yet that it is refused.
SETTLE_S = 10.0


def connector_problem(
    name: str,
    spec: dict[str, Any],
    connector: Connector,
    states: dict[str, dict[str, Any]],
    log: str,
    since_change_s: float,
) -> Problem | None:
    """Reason and message if the connector or one of its tasks is not well, None if it is.

    `states` are Connect's status objects by connector name, `log` what the workers wrote since their start or since
    the connectors were last changed, which is `since_change_s` seconds ago.
    """
    subject = f"KafkaMirrorMaker2 {name}: connector {connector.name}"
    status = states.get(connector.name)
    if status is None:
        return "ConnectorStarting", f"{subject} was created and has no state yet."
    source = next(mirror["source"] for mirror in spec["mirrors"] if mirror["source"]["alias"] == connector.source_alias)
    refused = refusal(name, source, log) or refusal(name, spec["target"], log)
    parts = [("connector", status["connector"]), *((f"task {task['id']}", task) for task in status["tasks"])]
    for what, part in parts:
        if part["state"] == "FAILED":
            trace = part.get("trace", "").strip()
            if refused and "Authentication" in trace:
                return refused
            cause = trace.splitlines()[0][:300] if trace else "no trace"
            return "ConnectorFailed", f"{subject}: {what} FAILED: {cause}. Correct the cause; see the worker's log."
    works = any(
        task["state"] == "RUNNING"
        for other, state in states.items()
        if other.startswith(f"{connector.source_alias}->")
        for task in state["tasks"]
    )
    if works or connector.state != "running":
        return None
    if not refused and since_change_s < SETTLE_S:
        return (
            "ConnectorStarting",
            f"{subject} has no tasks yet; without any in {SETTLE_S:.0f} s there is nothing to do.",
        )
    return refused


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
