"""The lock that Pulumi keeps on a stack while somebody's update runs: who holds it, and whether it is left over.

Owns reading what the CLI writes about it, of the backends for files and buckets and of Pulumi Cloud. Does not own the
waiting.
"""

import os
import re
import socket
from dataclasses import dataclass

_LOCKED = ("the stack is currently locked", "Another update is currently in progress")
_BY = re.compile(r"created by (?P<user>\S+)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)")


@dataclass(frozen=True, kw_only=True)
class StackLock:
    """A lock as the CLI describes it; nothing but that there is one is known of Pulumi Cloud's."""

    user: str | None = None
    host: str | None = None
    pid: int | None = None
    since: str | None = None

    def __str__(self) -> str:
        if self.user is None:
            return "another update"
        return f"{self.user}@{self.host}, process {self.pid}, since {self.since}"

    @property
    def is_left_over(self) -> bool:
        """Whether its process was on this machine and has ended: nobody will release it."""
        if self.pid is None or self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # it runs, as another user
            return False
        return False


def read(text: str) -> StackLock | None:
    """Return the lock that kept a command of the CLI from running; None if it failed for another reason."""
    if not any(words in text for words in _LOCKED):
        return None
    found = [
        StackLock(user=each["user"], host=each["host"], pid=int(each["pid"]), since=each["since"])
        for each in _BY.finditer(text)
    ]
    at_work = [lock for lock in found if not lock.is_left_over]
    return next(iter(at_work or found), StackLock())
