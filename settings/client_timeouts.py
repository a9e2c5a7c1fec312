"""Settings of applications' Kafka clients that outlast a failover: docs/client-timeouts.md is made of this table.

Owns the table and the page. Does not own what applications use: nothing here is written into a stack.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

PATH = Path(__file__).parent.parent / "docs" / "client-timeouts.md"


class Client(StrEnum):
    """Which client has a setting."""

    PRODUCER = "Java producer"
    CONSUMER = "Java consumer"
    LIBRDKAFKA = "librdkafka"


class Bound(StrEnum):
    """What a time must be beside others."""

    OUTLASTS = "outlast the RTO"
    """Longer than applications wait in a failover: else records are given up, or a member is."""
    WITHIN = "fit three times into the delivery time-out"
    """So short that there are several attempts."""
    FREE = ""
    """Neither."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting: its name, the clients that have it, their default (Kafka 4.3, librdkafka 2.16), and what to use."""

    name: str
    clients: tuple[Client, ...]
    default: str
    use: str
    bound: Bound = Bound.FREE
    why: str


_ALL, _JAVA = tuple(Client), (Client.PRODUCER, Client.CONSUMER)
_PRODUCER, _CONSUMER, _OTHER = (Client.PRODUCER,), (Client.CONSUMER,), (Client.LIBRDKAFKA,)

SETTINGS = (
    Setting(
        name="delivery.timeout.ms",
        clients=_PRODUCER,
        default="120000",
        use="180000",
        bound=Bound.OUTLASTS,
        why="A record is given up after it, however many retries are left. It must last until the other side accepts.",
    ),
    Setting(
        name="message.timeout.ms",
        clients=_OTHER,
        default="300000",
        use="180000",
        bound=Bound.OUTLASTS,
        why="The same in librdkafka, which knows it as `delivery.timeout.ms` too.",
    ),
    Setting(
        name="max.block.ms",
        clients=_PRODUCER,
        default="60000",
        use="90000",
        bound=Bound.OUTLASTS,
        why="`send()` waits so long for metadata, and for room in `buffer.memory` once that is full, then it throws.",
    ),
    Setting(
        name="request.timeout.ms",
        clients=_JAVA,
        default="30000",
        use="15000",
        bound=Bound.WITHIN,
        why="A broker that hangs is left after it. The delivery time-out must hold several of them.",
    ),
    Setting(
        name="socket.timeout.ms",
        clients=_OTHER,
        default="60000",
        use="15000",
        bound=Bound.WITHIN,
        why="The same in librdkafka.",
    ),
    Setting(
        name="socket.connection.setup.timeout.ms",
        clients=_ALL,
        default="10000; librdkafka 30000",
        use="10000",
        bound=Bound.WITHIN,
        why="A site that is lost often answers nothing at all: an attempt to connect ends after it.",
    ),
    Setting(
        name="reconnect.backoff.max.ms",
        clients=_ALL,
        default="1000; librdkafka 10000",
        use="1000",
        bound=Bound.WITHIN,
        why="The pause before the next attempt grows to it: what comes back is found within a second.",
    ),
    Setting(
        name="metadata.recovery.strategy",
        clients=_ALL,
        default="rebootstrap",
        use="rebootstrap",
        why="With no known broker left the client asks its bootstrap servers again, whose name may lead to the other "
        "side. Kafka's own clients before 4.0 do not by default.",
    ),
    Setting(
        name="metadata.recovery.rebootstrap.trigger.ms",
        clients=_ALL,
        default="300000",
        use="30000",
        bound=Bound.WITHIN,
        why="It does so, too, if for so long no broker has given metadata, as those that hang.",
    ),
    Setting(
        name="metadata.max.age.ms",
        clients=_JAVA,
        default="300000",
        use="60000",
        bound=Bound.WITHIN,
        why="Brokers and leaders are asked for without an error as well: new ones are known before they are needed.",
    ),
    Setting(
        name="topic.metadata.refresh.interval.ms",
        clients=_OTHER,
        default="300000",
        use="60000",
        bound=Bound.WITHIN,
        why="The same in librdkafka, where `metadata.max.age.ms` is three times as much.",
    ),
    Setting(
        name="metadata.max.age.ms",
        clients=_OTHER,
        default="900000",
        use="180000",
        why="What librdkafka knows of a topic is forgotten after it; three refreshes fit.",
    ),
    Setting(
        name="enable.idempotence",
        clients=(Client.PRODUCER, Client.LIBRDKAFKA),
        default="true; librdkafka false",
        use="true",
        why="What is sent again after a lost answer stands once in the log, and in its order. What is sent again to "
        "the other side may stand there twice all the same.",
    ),
    Setting(
        name="transaction.timeout.ms",
        clients=(Client.PRODUCER, Client.LIBRDKAFKA),
        default="60000",
        use="60000",
        bound=Bound.OUTLASTS,
        why="A transaction that an interruption meets is aborted after it. `drain` waits for open ones: not more.",
    ),
    Setting(
        name="default.api.timeout.ms",
        clients=_CONSUMER,
        default="60000",
        use="90000",
        bound=Bound.OUTLASTS,
        why="A commit, or a question for offsets, throws after it.",
    ),
    Setting(
        name="session.timeout.ms",
        clients=(Client.CONSUMER, Client.LIBRDKAFKA),
        default="45000",
        use="45000",
        bound=Bound.OUTLASTS,
        why="A member without heartbeats leaves its group after it, and its partitions move. Brokers decide it where "
        "`group.protocol` is `consumer`.",
    ),
    Setting(
        name="max.poll.interval.ms",
        clients=(Client.CONSUMER, Client.LIBRDKAFKA),
        default="300000",
        use="300000",
        bound=Bound.OUTLASTS,
        why="More than `max.block.ms` and the delivery time-out together: else an application leaves its group that "
        "reads, and waits until what it writes is acknowledged.",
    ),
)

