"""What a recovery does with the fence at the source: put up, declared, taken down, each noted in the journal.

Owns what is noted, who is named that may write all the same, and that a fence that shall not stay is taken down again.
Does not own the fence (`fence.py`), nor at which step each is done.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from contract.fields import VerificationError
from kafka import topic_writers
from kafka.cluster import Cluster
from kafka.topic_writers import EVERYBODY, TopicWriters
from ops.errors import OpsError
from ops.recovery import fence
from ops.recovery.fence import FENCING, SUPER_USER, SourceFence
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import MirrorContext, connected
from ops.recovery.operation import Facts, Say
from settings import SettingsError
from settings.fence import Fence

STEP = "fence"
ANSWERS_WITHIN_S = 10.0
"""How long a source that is given up may take to carry out its fence."""
_FORESEEN = OpsError, VerificationError, SettingsError


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
        found, refused = self._deny(source, wanted, found, denied)
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
        except _FORESEEN as error:  # the source is given up: it shall keep nobody from going on
            self.say(f"! The fence at {self.at_source.cluster} is not in its stack file: {error}")

    def carry_out_declared(self) -> Facts:
        """Put up what was declared if the source answers; `pendingFence` is the reason why it was not, else None."""
        try:
            self.at_source.put_up(fence.made(self.noted or {}), ANSWERS_WITHIN_S)
        except _FORESEEN as error:
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
        if FENCING not in self.journal.steps:
            return
        try:
            self.journal.forget(*steps)  # first: whatever ends this in the middle, the next command fences again
            self.take_down()
            self.journal.undo(FENCING, *steps)
        except _FORESEEN as error:
            self.say(
                f"! The fence at {self.at_source.cluster} may still be up: applications may write nothing there. "
                f"{error}\n! Run the command again: it goes on, and takes it down if it is interrupted."
            )
        else:
            self.say(f"  the fence at {self.at_source.cluster} is taken down, for the source stays active")

    def who_may_write(self) -> str:
        """Return in words who was found to have the right to write in spite of the fence; empty if nobody was."""
        facts = self.journal.steps.get(STEP) or {}
        found = TopicWriters(principals=facts.get("mayWrite") or {}, unknown=tuple(facts.get("unknown") or ()))
        return fence.may_write(found)

    def _covered(self, names: Iterable[str]) -> Fence:
        return self.at_source.of(*fence.covered(self.pair.request.mirror, names))

    def _note(self, wanted: Fence, denied: Iterable[str]) -> None:
        self.journal.done(FENCING, {**fence.document(wanted), "denied": list(denied)})

    def _deny(
        self, source: Cluster, wanted: Fence, found: TopicWriters, before: list[str]
    ) -> tuple[TopicWriters, list[str]]:
        """Deny principals that rules allow to write; return who is left, and all that are denied by now."""
        others = [one for one, why in found.principals.items() if why != SUPER_USER and one != EVERYBODY]
        if not others:
            return found, before
        denied = list(dict.fromkeys([*before, *others]))
        self._note(wanted, denied)  # first: what may have been made must be found again
        self.journal.require_held()
        why = topic_writers.deny(source, others, wanted.topics)
        if why is not None:
            self._note(wanted, before)
            self.say(f"  {', '.join(others)}: no user of this project; they could not be denied to write ({why})")
            return found, before
        self.say(f"  denied to write by a rule of their own: {', '.join(others)}")
        return found.without(lambda principal: principal in others), denied

    def _allow_again(self, noted: Facts) -> None:
        if denied := noted.get("denied"):
            self.journal.require_held()
            why = topic_writers.allow_again(connected(self.pair.source()), denied, fence.made(noted).topics)
            if why is not None:
                raise OpsError(
                    f"cluster {self.at_source.cluster}: {', '.join(denied)} must be allowed to write again ({why}). "
                    "Delete the rules that deny it: kafka-acls.sh --remove."
                )
