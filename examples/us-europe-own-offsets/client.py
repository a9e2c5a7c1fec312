"""An application that keeps its own positions in a file, and translates them itself when it goes on in europe.

For each partition it keeps the offset of the next record and a digest of the last one that it has handled. In europe it
looks up in MirrorMaker's offset syncs where the copy of that record is at the earliest, finds it from there on by its
digest, and goes on behind it. It needs no consumer group, and us may be gone.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka.checkpoints import OffsetSyncHistory, syncs
from kafka.topic_partition import TopicPartition
from ops.connection import PROJECT, from_outputs
from ops.console import ProjectFolder, guard, log
from ops.demo_client import DeliveryLog, keys_file, record_id
from ops.demo_client.__main__ import KeysOut
from ops.errors import OpsError
from ops.pulumi.stack import stack_outputs

TOPIC = "my-topic"
SITES = {"us": ("us-app", TOPIC), "europe": ("europe-app", f"kafka-us.{TOPIC}")}
OFFSET_SYNCS = "mm2-offset-syncs.kafka-us.internal"
GROUP = "my-app"  # librdkafka asks for one that the user may read, and joins it only to subscribe
SILENT_S = 30.0


@dataclass(frozen=True)
class Position:
    """The offset of the next record of a partition in `stack`, and a digest of the last one that was handled."""

    stack: str
    offset: int
    last: str


@dataclass(frozen=True)
class Site:
    """One site as the application reads it: without a group, without a commit."""

    stack: str
    config: dict[str, Any] = field(repr=False)

    @property
    def topic(self) -> str:
        """Name of the application's topic at this site."""
        return SITES[self.stack][1]

    def partitions(self) -> list[int]:
        """Return the topic's partitions."""
        return sorted(self._consumer().list_topics(self.topic, timeout=SILENT_S).topics[self.topic].partitions)

    def read(self, topic: str, starts: dict[int, int]) -> Iterator[Message]:
        """Yield a topic's records from these offsets on, up to the ends that its partitions have now."""
        consumer, left = self._consumer(), set(starts)
        try:
            consumer.assign([ClientTopicPartition(topic, number, offset) for number, offset in starts.items()])
            while left:
                message = consumer.poll(SILENT_S)
                error = None if message is None else message.error()
                if message is not None and error is None:
                    yield message
                elif message is not None and error is not None and error.code() == KafkaError._PARTITION_EOF:
                    left.discard(number_of(message))
                else:
                    raise OpsError(
                        f"stack {self.stack}: topic {topic} must be readable to its end (got "
                        f"{error.str() if error else f'no answer for {SILENT_S:g} s'}). Check the user's rights."
                    )
        finally:
            consumer.close()

    def _consumer(self) -> Consumer:
        own = {"group.id": GROUP, "enable.auto.commit": False, "enable.partition.eof": True}
        return Consumer({**self.config, **own, "auto.offset.reset": "earliest"})


def translate(site: Site, positions: dict[int, Position]) -> dict[int, int]:
    """Return the offset in europe behind the copy of each partition's last record.

    Where that record is not there it is the earliest place: no record is skipped, some come again.
    """
    known = syncs((message.key(), message.value()) for message in site.read(OFFSET_SYNCS, {0: OFFSET_BEGINNING}))
    found = {}
    for number, position in positions.items():
        history = known.get(TopicPartition(TOPIC, number), OffsetSyncHistory())
        earliest = [sync.downstream for sync in history.newest if sync.upstream < position.offset]
        found[number] = earliest[-1] if earliest else OFFSET_BEGINNING
    for message in site.read(site.topic, dict(found)):
        if digest(message) == positions[number_of(message)].last:
            found[number_of(message)] = int(message.offset() or 0) + 1
    return found


def digest(message: Message) -> str:
    """Return what identifies a record on both clusters: a mirror keeps timestamp, key and value."""
    return hashlib.sha256(repr((message.timestamp(), message.key(), message.value())).encode()).hexdigest()


def number_of(message: Message) -> int:
    """Return the partition of a record."""
    return int(message.partition() or 0)


def main(
    stack: Annotated[str, typer.Option("--stack", "-s", help="us, or europe to go on there.")],
    file: Annotated[Path, typer.Option("--positions", help="File with the application's positions.")],
    maximum: Annotated[int | None, typer.Option("--max", "-n", min=1, help="Stop after this many records.")] = None,
    keys_out: KeysOut = None,
    folder: ProjectFolder = PROJECT,
) -> None:
    """Read the topic from the application's own positions on, to its end, and keep the new positions."""
    with guard(as_json=False, debug=False):
        user, _ = SITES[stack]
        connection = from_outputs(stack, stack_outputs(stack, os.environ, folder), user)
        site = Site(stack, connection.client_config())
        kept = json.loads(file.read_text("utf-8")) if file.exists() else {}
        positions = {int(number): Position(**one) for number, one in kept.items()}
        starts = dict.fromkeys(site.partitions(), OFFSET_BEGINNING)
        starts |= {number: one.offset for number, one in positions.items() if one.stack == stack}
        elsewhere = {number: one for number, one in positions.items() if one.stack != stack}
        if elsewhere and stack != "europe":
            raise OpsError(f"client: --stack must be europe (got {stack}): the offset syncs lead from us to europe.")
        if elsewhere:
            translated = translate(site, elsewhere)
            for number, offset in sorted(translated.items()):
                log(f"partition {number}: {elsewhere[number].offset} in us is {offset} in europe")
            starts |= translated
        with keys_file(keys_out) as each:
            account = DeliveryLog(each)
            for message in site.read(site.topic, starts):
                number, offset = number_of(message), int(message.offset() or 0)
                account.add(number, offset, record_id(message.value()))
                positions[number] = Position(stack, offset + 1, digest(message))
                if account.total == maximum:
                    break
        text = json.dumps({str(number): asdict(one) for number, one in sorted(positions.items())}, indent=2)
        file.write_text(text + "\n", "utf-8")
        log(f"{account.total} records read from {site.topic}, positions kept in {file}")


if __name__ == "__main__":
    typer.run(main)
