"""How far the mirror's source connector is, by what it has committed itself."""

from collections.abc import Callable

from spark.clusters import connect
from spark.clusters.cluster import Cluster, Partition, Tail
from spark.errors import DeniedError
from spark.request.model import Request


class PositionReader:
    """Committed positions of the source connector: from Connect's offsets topic, or from its REST interface."""

    def __init__(self, request: Request, tail: Tail | None) -> None:
        self._request = request
        self._tail = tail
        self._known: dict[Partition, int] = {}

    def read(self) -> dict[Partition, int]:
        """Return the last source offset copied per partition; raises ClusterError."""
        mirror = self._request.mirror
        if self._tail is not None:
            connect.apply_positions(self._known, self._tail.read(), mirror)
        elif mirror.connect_url is not None:
            self._known = connect.positions_from_rest(mirror.connect_url, mirror) or self._known
        return dict(self._known)

    def close(self) -> None:
        """Give the connection back."""
        if self._tail is not None:
            self._tail.close()


def open_reader(target: Cluster, request: Request, say: Callable[[str], None]) -> tuple[PositionReader | None, str]:
    """Return a reader of the positions; None, and why, where neither the topic nor the REST interface tells them."""
    mirror = request.mirror
    why: list[str] = []
    if mirror.offset_storage_topic is not None:
        try:
            tail = target.tail(mirror.offset_storage_topic)
        except DeniedError as error:
            say(f"{error} Until then the mirror's position is asked of Connect.")
            why.append(str(error))
        else:
            if tail.exists:
                return PositionReader(request, tail), ""
            why.append(
                f"target {request.target.alias}: topic {mirror.offset_storage_topic} is not there, or user "
                f"{request.target.user} may not Describe and Read it."
            )
    if mirror.connect_url is not None:
        if connect.positions_from_rest(mirror.connect_url, mirror) is not None:
            return PositionReader(request, None), ""
        why.append(f"Connect at {mirror.connect_url} tells no position of {mirror.source_connector}.")
    return None, " ".join(why)
