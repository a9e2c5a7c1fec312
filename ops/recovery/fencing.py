"""What a recovery does with the fence at the source, each noted in the journal; and whether the source is fenced now.

Owns what is noted, who is named that may write all the same, and that a fence that shall not stay is taken down again;
and what is a problem: a fence that nobody needs, and a source that takes writes while the target is active. Does not
own the fence (`fence.py`), nor at which step each is done.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from contract.fields import VerificationError
from kafka import topic_writers
from kafka.cluster import Cluster
from kafka.errors import ClusterError
from kafka.topic_writers import EVERYBODY, TopicWriters
from ops import verify
from ops.errors import OpsError
from ops.recovery import fence
from ops.recovery.fence import FENCING, SUPER_USER, SourceFence
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import MirrorContext, connected
from ops.recovery.operation import Facts, Say, of_journal
from settings import SettingsError
from settings.fence import Fence

STEP = "fence"
ANSWERS_WITHIN_S = 10.0
"""How long a source that is given up may take to carry out its fence."""
FORESEEN = OpsError, VerificationError, SettingsError
LEFT_BEHIND, TAKES_WRITES = "fence-left-behind", "source-still-takes-writes"
"""Names of the doctor's findings."""
_UNKNOWN = OpsError, SettingsError
CALL_WITHIN_S = 5
"""For reading the users: the source may be lost, and a failover waits for the snapshot."""


@dataclass(frozen=True, kw_only=True)
class Fencing:
    """The fence of the source in one recovery of a mirror."""

    pair: MirrorContext
    at_source: SourceFence
    journal: Journal
    say: Say

    @property
    def noted(self) -> Facts | None:
        """What the journal says is fenced, or shall be: by this operation, or by the failover before a failback."""
        entry = self.journal.entry or {"steps": {}}
        fails_back = entry.get("command") == "failback"
        before = ((entry.get("before") or {}).get("steps") or {}) if fails_back else {}
        found: Facts | None = entry["steps"].get(FENCING) or before.get(FENCING)
        return found

    def put_up(self, source: Cluster) -> Facts:
        """Take the applications' rights away; return what is fenced, the users, and who may write all the same.

        Principals that the cluster has rules for and no declared user is are denied by rules of their own, if the
        mirror's user has the right to make rules. Raises OpsError.
        """
        noted = self.noted
        wanted = fence.made(noted) if noted else self._covered(source.names(lambda _: True))
        denied = list(noted.get("denied") or []) if noted else []
        self._note(wanted, denied)
        users = self.at_source.put_up(wanted)
        found = self.at_source.writers(source, wanted)
        found, refused = deny_others(
            source, wanted.topics, found, denied, lambda who: self._note(wanted, who), self.journal, self.say
        )
        if text := fence.may_write(found):
            self.say(f"  may write there all the same: {text}")
        return {
            **fence.document(wanted),
            "users": users,
            "denied": refused,
            "mayWrite": dict(found.principals),
            "unknown": list(found.unknown),
        }

    def declare(self, remote_topics: Iterable[str]) -> None:
        """Write down what is to be fenced once the source answers: into the journal and the source's stack file."""
        noted, mirror = self.noted, self.pair.request.mirror
        every = self._covered(fence.names_at_source(mirror, remote_topics))
        wanted = fence.plus(fence.made(noted), every) if noted else every
        self._note(wanted, (noted or {}).get("denied") or [])
        try:
            self.at_source.declare(wanted)
        except FORESEEN as error:  # the source is given up: it shall keep nobody from going on
            self.say(f"! The fence at {self.at_source.cluster} is not in its stack file: {error}")

    def carry_out_declared(self) -> Facts:
        """Put up what was declared if the source answers; `pendingFence` is the reason why it was not, else None."""
        try:
            self.at_source.put_up(fence.made(self.noted or {}), ANSWERS_WITHIN_S)
        except FORESEEN as error:
            self.say(f"! {self.at_source.cluster} still takes writes once it is back: it cannot be fenced now. {error}")
            return {"pendingFence": str(error)}
        return {"pendingFence": None}

    def open_for_applications(self) -> None:
        """Let applications write again, because they are about to come back."""
        if (noted := self.noted) is not None:
            self.at_source.open_for_applications(fence.made(noted))
            self._allow_again(noted)

    def take_down(self) -> None:
        """Take the fence down and out of the stack file."""
        if (noted := self.noted) is not None:
            self.at_source.take_down(fence.made(noted))
            self._allow_again(noted)

    def lift(self, *steps: str) -> None:
        """Take down what was put up for a failover that has ended before its switch, and forget these steps.

        What cannot be done is reported, not raised: the error that ended the failover counts.
        """
        lift(self.journal, FENCING, steps, self.take_down, self.say, self.at_source.cluster, "source")

    def who_may_write(self) -> str:
        """Return in words who was found to have the right to write in spite of the fence; empty if nobody was."""
        return who_may_write(self.journal.steps.get(STEP))

    def _covered(self, names: Iterable[str]) -> Fence:
        return self.at_source.of(*fence.covered(self.pair.request.mirror, names))

    def _note(self, wanted: Fence, denied: Iterable[str]) -> None:
        self.journal.done(FENCING, {**fence.document(wanted), "denied": list(denied)})

    def _allow_again(self, noted: Facts) -> None:
        topics = fence.made(noted).topics
        allow_again(self.pair.source, self.at_source.cluster, noted.get("denied") or (), topics, self.journal)


