"""The work queue: every resource is reconciled by one thread at a time, and one that fails never delays another.

Level triggered: an event only names a resource to reconcile; what to do follows from its present state.
"""

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

logger = logging.getLogger(__name__)

FIRST_RETRY_S = 1.0
LAST_RETRY_S = 30.0


@dataclass(frozen=True, order=True)
class Key:
    """The resource to reconcile."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass
class _Entry:
    due: float = 0.0
    queued: bool = False
    running: bool = False
    again: bool = False
    failures: int = 0


@dataclass
class Dispatcher:
    """Runs `work(key)` when a key is due; `work` returns the seconds until it is due again, None for never.

    A key added while it runs is run once more afterwards. An exception is logged and tried again, ever later.
    """

    work: Callable[[Key], float | None]
    threads: int = 16
    _entries: dict[Key, _Entry] = field(default_factory=dict)
    _heap: list[tuple[float, int, Key]] = field(default_factory=list)
    _order: "itertools.count[int]" = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _timer_is_set: bool = False
    _stopping: bool = False
    _workers: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        # One thread that is free waits for the next time, the others only for it to be called away.
        self._earlier, self._free = threading.Condition(self._lock), threading.Condition(self._lock)

    def add(self, key: Key, delay_s: float = 0.0) -> None:
        """Reconcile this resource in `delay_s` seconds, or earlier if that was planned already."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            if entry.running and delay_s <= 0:
                entry.again = True
                return
            self._plan(key, entry, delay_s)

    def known(self, kind: str, namespace: str | None = None) -> list[Key]:
        """Keys of a kind that were seen and are not gone."""
        with self._lock:
            return sorted(
                key for key in self._entries if key.kind == kind and (namespace is None or key.namespace == namespace)
            )

    def start(self) -> None:
        """Start the worker threads."""
        for number in range(self.threads):
            worker = threading.Thread(target=self._loop, name=f"reconcile-{number}", daemon=True)
            worker.start()
            self._workers.append(worker)

    def stop(self, deadline_s: float = 5.0) -> None:
        """Take no more work and wait, at most `deadline_s`, for what is under way."""
        with self._lock:
            self._stopping = True
            self._earlier.notify_all()
            self._free.notify_all()
        end = time.monotonic() + deadline_s
        for worker in self._workers:
            worker.join(max(0.0, end - time.monotonic()))

    def _plan(self, key: Key, entry: _Entry, delay_s: float) -> None:
        due = time.monotonic() + delay_s
        if entry.queued and entry.due <= due:
            return
        entry.due, entry.queued = due, True
        self._push(due, key)

    def _push(self, due: float, key: Key) -> None:
        heapq.heappush(self._heap, (due, next(self._order), key))
        self._earlier.notify()

    def _loop(self) -> None:
        while (key := self._next()) is not None:
            try:
                delay_s = self.work(key)
                failed = False
            except Exception:
                logger.exception("%s: reconciliation failed", key)
                delay_s, failed = None, True
            self._done(key, delay_s, failed=failed)

    def _next(self) -> Key | None:
        with self._lock:
            while not self._stopping:
                now = time.monotonic()
                while self._heap and self._heap[0][0] <= now:
                    due, _, key = heapq.heappop(self._heap)
                    entry = self._entries.get(key)
                    # An entry planned earlier than this one has left a stale element in the heap.
                    if entry and entry.queued and entry.due == due and not entry.running:
                        entry.queued, entry.running = False, True
                        self._free.notify()
                        return key
                if self._timer_is_set:
                    self._free.wait()
                    continue
                self._timer_is_set = True
                self._earlier.wait(self._heap[0][0] - now if self._heap else None)
                self._timer_is_set = False
            return None

    def _done(self, key: Key, delay_s: float | None, *, failed: bool) -> None:
        with self._lock:
            entry = self._entries[key]
            entry.running = False
            if failed:
                delay_s = min(LAST_RETRY_S, FIRST_RETRY_S * 2**entry.failures)
                entry.failures += 1
            else:
                entry.failures = 0
            if entry.again:
                entry.again = False
                self._plan(key, entry, 0.0 if not failed else FIRST_RETRY_S)
            elif delay_s is not None:
                self._plan(key, entry, delay_s)
            elif not entry.queued:
                del self._entries[key]
            else:
                self._push(entry.due, key)
