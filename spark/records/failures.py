"""What a failed Spark job means: the Java exception behind it, told like the same refusal of a cluster."""

import re

from spark.redaction import hidden
from spark.request.model import Request, Side

TEXT_MAX = 400
_TRUST = "Check ssl.ca.pem (the cluster CA certificate) and the certificates' dates."
_UP = "Check that its brokers stay up and that their advertised listeners can be reached from where Spark runs."
_MEMORY = (
    "SIGKILL is most often the system's or the container's want of memory: give it more, "
    "or lower RT_INVENTORY_SPARK_MEMORY or RT_INVENTORY_SPARK_CORES."
)
_TOO_OLD = (
    "Set RT_INVENTORY_SPARK_ABOVE to more records than both sides hold, so that the run needs no Spark to read them."
)
_POSITION = r"(?:position for partition|last committed offset for partitions) \[?([\w.,\- ]+?)\]?"
Told = tuple[str, str]  # what is wrong, what to do


def message(error: Exception, request: Request, death: str | None = None) -> str:
    """Return one line that says which cluster kept Spark from reading, why, and what to do; holds no secret.

    `death` is how the JVM ended, if it did: then no cluster is to blame.
    """
    if death is not None:
        return f"Spark: its JVM must live until the end (got {death}). {_MEMORY}"
    text = str(error)
    what, fix = _told(text, request) or (f"cannot read the records: {_cause(text, error)}", _UP)
    said = f"{_place(text, request)}: {what}. {fix}"
    return " ".join(hidden(said, request.secrets).split())


def _told(text: str, request: Request) -> Told | None:
    """Return what is wrong and what to do, for those exceptions of Kafka's Java client that a user can act on."""
    user = _users(text, request)
    if found := re.search(r"TopicAuthorizationException.*?\[([^\]]*)\]", text):
        topics = found.group(1)
        return f"user {user} may not Read topic {topics}", f"Grant Read on topic {topics}."
    if found := re.search(r"GroupAuthorizationException.*?group: (\S+)", text):
        return f"user {user} may not Read group {found.group(1)}", f"Grant Read on group {found.group(1)}."
    if "SaslAuthenticationException" in text:
        return f"user {user}: authentication failed", "Check sasl.username, sasl.password and sasl.mechanism."
    if "SslAuthenticationException" in text or "SSLHandshakeException" in text:
        return "the TLS handshake failed", _TRUST
    if found := re.search(r"Cannot fetch record for offset (\d+) in (\d+) milliseconds", text):
        seconds = int(found.group(2)) // 1000
        return f"no record came from offset {found.group(1)} on within {seconds} s", _UP
    if found := re.search(rf"Timeout of (\d+)ms expired before the {_POSITION} could be determined", text):
        return f"no broker told the position of {found.group(2)} within {int(found.group(1)) // 1000} s", _UP
    if "OffsetOutOfRange" in text:
        return (
            "records were deleted while they were read",
            "Verify again; if it repeats, raise the topic's retention above the time that a run takes.",
        )
    if re.search(r"TimeoutException|DisconnectException|TimeoutError", text):
        return f"does not answer any more ({_cause(text, None)})", _UP
    if "ArithmeticException: long overflow" in text:
        return "the timestamp of a record lies too far in the past for Spark", _TOO_OLD
    if "OutOfMemoryError" in text:
        return "Spark ran out of memory", "Raise RT_INVENTORY_SPARK_MEMORY."
    return None


def _cause(text: str, error: Exception | None) -> str:
    """Return the innermost cause that a Java trace names, else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    named = [
        line for line in lines if re.match(r"^[\w.$]*(?:org\.apache\.kafka|java)\.[\w.$]+(?:Exception|Error)", line)
    ]
    found = (causes[-1:] or named[-1:] or lines[:1] or [type(error).__name__ if error is not None else "no reason"])[0]
    return found.removeprefix("Caused by:").strip()[:TEXT_MAX]


def _side(text: str, request: Request) -> Side | None:
    """Return the side that a trace is about, None if it names the bootstrap servers of neither or of both."""
    sides = [side for side in (request.source, request.target) if _names(text, side)]
    return sides[0] if len(sides) == 1 else None


def _names(text: str, side: Side) -> bool:
    servers = (server.strip() for server in side.client_config.get("bootstrap.servers", "").split(","))
    return any(server and server in text for server in servers)


def _place(text: str, request: Request) -> str:
    side = _side(text, request)
    shown = [side] if side is not None else [request.source, request.target]
    return " or ".join(
        f"{one.role} {one.alias} ({one.client_config.get('bootstrap.servers', '')}, user {one.user})" for one in shown
    )


def _users(text: str, request: Request) -> str:
    side = _side(text, request)
    users = [side.user] if side is not None else [request.source.user, request.target.user]
    return " or ".join(dict.fromkeys(users))