def deny_others(
    cluster: Cluster,
    topics: Iterable[str],
    found: TopicWriters,
    before: list[str],
    note: Callable[[list[str]], None],
    journal: Journal,
    say: Say,
) -> tuple[TopicWriters, list[str]]:
    """Deny principals that rules allow to write, by rules of their own, if the mirror's user may make rules.

    Args:
        cluster: The cluster.
        topics: Topics that they may not write any more.
        found: Who may write them.
        before: Who may be denied already.
        note: Writes down who may be denied from now on.
        journal: Asked whether the Lease is held.
        say: Gets a line for what is done.

    Returns:
        Who may write all the same, and all that may be denied by now.
    """
    others = [one for one, why in found.principals.items() if why != SUPER_USER and one != EVERYBODY]
    if not others:
        return found, before
    denied = list(dict.fromkeys([*before, *others]))
    note(denied)  # first: what may have been made must be found again
    journal.require_held()
    try:
        why = topic_writers.deny(cluster, others, topics)
    except ClusterError as error:  # they stay noted: what was made goes with the fence
        say(f"  {', '.join(others)}: no user of this project; whether they are denied to write is unknown ({error})")
        return found, denied
    if why is not None:
        note(before)
        say(f"  {', '.join(others)}: no user of this project; they could not be denied to write ({why})")
        return found, before
    say(f"  denied to write by a rule of their own: {', '.join(others)}")
    return found.without(lambda principal: principal in others), denied


def allow_again(
    side: Callable[[], Cluster], name: str, denied: Iterable[str], topics: Iterable[str], journal: Journal
) -> None:
    """Delete the rules that `deny_others` may have made on a cluster of this name; raises OpsError."""
    if principals := [*denied]:
        journal.require_held()
        why = topic_writers.remove_denials(connected(side()), principals, topics)
        if why is not None:
            raise OpsError(
                f"cluster {name}: {', '.join(principals)} must be allowed to write again ({why}). "
                "Delete the rules that deny it: kafka-acls.sh --remove."
            )


def lift(
    journal: Journal,
    noted: str,
    steps: Iterable[str],
    take_down: Callable[[], None],
    say: Say,
    cluster: str,
    side: str,
) -> None:
    """Take a fence down whose operation has ended before its switch, and forget the steps that have put it up.

    What cannot be done is reported, not raised: the error that ended the operation counts.

    Args:
        journal: Of the operation.
        noted: Its entry of the fence; without one there is none.
        steps: The steps.
        take_down: Gives the applications their rights back.
        say: Gets a line for what is done.
        cluster: Name of the cluster.
        side: Which side it is, and stays active.
    """
    if noted not in journal.steps:
        return
    try:
        journal.forget(*steps)  # first: whatever ends this in the middle, the next command fences again
        take_down()
        journal.undo(noted, *steps)
    except FORESEEN as error:
        say(
            f"! The fence at {cluster} may still be up: applications may write nothing there. "
            f"{error}\n! Run the command again: it goes on, and takes it down if it is interrupted."
        )
    else:
        say(f"  the fence at {cluster} is taken down, for the {side} stays active")


def lift_left(
    pair: MirrorContext,
    journal: Journal,
    noted: str,
    command: str,
    switching: str,
    lift: Callable[[], None] | None,
    say: Say,
) -> None:
    """Take a fence down that a killed command has left, because the next one ends before its first step.

    It stays once `switching` is noted. What cannot be done is reported, not raised, as by `lift`, which this calls with
    the Lease; None: this command cannot. `noted` and `command` are of the fence and of the operation that needs it.
    """
    entry, found = journal.entry or {}, of_journal(journal, pair.stack, pair.project)
    if found is None or found.command != command or noted not in journal.steps or switching in journal.steps:
        return
    name, why = pair.name_of("source" if noted == FENCING else "target"), ""
    try:
        if lift is not None and not journal.begun_here:
            journal.begin(command, entry["options"], steps=entry.get("of") or [])
    except FORESEEN as error:
        lift, why = None, f" {error}"
    if lift is None:
        say(
            f"! The fence at {name} is still up: applications may write nothing there.{why}\n! To go on: "
            f"{found.continue_with}. It takes the fence down if it ends before its switch."
        )
        return
    with journal.held():
        lift()


def who_may_write(facts: Facts | None) -> str:
    """Return in words who was found to have the right to write in spite of a fence, by what its step has learned."""
    facts = facts or {}
    found = TopicWriters(principals=facts.get("mayWrite") or {}, unknown=tuple(facts.get("unknown") or ()))
    return fence.may_write(found)


