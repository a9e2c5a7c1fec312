"""Which process carries out an operation, and whether it still does.

Owns how a process is named in a journal and when it counts as ended. Does not own the journal. A process on this
machine is looked up by its id; of one on another machine only the time of its latest renewal is known.
"""

import getpass
import os
import socket
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

RENEW_S = 10.0
LEASE_S = 60.0
"""A holder that has not renewed its entry for this long has ended."""


def this_process(since: str) -> dict[str, Any]:
    """Return this process as a journal names it."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in pods
        user = str(os.getuid())
    return {
        "id": uuid.uuid4().hex,
        "user": user,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "since": since,
        "renewedAt": since,
    }


def is_alive(holder: Mapping[str, Any] | None) -> bool:
    """Whether a holder is still at work: its process runs on this machine, or it has renewed its entry lately."""
    if not holder or not _renewed_lately(holder):
        return False
    if holder.get("host") != socket.gethostname() or not isinstance(holder.get("pid"), int):
        return True
    try:
        os.kill(holder["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it runs, as another user
        return True
    return True


def is_same(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Whether both are the same process."""
    return bool(one) and bool(other) and (one or {}).get("id") == (other or {}).get("id")


def described(holder: Mapping[str, Any]) -> str:
    """Return who a holder is and since when, for a message."""
    who = f"{holder.get('user')}@{holder.get('host')}, process {holder.get('pid')}"
    return f"{who}, since {holder.get('since')}, last seen {holder.get('renewedAt')}"


def _renewed_lately(holder: Mapping[str, Any]) -> bool:
    try:
        renewed = datetime.fromisoformat(str(holder.get("renewedAt")))
    except ValueError:
        return False
    renewed = renewed if renewed.tzinfo else renewed.replace(tzinfo=UTC)
    return abs((datetime.now(UTC) - renewed).total_seconds()) < LEASE_S
