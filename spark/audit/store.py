"""What an audit has added up, in a SQLite file beside Spark's checkpoints.

Spark repeats a batch whose end it has not noted, with the same offsets and the same number. So the sums of a batch and
its number are written in one transaction, and a batch whose number is there already is not added again.

Owns the tables. Does not own what the sums mean (`buckets.py`).
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from contract.audit import Found
from contract.fields import VerificationError
from kafka.topic_partition import TopicPartition
from spark.audit.buckets import NOTHING, Place, Sums

Role = Literal["source", "target"]
FILE = "audit.sqlite"
WAIT_S = 10.0  # for another process that writes
_SCHEMA = """
CREATE TABLE IF NOT EXISTS audit (one INTEGER PRIMARY KEY CHECK (one = 1), identity TEXT, from_ms INTEGER);
CREATE TABLE IF NOT EXISTS batches (side TEXT PRIMARY KEY, number INTEGER);
CREATE TABLE IF NOT EXISTS read_through (side TEXT PRIMARY KEY, at_ms INTEGER);
CREATE TABLE IF NOT EXISTS sums (
    side TEXT, topic TEXT, partition INTEGER, start_ms INTEGER,
    count INTEGER, a TEXT, b TEXT, read_ms INTEGER, appended INTEGER, inexact INTEGER, after_ms INTEGER,
    first INTEGER, next INTEGER,
    PRIMARY KEY (side, topic, partition, start_ms)
);
CREATE TABLE IF NOT EXISTS positions (
    side TEXT, topic TEXT, partition INTEGER, next_offset INTEGER, PRIMARY KEY (side, topic, partition)
);
CREATE TABLE IF NOT EXISTS topics (topic TEXT PRIMARY KEY, id TEXT);
CREATE TABLE IF NOT EXISTS found (
    topic TEXT, partition INTEGER, start_ms INTEGER, key TEXT, found TEXT, PRIMARY KEY (topic, partition, start_ms)
);
CREATE TABLE IF NOT EXISTS unread (topic TEXT, partition INTEGER, at_ms INTEGER, reason TEXT);
"""


class AuditStoreError(VerificationError):
    """The audit's state cannot be used."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Records of a partition that may never be read, for a reason that was seen at a time (ms since 1970)."""

    partition: TopicPartition
    at_ms: int
    reason: str


