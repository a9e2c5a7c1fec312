"""The right to carry out a failover or failback of a mirror: a Lease of coordination.k8s.io, one holder at a time.

The holder renews it every `RENEW_S` seconds, and asks before each change whether it still holds it for long enough. A
process that was frozen and wakes after another one took over changes nothing more. Whoever wants to take over watches
whether the Lease is renewed, as client-go's leader election does: clocks of machines are never compared. Whoever only
shows the holder compares two times of the API server's clock. Does not own what is done meanwhile.
"""

import getpass
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from kubernetes import client
from kubernetes.client.rest import ApiException

from ops.console import log
from ops.errors import OpsError
from ops.recovery.kubernetes_access import CALL_WITHIN_S, kubernetes

RENEW_S = 10.0
DURATION_S = 60
CHANGE_WITHIN_S = 20.0
"""What must be left of the duration before a change: one call of Kafka or Kubernetes."""
WATCH_EVERY_S, REPORT_EVERY_S = 1.0, 10.0
_MISSING, _CONFLICT = 404, 409


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A process that holds a Lease, by its `holderIdentity`: user@host/process id/machine/unique id.

    `renewed_at` and `seen_at` are when it renewed the Lease and when that was read, by the API server's clock;
    `duration_s` is for how long it holds the Lease then.
    """

    identity: str
    since: str
    renewed_at: datetime | None = None
    seen_at: datetime | None = None
    duration_s: float = DURATION_S

    def __str__(self) -> str:
        """Return who it is and since when, for a message."""
        who = f"{self._parts[0]}, process {self._parts[1]}" if len(self._parts) == 4 else self.identity
        seen = self.renewed_at.isoformat(timespec="seconds") if self.renewed_at else "never"
        return f"{who}, since {self.since}, last seen {seen}"

    @property
    def is_here(self) -> bool:
        """Whether its process id means something on this machine."""
        return len(self._parts) == 4 and self._parts[2] == _machine()

    @property
    def has_ended(self) -> bool:
        """Whether its process is known to be gone: it ran on this machine."""
        return self.is_here and not _runs(self._parts[1])

    @property
    def seems_at_work(self) -> bool:
        """Whether its Lease has not run out. One that was killed on another machine seems so until then."""
        if self.renewed_at is None or self.seen_at is None or self.has_ended:
            return False
        return abs((self.seen_at - self.renewed_at).total_seconds()) < self.duration_s

    @property
    def _parts(self) -> list[str]:
        return self.identity.rsplit("/", 3)


class Lease:
    """The Lease of one mirror's operations, and whether this process holds it."""

    def __init__(self, namespace: str, name: str, environment: Mapping[str, str], context: str | None = None) -> None:
        self.namespace = namespace
        self.name = name
        self.identity = _identity()
        self._environment = environment
        self._context = context
        self._lock = threading.RLock()
        self._held: Any = None  # the Lease as this process has written it last
        self._renewed = 0.0  # when the request of the last renewal was sent, on `_clock`
        self._observed: tuple[object, float] | None = None  # somebody else's renewal, and when it was first seen

    def holder(self) -> Holder | None:
        """Return who holds it, whether at work or not; raises OpsError."""
        with self._kubernetes() as api:
            return _holder(*self._observe(api))

    def wait_until_free(self) -> bool:
        """Return once nobody holds it, True if that took a wait; raises OpsError if somebody is seen to be at work.

        It is free if it was released, if its holder has ended on this machine, or if it was not renewed for its
        duration while this process watched.
        """
        return self._wait()[1]

    def acquire(self) -> None:
        """Take it once it is free; raises OpsError if somebody is at work, or was faster."""
        before, _ = self._wait()  # written over as it was judged: whoever was faster has changed it
        with self._lock, self._kubernetes() as api:
            now, sent = _now(), _clock()
            transitions = (before.spec.lease_transitions or 0) + 1 if before is not None else 0
            self._write(api, before, {"acquireTime": now, "renewTime": now, "leaseTransitions": transitions})
            self._renewed = sent

    def require(self) -> None:
        """Raise OpsError unless this process holds it for `CHANGE_WITHIN_S`; it is renewed if less is left."""
        with self._lock:
            if self._held is None:
                raise self._lost(None)
            if _clock() - self._renewed + CHANGE_WITHIN_S >= DURATION_S:
                self._renew()
            if _clock() - self._renewed + CHANGE_WITHIN_S >= DURATION_S:
                raise self._lost(None)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Renew it every `RENEW_S` seconds in a thread of its own, and release it at the end."""
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(RENEW_S):
                with suppress(OpsError), self._lock:  # `require` tries again and reports it
                    if self._held is not None:
                        self._renew()

        renewing = threading.Thread(target=renew, name="lease", daemon=True)
        renewing.start()
        try:
            yield
        finally:
            ended.set()
            renewing.join()
            self.release()

    def release(self) -> None:
        """Give it back, so that the next command need not wait; one that cannot be given back runs out."""
        with self._lock, suppress(OpsError):
            if self._held is not None:
                with self._kubernetes() as api:
                    self._write(api, self._held, {"holderIdentity": None, "renewTime": _now()})
        self._held = None

    def _renew(self) -> None:
        sent = _clock()
        with self._kubernetes() as api:
            self._write(api, self._held, {"renewTime": _now()})
        self._renewed = sent

    def _write(self, api: client.ApiClient, before: Any, changes: Mapping[str, Any]) -> None:
        """Write it over the one that was read; raises OpsError if somebody else has changed it since."""
        leases, known = client.CoordinationV1Api(api), before.spec if before is not None else None
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": DURATION_S,
            "acquireTime": known.acquire_time if known else None,
            "leaseTransitions": known.lease_transitions if known else None,
            **changes,
        }
        for _ in range(2):
            version = before.metadata.resource_version if before is not None else None
            body = client.V1Lease(
                metadata=client.V1ObjectMeta(name=self.name, namespace=self.namespace, resource_version=version),
                spec=client.V1LeaseSpec.from_dict(spec),
            )
            try:
                if version is None:
                    self._held = leases.create_namespaced_lease(self.namespace, body, _request_timeout=CALL_WITHIN_S)
                else:
                    self._held = leases.replace_namespaced_lease(
                        self.name, self.namespace, body, _request_timeout=CALL_WITHIN_S
                    )
                return
            except ApiException as error:
                if error.status not in (_CONFLICT, _MISSING):
                    raise
            before = self._read(api)
            holder = _holder(before)
            if before is None or holder is None or holder.identity != self.identity:
                self._held = None
                raise self._lost(holder)
            self._held = before
            if before.spec.renew_time == spec["renewTime"]:
                return  # an attempt whose answer was lost

    def _wait(self) -> tuple[Any, bool]:
        """Return the Lease that is free, None if there is none, and whether that took a wait."""
        reported, waited = float("-inf"), False
        while True:
            with self._kubernetes() as api:
                lease = self._read(api)
            holder = _holder(lease)
            if holder is None or holder.has_ended or holder.identity == self.identity:
                return lease, waited
            left_s = self._left(lease, holder)
            if left_s <= 0:
                return lease, waited
            if _clock() - reported >= REPORT_EVERY_S:
                reported = _clock()
                log(
                    f"waiting for Lease {self.namespace}/{self.name}, {left_s:.0f} s at most: held by {holder}. If it "
                    "is not renewed until then, its holder has ended and this command takes over"
                )
            time.sleep(min(WATCH_EVERY_S, left_s))
            waited = True

    def _left(self, lease: Any, holder: Holder) -> float:
        """Seconds until somebody else's Lease was not renewed for its duration; raises OpsError if it is renewed."""
        renewal = holder.identity, lease.spec.renew_time
        if self._observed is None:
            self._observed = renewal, _clock()
        # On one machine there is one clock.
        if self._observed[0] != renewal or (holder.is_here and _is_recent(lease.spec.renew_time)):
            self._observed = None
            raise OpsError(
                f"Lease {self.namespace}/{self.name}: a failover or failback must be carried out by one command at a "
                f"time (held by {holder}). Wait until it has ended; `python -m ops status` shows how far it is."
            )
        return float(lease.spec.lease_duration_seconds or DURATION_S) - (_clock() - self._observed[1])

    def _lost(self, holder: Holder | None) -> OpsError:
        now = f"held by {holder}" if holder else "not renewed in time"
        return OpsError(
            f"Lease {self.namespace}/{self.name}: must be held by this command to change anything (got: {now}). This "
            "command changes nothing more. It was stopped, or cut off from the API server, for too long, or another "
            "one was faster: see `python -m ops status`."
        )

    def _read(self, api: client.ApiClient) -> Any:
        return self._observe(api)[0]

    def _observe(self, api: client.ApiClient) -> tuple[Any, datetime]:
        """Return the Lease, None if there is none, and the moment by the API server's clock, to the second.

        By this machine's where the answer has no date: something between has removed it.
        """
        try:
            found, _, headers = client.CoordinationV1Api(api).read_namespaced_lease_with_http_info(
                self.name, self.namespace, _request_timeout=CALL_WITHIN_S
            )
        except ApiException as error:
            if error.status != _MISSING:
                raise
            return None, _now()
        return found, _date(headers.get("Date")) or _now()

    def _kubernetes(self) -> Any:
        return kubernetes(self._environment, self._context)


