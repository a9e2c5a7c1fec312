"""A new client for a cluster whose client goes on failing: librdkafka keeps a coordinator that no longer answers."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from kafka.cluster import Cluster
from kafka.errors import ClusterError, DeniedError

RENEWED_AFTER_S = 10.0
"""How long requests may fail, in each round some, until the next round begins with a new client."""
CONNECTED_WITHIN_S = 5.0


@dataclass
class ClientRenewal:
    """Since when requests to a cluster fail."""

    cluster: Cluster
    _since: float | None = None

    def renew(self) -> list[str]:
        """Make a new client if it is time; return why it is not admitted, if so: then the earlier one stays."""
        now = time.monotonic()
        if self._since is None or now - self._since < RENEWED_AFTER_S:
            return []
        self._since = now
        try:
            self.cluster.connect(CONNECTED_WITHIN_S)
        except ClusterError as error:
            return [str(error)]
        return []

    def judge(self, errors: Iterable[ClusterError]) -> None:
        """Take in the errors of a round; that a right is missing is an answer."""
        if all(isinstance(error, DeniedError) for error in errors):
            self._since = None
        elif self._since is None:
            self._since = time.monotonic()