_HEAD = """\
# Time-outs of clients

What an application's Kafka client needs to live through a failover, and through brokers that are away as long as one
takes (the [RTO](runbook.md#rpo-and-rto) of the runbook). This page is written by `python -m settings timeouts`: do not
edit. Tests hold the defaults against Kafka 4.3 and librdkafka 2.16, and let a Java and a librdkafka producer live
through it.

| setting | client | default | use | must | why |
|---|---|---|---|---|---|
"""
_TAIL = """
- **Records wait in memory.** A Java producer holds `buffer.memory` (32 MiB), then `send()` blocks for `max.block.ms`.
  librdkafka holds `queue.buffering.max.messages` (100,000) and `queue.buffering.max.kbytes` (1 GiB), then `produce()`
  fails at once with `BufferError`: poll, and call it again. Give room for the rate of an application times the RTO.
- **A planned failover refuses at once.** While the source is fenced, a write ends with `TOPIC_AUTHORIZATION_FAILED`,
  and an idempotent producer that begins only then with `CLUSTER_AUTHORIZATION_FAILED`. No client tries again: no
  time-out helps. Let the application keep what was not acknowledged, and write it again by a client that is made anew
  from the Secret, until the target accepts it.
- **A restarted pod loses its buffer.** What was not acknowledged when `clients.restart` replaces a pod is lost, unless
  the application has it elsewhere: an outbox, or the records that it has read and not committed yet.
- **Acknowledged is what counts.** With `acks=all`, the default of both, a record that was acknowledged is in the log of
  every replica in sync; one that failed with a time-out may be there, too.
- **A commit that waits may wait for ever.** librdkafka has no time-out for a blocking commit, and where its broker was
  killed with the commit in hand, none of these settings ends it (its issue 3740): two readers of a test still waited
  minutes after their brokers were back. Commit without waiting, or let a probe end a process that reads no more.
"""


def text() -> str:
    """Return the whole page."""
    return _HEAD + "".join(_rows(SETTINGS)) + _TAIL


def producer_settings(client: Client) -> dict[str, str]:
    """Return what the table says for a producer of a kind, by name; consumers' settings are left out."""
    theirs = {"session.timeout.ms", "max.poll.interval.ms"}
    return {one.name: one.use for one in SETTINGS if client in one.clients and one.name not in theirs}


def _rows(settings: Iterable[Setting]) -> Iterable[str]:
    for one in settings:
        clients = "all" if one.clients == _ALL else ", ".join(one.clients)
        yield f"| `{one.name}` | {clients} | {one.default} | {one.use} | {one.bound} | {one.why} |\n"