def _holder(lease: Any, seen_at: datetime | None = None) -> Holder | None:
    """Return who holds a Lease, None if nobody does; `seen_at` is when it was read, by the API server's clock."""
    if lease is None or not lease.spec.holder_identity:
        return None
    since = lease.spec.acquire_time.isoformat(timespec="seconds") if lease.spec.acquire_time else "unknown"
    return Holder(
        identity=lease.spec.holder_identity,
        since=since,
        renewed_at=_renewed_at(lease),
        seen_at=seen_at,
        duration_s=float(lease.spec.lease_duration_seconds or DURATION_S),
    )


def _renewed_at(lease: Any) -> datetime | None:
    """When the API server stored the last renewal; the holder's own time only if it does not keep that."""
    stored = [
        entry.time
        for entry in lease.metadata.managed_fields or ()
        if entry.time is not None and "f:renewTime" in ((entry.fields_v1 or {}).get("f:spec") or {})
    ]
    found: datetime | None = max(stored, default=lease.spec.renew_time)
    return found


def _is_recent(renewed_at: datetime | None) -> bool:
    """Whether a time of this machine's clock is less than a Lease's duration away."""
    return renewed_at is not None and abs((datetime.now(UTC) - renewed_at).total_seconds()) < DURATION_S


def _date(header: str | None) -> datetime | None:
    """The moment of an answer's Date; None if it has none that can be read."""
    try:
        found = parsedate_to_datetime(header or "")
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _identity() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in pods
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}/{os.getpid()}/{_machine()}/{uuid.uuid4().hex[:8]}"


def _machine() -> str:
    """A name for where process ids are unique: the boot of a machine, and on Linux the namespace of process ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        names = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot, names = str(uuid.getnode()), ""
    return sha256(f"{socket.gethostname()} {boot} {names}".encode()).hexdigest()[:8]


def _runs(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, ValueError, OverflowError):  # it runs, as another user; or nobody knows
        return True
    return True


def _clock() -> float:
    """Seconds that also pass while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _now() -> datetime:
    """This moment, UTC. The API server refuses a MicroTime without microseconds, as the client would write a 0."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond or 1)