@dataclass(frozen=True, kw_only=True)
class FenceStatus:
    """The fence of a source.

    Args:
        cluster: Name of the source's cluster.
        stack: Stack of the source.
        users: Whether each application user may write a mirrored topic there.
        declared: Whether the source's stack file has a fence for topics of the mirror.
        failed_over: Whether each application user may write a topic there that is failed over by itself.
        unread: Why nothing else of it is known, although it must be up; None if it is known.
    """

    cluster: str
    stack: str
    users: Mapping[str, bool]
    declared: bool
    failed_over: Mapping[str, bool] = field(default_factory=dict)
    unread: str | None = None

    @property
    def may_write(self) -> list[str]:
        """Application users that are not refused."""
        return sorted(user for user, may in self.users.items() if may)

    @property
    def refused(self) -> list[str]:
        """Application users that are refused."""
        return sorted(user for user, may in self.users.items() if not may)

    @property
    def in_force(self) -> bool | None:
        """Whether all application users are refused; None if there are none."""
        return not self.may_write if self.users else None

    def issue(self, active: str, *, recovers: bool) -> tuple[str, str] | None:
        """Return the name of the issue and its evidence; None if the fence is as it must be.

        Args:
            active: The side that applications use.
            recovers: Whether a failover or failback has changed something and not finished: it is reported by itself.
        """
        if recovers:
            return None
        if active == "target" and self.may_write:
            users = ", ".join(self.may_write)
            return TAKES_WRITES, f"the target is active, and {users} may write the mirrored topics at {self.cluster}"
        if moved := sorted(user for user, may in self.failed_over.items() if may):
            what = f"topics are failed over by themselves, and {', '.join(moved)} may write them at {self.cluster}"
            return TAKES_WRITES, what
        if active == "source" and self.refused:
            users = ", ".join(self.refused)
            return LEFT_BEHIND, f"the source is active, and {users} may not write the mirrored topics there"
        if active == "source" and self.declared:
            return LEFT_BEHIND, f"the source is active, and the stack file of {self.stack} declares a fence"
        return None

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "cluster": self.cluster,
            "inForce": self.in_force,
            "mayWrite": self.may_write,
            "refused": self.refused,
            "declared": None if self.unread else self.declared,
            "mayWriteFailedOver": sorted(user for user, may in self.failed_over.items() if may),
        }


def observe(pair: MirrorContext, environment: Mapping[str, str]) -> FenceStatus | None:
    """Return the fence of a mirror's source; None if it cannot be fenced, or need not be and cannot be read."""
    if pair.outputs.active is None:
        return None
    mirror = pair.request.mirror
    try:
        found, _ = fence.at_source(pair, pair.project, environment, lambda _: None)
        if found is None or pair.source_stack is None:
            return None
        declared = found.declared(mirror)
        topics, prefixes = fence.covered(mirror, ())
        moved = pair.failed_over.topics if pair.failed_over is not None else ()
        if declared is None and not topics and not prefixes and not moved:
            return None
        quick = replace(found, rights=replace(found.rights, call_within_s=CALL_WITHIN_S, tried_within_s=0.0))
        users = quick.missing(declared or found.of(topics, prefixes))
        of_moved = quick.missing(found.of(moved, ())) if moved else {}
    except _UNKNOWN as error:
        return unread(pair, str(error))
    return FenceStatus(
        cluster=found.cluster,
        stack=verify.label_of(pair.source_stack),
        users=users,
        declared=declared is not None,
        failed_over=of_moved,
    )


def unread(pair: MirrorContext, why: str | None) -> FenceStatus | None:
    """Return a fence that must be up and cannot be read for this reason; None without one, or where none must be."""
    if why is None or pair.source_stack is None or (pair.active != "target" and pair.failed_over is None):
        return None
    stack = verify.label_of(pair.source_stack)
    return FenceStatus(cluster=pair.name_of("source"), stack=stack, users={}, declared=False, unread=why)


def carry_out_declared(pair: MirrorContext, environment: Mapping[str, str], log: Callable[[str], None]) -> list[str]:
    """Fence a source that takes writes although a failover has declared its fence; return the users that changed.

    Nothing is done while a failover or failback is under way, and without a fence in the journal. Raises OpsError, also
    if the journal has changed by the time of a change: this process has no Lease, and may have been suspended.
    """
    place = pair.resource.namespace, pair.mirror, environment, pair.resource.context
    journal = Journal.load(*place)

    def require_unchanged() -> None:
        if Journal.load(*place).entry != journal.entry:
            raise OpsError(f"mirror {pair.mirror}: a failover or failback has gone on since; nothing is fenced here.")

    entry = journal.entry or {}
    if journal.under_way:  # what it begins with has changed nothing yet, or nothing is done here
        entry = entry.get("before") or {}
    noted = (entry.get("steps") or {}).get(FENCING)
    found, _ = fence.at_source(pair, pair.project, environment, log, require_unchanged)
    if journal.may_have_changed or noted is None or found is None or entry["command"] != "failover":
        return []
    return found.put_up(fence.made(noted), ANSWERS_WITHIN_S)
