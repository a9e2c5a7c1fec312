"""What is wrong with a mirror: read from Connect's status, and from the workers' log where the status is silent.

A connector whose user is refused stays RUNNING without tasks in Connect's status; only the log tells.
"""

from typing import Any

from .connectors import Connector

AUTHENTICATION = "SaslAuthenticationException"
TLS = "SslAuthenticationException"


def connector_problem(
    name: str, spec: dict[str, Any], connector: Connector, status: dict[str, Any] | None, log: str
) -> tuple[str, str] | None:
    """Reason and message if the connector or one of its tasks is not well, None if it is."""
    subject = f"KafkaMirrorMaker2 {name}: connector {connector.name}"
    if status is None:
        return "ConnectorStarting", f"{subject} was created and has no state yet."
    source = next(mirror["source"] for mirror in spec["mirrors"] if mirror["source"]["alias"] == connector.source_alias)
    own = [
        line
        for line in log.splitlines()
        if f"[{connector.name}" in line or f"clientId={connector.source_alias}" in line
    ]
    states = [("connector", status["connector"]), *((f"task {task['id']}", task) for task in status["tasks"])]
    for what, state in states:
        if state["state"] != "FAILED":
            continue
        trace = state.get("trace", "")
        if AUTHENTICATION in trace or TLS in trace:
            for cluster in (source, spec["target"]):
                if message := authentication_failure(name, cluster, "\n".join([*own, trace])):
                    return "AuthenticationFailed", message
        cause = trace.strip().splitlines()[0] if trace.strip() else "no trace"
        return "ConnectorFailed", f"{subject}: {what} FAILED: {cause[:300]}"
    if not status["tasks"] and connector.state == "running":
        for cluster in (source, spec["target"]):
            if message := authentication_failure(name, cluster, "\n".join(own)):
                return "AuthenticationFailed", message
    return None


def authentication_failure(name: str, cluster: dict[str, Any], log: str) -> str | None:
    """What to do if the log tells that this side refused the user, None otherwise; never holds the password."""
    if AUTHENTICATION not in log:
        return None
    authentication = cluster.get("authentication") or {}
    secret = authentication.get("passwordSecret") or {}
    return (
        f"KafkaMirrorMaker2 {name}: user {authentication.get('username')} was refused by the cluster "
        f"{cluster['alias']} ({authentication.get('type')}). The Secret {secret.get('secretName')} key "
        f"{secret.get('password')} must hold that user's password there: correct it, the mirror goes on by itself."
    )
