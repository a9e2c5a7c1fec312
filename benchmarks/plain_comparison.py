"""The comparison that anybody would write first: one process, one consumer a side, a digest of each record counted.

The baseline of `verification.py`. Compares the records of one topic on two clusters as multisets per partition.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Mapping

from confluent_kafka import Consumer, TopicPartition

Digests = Counter[tuple[int, bytes]]
BATCH = 10_000


def compare(source: Mapping[str, str], target: Mapping[str, str], topic: str, partitions: int) -> tuple[int, float]:
    """Return how many records differ between the clusters with these client properties, and the seconds it took."""
    began = time.monotonic()
    left, right = (_read(client, topic, partitions) for client in (source, target))
    left.subtract(right)
    return sum(abs(number) for number in left.values()), time.monotonic() - began


def _read(client: Mapping[str, str], topic: str, partitions: int) -> Digests:
    consumer = Consumer({**client, "group.id": "plain", "enable.auto.commit": False, "enable.partition.eof": False})
    found: Digests = Counter()
    try:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        ends = {place.partition: consumer.get_watermark_offsets(place, timeout=20) for place in places}
        consumer.assign([TopicPartition(topic, number, low) for number, (low, _) in ends.items()])
        missing = sum(high - low for low, high in ends.values())
        while missing:
            for message in consumer.consume(BATCH, timeout=20):
                digest = hashlib.blake2b(digest_size=16)
                for part in (message.key(), message.value(), repr(message.headers()), str(message.timestamp()[1])):
                    content = part if isinstance(part, bytes) else str(part).encode()
                    digest.update(len(content).to_bytes(4) + content)
                found[message.partition() or 0, digest.digest()] += 1
                missing -= 1
    finally:
        consumer.close()
    return found
