"""The journal of a failover or failback: the steps that are done, with what they learned.

The next command, on any machine, resumes after the last step. A command at work holds a Lease (`lease.py`): without it
nothing is written, and a second command is refused. Does not own the steps, nor how a journal is stored
(`journal_store.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from ops.errors import OpsError
from ops.recovery.journal_store import ChangedError, JournalStore
from ops.recovery.lease import Holder, Lease

_SUFFIX = "-failover"
HARMLESS: Mapping[str, tuple[str, ...]] = {
    "failover": ("drain", "prove", "measure"),
    "failback": ("fence", "fencing", "survey"),
}
"""Steps of each command that change nothing; a failback's fence is the one that the failover has declared."""
TARGET_LOST = "docs/by-hand.md#the-active-target-is-lost"
SOURCE_LOST_AGAIN = "docs/by-hand.md#the-source-is-lost-while-a-failback-switches"
"""What people do where no command goes on."""
Facts = dict[str, Any]


class Journal:
    """The journal of one mirror. Each change is written before it counts.

    `entry` is the operation under way or the latest one: command, options, startedAt, finishedAt (None while it is
    under way), its steps that are done, each with finishedAt and what it learned, `of`: the names of all its steps,
    `at`: the step that was begun last, `begun`: all that were ever begun, and `by`: the process that wrote it last.
    """

    def __init__(self, store: JournalStore, lease: Lease, entry: Facts | None, version: str | None) -> None:
        self.entry = entry
        self.begun_here = False
        """Whether this process has begun the operation, or has gone on with it."""
        self._store = store
        self._lease = lease
        self._version = version

    @classmethod
    def load(
        cls,
        namespace: str,
        mirror: str,
        environment: Mapping[str, str],
        context: str | None = None,
        whole: bool = True,
    ) -> "Journal":
        """Read the journal of a mirror by a context of the kubeconfig; one that was never failed over is empty.

        Without `whole` large facts of steps may be missing: for who asks only which steps are done.
        """
        place = namespace, f"{mirror}{_SUFFIX}", environment, context
        store = JournalStore(*place)
        return cls(store, Lease(*place), *store.read(whole=whole))

    @property
    def namespace(self) -> str:
        """The namespace of the mirror."""
        return self._store.namespace

    @property
    def name(self) -> str:
        """The name of the ConfigMap and of the Lease."""
        return self._store.name

    @property
    def mirror(self) -> str:
        """The name of the mirror."""
        return self.name.removesuffix(_SUFFIX)

    @property
    def under_way(self) -> bool:
        """Whether an operation was begun and has not ended."""
        return self.entry is not None and self.entry.get("finishedAt") is None

    @property
    def holder(self) -> Holder | None:
        """The process that carries out the operation under way, also one that has ended without a word."""
        return self._lease.holder() if self.under_way else None

    @property
    def steps(self) -> Mapping[str, Facts]:
        """Steps that are done, with what they learned."""
        return {} if self.entry is None else self.entry["steps"]

    @property
    def may_have_changed(self) -> bool:
        """Whether an operation is under way of which a step was begun that changes something."""
        entry = self.entry
        return entry is not None and self.under_way and not begun(entry) <= set(HARMLESS.get(entry["command"], ()))

    def begins(self, command: str) -> bool:
        """Whether a command must be judged: it is not under way itself, and another has changed nothing."""
        entry = self.entry
        if entry is None or not self.under_way:
            return True
        return bool(entry["command"] != command) and not self.may_have_changed

    def require_free(self) -> None:
        """Wait until nobody carries out an operation on this mirror; raises OpsError if somebody is seen to do so."""
        if self._lease.wait_until_free():
            self.entry, self._version = self._store.read()

    def require_held(self) -> None:
        """Raise OpsError unless this process holds the Lease for long enough to make a change. Called before each."""
        self._lease.require()

    def require_room(self, positions: int) -> None:
        """Raise OpsError unless so many offsets of groups fit into the journal; nothing is changed."""
        self._store.require_room(positions)

    def begin(
        self,
        command: str,
        options: Mapping[str, Any],
        *,
        gives_up: bool = False,
        steps: Sequence[str] = (),
    ) -> None:
        """Begin an operation, or go on with the same one; raises OpsError if another is under way.

        One of which no step was begun that changes something is begun anew. `gives_up`: an operation of the same
        command may go on with these options although it began with others. `steps`: the names of all its steps.
        """
        self._lease.acquire()
        try:
            self._begin(command, options, gives_up, list(steps))
        except BaseException:
            self._lease.release()
            raise
        self.begun_here = True

    def _begin(self, command: str, options: Mapping[str, Any], gives_up: bool, steps: list[str]) -> None:
        entry, own = self.entry, {"of": steps, "by": self._lease.identity}
        if entry is None or not self.under_way:
            before = _as_finished(entry) if entry else None
        elif entry["command"] == command and (
            entry["options"] == dict(options) or (gives_up and _of_topics(entry["options"]) == _of_topics(options))
        ):
            # Written in any case: whoever else is at it ends at its next note.
            entry = {key: value for key, value in entry.items() if key != "holder"}  # of earlier releases
            self.entry = {**entry, "options": dict(options), "resumedAt": now(), **own}
            self._write()
            return
        elif not self.may_have_changed or (gives_up and self._is_overtaken(entry, command, options)):
            before = _as_finished(entry) if _has_moved_topics(entry) else entry["before"]
        else:
            raise self.unfinished(command, options)
        self.entry = {
            "command": command,
            "options": dict(options),
            "startedAt": now(),
            "finishedAt": None,
            "steps": _fence_of(entry) if self.may_have_changed and not _has_moved_topics(entry) else {},
            "begun": [],
            "before": _kept(before),
            **own,
        }
        self._write()

    def _is_overtaken(self, entry: Facts, command: str, options: Mapping[str, Any]) -> bool:
        """Whether a failover of some topics is under way, and the mirror's source is given up.

        Not while they switch: until `confirm` nobody knows whether applications may write them at the target.
        """
        topics = _of_topics(entry["options"]) is not None and _of_topics(options) is None
        lost = options.get("path") == "unplanned"
        switches = "switching" in entry["steps"] and not _has_moved_topics(entry)
        return topics and lost and command == entry["command"] and not switches

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the Lease while the block runs; then whoever runs the command next goes on with the operation."""
        with self._lease.kept():
            yield

    def forget(self, *steps: str) -> None:
        """Note that steps must be done again."""
        entry = self.entry or {"steps": {}}
        kept = {name: facts for name, facts in entry["steps"].items() if name not in steps}
        self.entry = {**entry, "steps": kept}
        self._write()

    def repeat(self, *steps: str) -> None:
        """Let an operation that goes on do steps again; noted when it does. They stay begun: what they changed is."""
        if self.entry is None or not (done := [name for name in steps if name in self.steps]):
            return
        kept = {name: facts for name, facts in self.steps.items() if name not in done}
        earlier = [name for name in self.entry.get("begun") or [] if name not in done]
        self.entry = {**self.entry, "steps": kept, "begun": [*earlier, *done]}

    def undo(self, *steps: str) -> None:
        """Note that what steps had changed is as it was before them: they have not begun."""
        entry = self.entry or {"steps": {}}
        kept = {name: facts for name, facts in entry["steps"].items() if name not in steps}
        earlier = [name for name in entry.get("begun") or [] if name not in steps]
        at = entry.get("at")
        self.entry = {**entry, "steps": kept, "begun": earlier, "at": None if at in steps else at}
        self._write()

    def start(self, step: str) -> None:
        """Note that a step begins: from now on it may have changed something."""
        entry = self.entry or {"steps": {}}
        earlier = [name for name in entry.get("begun") or [] if name != step]
        self.entry = {**entry, "at": step, "begun": [*earlier, step]}
        self._write()

    def unfinished(self, command: str, options: Mapping[str, Any]) -> OpsError:
        """Return the error of a command that differs from the operation under way."""
        entry = self.entry or {"command": "nothing", "options": {}, "startedAt": "never"}
        known, asked = {"command": entry["command"], **entry["options"]}, {"command": command, **options}
        different = [key for key in {**known, **asked} if known.get(key) != asked.get(key)]
        differences = ", ".join(f"{key} {known.get(key)!r} (got {asked.get(key)!r})" for key in different)
        return OpsError(
            f"ConfigMap {self.namespace}/{self.name}: a {known['command']} since {entry['startedAt']} is not finished; "
            f"it must be finished as it began: {differences}. Run that command again{self._lost_again()}. (Do not "
            "delete the ConfigMap: what a failback needs to know is in it only.)"
        )

    def _lost_again(self) -> str:
        """What else to do where a failback cannot be finished, because it has begun to switch."""
        fails_back = self.entry is not None and self.entry["command"] == "failback" and "switching" in self.steps
        return f"; if its source is lost again: {SOURCE_LOST_AGAIN}" if fails_back else ""

    def done(self, step: str, facts: Mapping[str, Any]) -> None:
        """Note that a step of the operation under way is done, with what it learned."""
        entry = self.entry or {"steps": {}}
        self._replace({**entry, "steps": {**entry["steps"], step: {**facts, "finishedAt": now()}}})

    def finish(self) -> None:
        """Note that all steps are done."""
        self._replace({**(self.entry or {}), "finishedAt": now(), "at": None})

    def _replace(self, entry: Facts) -> None:
        """Write another entry in place of the one that there is, which stays if that fails: nobody else sees more."""
        before, self.entry = self.entry, entry
        try:
            self._write()
        except BaseException:
            self.entry = before
            raise

    def _write(self) -> None:
        """Write the entry if nobody else has changed it since it was read; raises OpsError."""
        entry = self.entry or {}
        self.require_held()
        try:
            self._version = self._store.write(entry, self._version)
        except ChangedError:
            found, version = self._store.read()
            if found is None or not _is_same(found, entry):
                raise
            self._version = version  # an attempt whose answer was lost


def _is_same(one: Facts, other: Facts) -> bool:
    """Whether two journals are equal, in whatever format they were stored."""
    return {**one, "version": None} == {**other, "version": None}


def begun(entry: Mapping[str, Any]) -> set[str]:
    """Return the steps of an entry that were begun, done or not, also those that are to be done again."""
    at = entry.get("at")
    return {*entry["steps"], *(entry.get("begun") or ()), *([at] if at else [])}


def _kept(before: Facts | None) -> Facts | None:
    """What a failback needs to know of the failover before it: where both sides stood, and what is fenced."""
    if before is None:
        return None
    return {**before, "steps": {name: facts for name, facts in before["steps"].items() if name in ("stop", "fencing")}}


def _as_finished(entry: Facts) -> Facts:
    """What the next operation keeps of an entry. One that was overtaken has finished by that."""
    kept = {key: entry[key] for key in ("command", "options", "finishedAt", "steps")}
    return {**kept, "finishedAt": kept["finishedAt"] or now()}


def _has_moved_topics(entry: Facts | None) -> bool:
    """Whether an entry is a failover of some topics after which only Pulumi has to take over what was changed."""
    return entry is not None and _of_topics(entry["options"]) is not None and "confirm" in entry["steps"]


def _of_topics(options: Mapping[str, Any]) -> str | None:
    """The pattern of a failover of some topics; None for one of a whole mirror."""
    return options.get("topic")


def _fence_of(entry: Facts | None) -> Facts:
    """What an operation that another one overtakes has fenced, which is to be taken down with the other one's."""
    return {name: facts for name, facts in (entry or {"steps": {}})["steps"].items() if name == "fencing"}


def now() -> str:
    """Return this moment, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