class AuditStore:
    """The state of one audit. Raises AuditStoreError for a folder that cannot be used, or that is another audit's."""

    def __init__(self, folder: Path, identity: str, from_ms: int) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Spark calls `add` in a thread of its own, while the thread that reads waits for it.
            self._database = sqlite3.connect(folder / FILE, timeout=WAIT_S, check_same_thread=False)
            with self._database:
                self._database.executescript(_SCHEMA)
                self._database.execute("INSERT OR IGNORE INTO audit VALUES (1, ?, ?)", (identity, from_ms))
            ((known, began),) = self._database.execute("SELECT identity, from_ms FROM audit").fetchall()
        except (OSError, sqlite3.Error) as error:
            message = f"--state: must be a folder of an audit to write to (got {folder}: {error})"
            raise AuditStoreError(message) from None
        if known != identity:
            self.close()
            raise AuditStoreError(
                f"--state: must be of this audit (got {folder}, which is of {known}, and this one is of {identity}). "
                "Give each audit a folder of its own."
            )
        self.from_ms = int(began)
        self._changed: set[Place] = set()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def add(
        self, side: Role, batch: int, sums: Mapping[Place, Sums], next_offsets: Mapping[TopicPartition, int]
    ) -> bool:
        """Add what a batch has read, once; return whether it was added now."""
        with self._writing():
            if batch <= self.last_batch(side):
                return False
            for place, one in sums.items():
                whole = self._of(side, place) + one
                self._database.execute(
                    "INSERT OR REPLACE INTO sums VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (side, place.topic, place.partition, place.start_ms, *_row(whole)),
                )
            self._database.executemany(
                "INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?)",
                [(side, *tp, offset) for tp, offset in next_offsets.items()],
            )
            self._database.execute("INSERT OR REPLACE INTO batches VALUES (?, ?)", (side, batch))
        self._changed |= sums.keys()
        return True

    def last_batch(self, side: Role) -> int:
        """Return the number of the last batch of a side that was added, -1 for none."""
        row = self._database.execute("SELECT coalesce(max(number), -1) FROM batches WHERE side = ?", (side,)).fetchone()
        return int(row[0])

    def take_changed(self) -> set[Place]:
        """Return the buckets to which something was added since this was asked before."""
        taken, self._changed = self._changed, set()
        return taken

    def read_through(self, side: Role) -> int | None:
        """Return the time up to which a side was read, ms since 1970; None if it never was."""
        found = self._database.execute("SELECT at_ms FROM read_through WHERE side = ?", (side,)).fetchone()
        return None if found is None else int(found[0])

    def note_read(self, side: Role, at_ms: int) -> None:
        """Note that everything was added up that a side's logs held at this time."""
        with self._writing():
            self._database.execute("INSERT OR REPLACE INTO read_through VALUES (?, ?)", (side, at_ms))

    def positions(self, side: Role) -> dict[TopicPartition, int]:
        """Return the offsets that are read next, of partitions of which something was read."""
        rows = self._database.execute("SELECT topic, partition, next_offset FROM positions WHERE side = ?", (side,))
        return {TopicPartition(topic, partition): offset for topic, partition, offset in rows}

    def replaced(self, ids: Mapping[str, str]) -> list[str]:
        """Return the topics whose id is another one than the last time, and remember these ids."""
        known = dict(self._database.execute("SELECT topic, id FROM topics").fetchall())
        with self._writing():
            self._database.executemany("INSERT OR REPLACE INTO topics VALUES (?, ?)", sorted(ids.items()))
        return sorted(topic for topic, one in ids.items() if known.get(topic, one) != one)

    def note_unread(self, found: Iterable[Unread]) -> None:
        """Note that records may never be read. Of one reason the last time alone counts, and is kept."""
        found = list(found)
        with self._writing():
            self._database.executemany(
                "DELETE FROM unread WHERE topic = ? AND partition = ? AND reason = ?",
                [(*one.partition, one.reason) for one in found],
            )
            self._database.executemany(
                "INSERT INTO unread VALUES (?, ?, ?, ?)", [(*one.partition, one.at_ms, one.reason) for one in found]
            )

    def unread(self) -> list[Unread]:
        """Return what may never be read."""
        rows = self._database.execute("SELECT topic, partition, at_ms, reason FROM unread")
        return [Unread(TopicPartition(topic, partition), at, reason) for topic, partition, at, reason in rows]

    def keep_found(self, place: Place, key: str, found: Found) -> None:
        """Keep which records of a bucket differ while its sums are those of the key."""
        with self._writing():
            self._database.execute(
                "INSERT OR REPLACE INTO found VALUES (?, ?, ?, ?, ?)",
                (place.topic, place.partition, place.start_ms, key, found.model_dump_json()),
            )

    def found(self, place: Place, key: str) -> Found | None:
        """Return what is known of the records of a bucket with these sums; None if nothing is."""
        row = self._database.execute(
            "SELECT found FROM found WHERE topic = ? AND partition = ? AND start_ms = ? AND key = ?",
            (place.topic, place.partition, place.start_ms, key),
        ).fetchone()
        return None if row is None else Found.model_validate_json(row[0])

    def some_buckets(self, places: Iterable[Place]) -> Iterator[tuple[Place, Sums, Sums]]:
        """Yield these buckets with what the source and the target hold of them."""
        for place in places:
            yield place, self._of("source", place), self._of("target", place)

    def buckets(self) -> Iterator[tuple[Place, Sums, Sums]]:
        """Yield every bucket with what the source and the target hold of it, in order."""
        found: dict[Place, dict[str, Sums]] = {}
        for side, topic, partition, start, *row in self._database.execute("SELECT * FROM sums"):
            found.setdefault(Place(topic, partition, start), {})[side] = _sums(row)
        for place, sides in sorted(found.items()):
            yield place, sides.get("source", NOTHING), sides.get("target", NOTHING)

    def forget(self, before_ms: int) -> None:
        """Remove buckets that began before this time, ms since 1970."""
        with self._writing():
            for table in ("sums", "found"):
                self._database.execute(f"DELETE FROM {table} WHERE start_ms < ?", (before_ms,))  # noqa: S608 - our names

    def _of(self, side: Role, place: Place) -> Sums:
        with closing(
            self._database.execute(
                "SELECT count, a, b, read_ms, appended, inexact, after_ms, first, next FROM sums "
                "WHERE side = ? AND topic = ? AND partition = ? AND start_ms = ?",
                (side, place.topic, place.partition, place.start_ms),
            )
        ) as rows:
            row = rows.fetchone()
        return NOTHING if row is None else _sums(row)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with self._database:
                yield
        except sqlite3.Error as error:
            raise AuditStoreError(f"--state: {self.folder / FILE} must be writable (got {error})") from None


def _row(sums: Sums) -> tuple[object, ...]:
    # Words exceed SQLite's 63 bits.
    words = str(sums.a), str(sums.b)
    return sums.count, *words, sums.read_ms, sums.appended, sums.inexact, sums.after_ms, sums.start, sums.end


def _sums(row: Iterable[object]) -> Sums:
    return Sums(*(int(str(one)) for one in row))
