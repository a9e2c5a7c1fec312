"""Records of the internal topics of MirrorMaker and Connect, as these write them, and how many keys are read of them.

As a program it reads one of these topics, and prints the keys that it found and the most memory that it had, in MiB.
"""

import json
import resource
import struct
import sys
from collections.abc import Callable

from contract.verification_request import ClusterConfig, OffsetSyncs
from kafka import checkpoints
from kafka.cluster import Cluster
from kafka.mirror_position import PositionReader
from tests.support.recovery_pair import SOURCE, known

KEYS = 100
SYNCS = OffsetSyncs(name="mm2-offset-syncs.es-src.internal", location="target")
CHECKPOINTS, POSITIONS = "es-src.checkpoints.internal", "mm2-offsets"
PAIR = known({"offset_syncs_topic": {"name": SYNCS.name, "location": SYNCS.location}})
MIRROR = PAIR.request.mirror
Made = Callable[[int], tuple[bytes, bytes]]


def text(value: str) -> bytes:
    """A text of Kafka's protocol."""
    return struct.pack(">h", len(value)) + value.encode()


def checkpoint(number: int) -> tuple[bytes, bytes]:
    """Key and value of a checkpoint."""
    key = text(f"group-{number % KEYS}") + text("items") + struct.pack(">i", 0)
    return key, struct.pack(">hqq", 0, number, number) + text("")


def sync(number: int) -> tuple[bytes, bytes]:
    """Key and value of an offset sync."""
    return text("items") + struct.pack(">i", number % KEYS), struct.pack(">qq", 3 * number, 2 * number)


def position(number: int) -> tuple[bytes, bytes]:
    """Key and value of a position that Connect has committed for a mirror."""
    where = {"cluster": "es-src", "topic": "items", "partition": number % KEYS}
    return json.dumps([SOURCE, where]).encode(), json.dumps({"offset": number}).encode()


def read_checkpoints(cluster: Cluster) -> int:
    """How many keys the checkpoints have."""
    return len(checkpoints.read_checkpoints(cluster, MIRROR).checkpoints)


def read_syncs(cluster: Cluster) -> int:
    """How many partitions the offset syncs have."""
    return len(checkpoints.with_syncs(checkpoints.OffsetTranslation(), cluster, cluster, MIRROR).syncs or {})


def read_positions(cluster: Cluster) -> int:
    """How many partitions Connect has a position of."""
    return len(PositionReader(PAIR.request, cluster.topic_reader(POSITIONS)).read())


READERS: dict[str, Callable[[Cluster], int]] = {
    CHECKPOINTS: read_checkpoints,
    SYNCS.name: read_syncs,
    POSITIONS: read_positions,
}


def main(bootstrap: str, topic: str) -> None:
    """Read a topic of brokers that let anybody in."""
    side = ClusterConfig(role="target", alias="es-tgt", client_config={"bootstrap.servers": bootstrap, "log_level": 0})
    cluster = Cluster(side)
    cluster.connect()
    keys = READERS[topic](cluster)
    sys.stdout.write(f"{keys} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
