"""The fence at the target, while a failback takes applications away from there: they may not write mirrored topics.

Application users get the rights that they have while the source is active, before the step `switch` declares that it
is: the `up` of that step finds them as it renders them. Owns how they are given and taken back, what is noted of it,
and whether the users are refused although the target is active. Does not own the rules (`settings/fence.py`), their
patch (`user_rights.py`), nor the fence of the source, which stays until the switch (`fence.py`, `fencing.py`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from kafka.topic_writers import TopicWriters
from ops.errors import OpsError
from ops.recovery import draining, fence, fencing
from ops.recovery.fence import Log
from ops.recovery.journal import Journal, begun
from ops.recovery.mirror_context import MirrorContext, connected
from ops.recovery.operation import Facts, Say, Step
from ops.recovery.user_rights import UserRights
from settings import SettingsError
from settings.fence import application_users, coverage, has_rules
from settings.files import contexts
from settings.files import load as load_settings
from settings.mirrors import Mirror
from settings.stack import Stack
from settings.text import format_names

STEP = "fence-target"
FENCING = "fencing-target"
"""Noted before the fence is put up: for which topics, and who is denied by rules of their own."""
TARGET_FENCED = "target-fenced"
"""Name of the doctor's finding."""


@dataclass(frozen=True, kw_only=True)
class TargetFence:
    """The fence of one mirror's target, by the stack file of the mirror and a context of the kubeconfig.

    Args:
        cluster: Name of the target's cluster, for messages.
        mirror: Name of the mirror.
        file: Stack file of the mirror, which is the target's.
        rights: The KafkaUsers of that stack.
        log: Gets a line for what is done.
    """

    cluster: str
    mirror: str
    file: Path
    rights: UserRights = field(repr=False)
    log: Log

    def put_up(self) -> list[str]:
        """Take the right to write away and return the users whose rights differ by it.

        It is waited for so long until the operator has carried it out. Raises OpsError.
        """
        now = self._settings()
        changed = self.rights.change(now, self._fenced(now), application_users(now))
        names = format_names(changed) or "no declared application user"
        self.log(f"  {self.cluster}: {names} may not write the mirrored topics any more")
        return changed

    def take_down(self) -> None:
        """Give the applications the rights that they have while the target is active."""
        now = self._settings()
        self.rights.change(self._fenced(now), now, application_users(now))
        self.log(f"  {self.cluster}: applications may write the mirrored topics again")

    def may_write(self) -> dict[str, bool]:
        """Return whether each application user may write a topic that the fence is for. Raises OpsError."""
        now = self._settings()
        names = {user.name for user in application_users(now)}
        found = self.rights.missing(now, self._fenced(now))
        return {name: bool(rules) for name, rules in found.items() if name in names}

    def writers(self, target: Cluster, topics: Iterable[str]) -> TopicWriters:
        """Return who may write the topics all the same, without users of mirrors and the operators."""
        now = self._settings()
        return fence.others_that_may_write(target, topics, now, [mirror.target.user for mirror in now.mirrors])

    def require_reachable(self) -> None:
        """Raise OpsError unless the KafkaUsers can be read; nothing is changed."""
        fence.require_reachable(f"target {self.cluster}", self.rights, self._settings())

    def _settings(self) -> Stack:
        return load_settings(self.file)

    def _fenced(self, settings: Stack) -> Stack:
        """The settings with the source as the mirror's active side."""
        mirrors = (
            each.model_copy(update={"active": "source"}) if each.name == self.mirror else each
            for each in settings.mirrors
        )
        return settings.model_copy(update={"mirrors": tuple(mirrors)})


@dataclass(frozen=True, kw_only=True)
class TargetFencing:
    """The fence of the target in one failback of a mirror. Without `at_target` nobody is refused."""

    pair: MirrorContext
    at_target: TargetFence | None
    journal: Journal
    say: Say

    def steps(self, action: Callable[[], Facts]) -> list[Step]:
        """Return the step that puts the fence up, by this action; none without a fence."""
        words = f"take the applications' right to write at {self.pair.name_of('target')} away"
        return [Step(STEP, words, action)] if self.at_target is not None else []

    def put_up(
        self, grown_since_drained: Callable[[], dict[TopicPartition, int]], run_again: Callable[[], None]
    ) -> Facts:
        """Take the applications' rights away; return the topics, the users, and who may write all the same.

        Principals that the cluster has rules for and no declared user is are denied by rules of their own, if the
        mirror's user has the right to make rules. Raises OpsError.

        Args:
            grown_since_drained: Returns what was written to since the target was drained, which is drained again then.
            run_again: Lets the way back copy it, and forgets what was done since. Called if it may have been stopped.
        """
        if self.at_target is None:
            return {}
        target = connected(self.pair.target())
        facts = self._put_up(self.at_target, target)
        if "drain" in self.journal.steps and (grown := grown_since_drained()):
            self.say(f"  written to since it was drained: {draining.named(grown)}")
            if "stop" in begun(self.journal.entry or {"steps": {}}):
                run_again()
            self.journal.forget("drain", "prove")
        return facts

    def lift(self) -> None:
        """Give applications their rights back, for the failback has ended before its switch.

        What cannot be done is reported, not raised: the error that ended the failback counts.
        """
        if (at_target := self.at_target) is not None:
            down = partial(self._take_down, at_target)
            fencing.lift(self.journal, FENCING, (STEP,), down, self.say, at_target.cluster, "target")

    def lift_left(self, switching: str) -> None:
        """Do so where a killed failback has left the fence and this one cannot go on, for a side is lost meanwhile.

        It stays once `switching` is noted. What cannot be done is reported, not raised, as by `lift`.
        """
        lift = self.lift if self.at_target is not None else None
        fencing.lift_left(self.pair, self.journal, FENCING, "failback", switching, lift, self.say)

    def remove_denials(self) -> None:
        """Delete the rules for principals that are no users of the project: nobody would know of them later."""
        noted, name = self.journal.steps.get(FENCING) or {}, self.pair.name_of("target")
        denied, topics = noted.get("denied") or (), noted.get("topics") or ()
        fencing.allow_again(self.pair.target, name, denied, topics, self.journal)

    def who_may_write(self) -> str:
        """Return in words who was found to have the right to write in spite of the fence; empty if nobody was."""
        return fencing.who_may_write(self.journal.steps.get(STEP))

    def _put_up(self, at_target: TargetFence, target: Cluster) -> Facts:
        noted = self.journal.steps.get(FENCING) or {}
        names = target.names(self.pair.request.mirror.carries_topic)
        topics = sorted({*names, *(noted.get("topics") or ())})

        def note(denied: Iterable[str]) -> None:
            self.journal.done(FENCING, {"topics": topics, "denied": list(denied)})

        denied = list(noted.get("denied") or [])
        note(denied)
        users = at_target.put_up()
        found = at_target.writers(target, topics)
        found, denied = fencing.deny_others(target, topics, found, denied, note, self.journal, self.say)
        if text := fence.may_write(found):
            self.say(f"  may write there all the same: {text}")
        return {
            "topics": topics,
            "users": users,
            "denied": denied,
            "mayWrite": dict(found.principals),
            "unknown": list(found.unknown),
        }

    def _take_down(self, at_target: TargetFence) -> None:
        at_target.take_down()
        self.remove_denials()


def chosen(
    known: MirrorContext,
    folder: Path,
    environment: Mapping[str, str],
    log: Log,
    require_permission: Callable[[], None],
    *,
    without: bool,
) -> tuple[TargetFence | None, list[str]]:
    """Return the fence of a mirror's target, unless it shall be left `without` one, and warnings for the plan."""
    name = known.name_of("target")
    find = None if without else partial(at_target, known, folder, environment, log, require_permission)
    unfenced = "from `drain` on, see to it that nobody writes there"
    return fence.with_warnings(find, name, unfenced, f"the fence at {name}")


def at_target(
    known: MirrorContext,
    folder: Path,
    environment: Mapping[str, str],
    log: Log,
    require_permission: Callable[[], None] = lambda: None,
) -> tuple[TargetFence | None, str]:
    """Return the fence of a mirror's target; None and the reason if no rule of this project can fence it.

    With a fence, the reason is why it does not reach all applications, empty if it does. Raises OpsError if the stack
    file cannot be read.
    """
    file = folder / f"Pulumi.{known.label}.yaml"
    try:
        settings = load_settings(file)
    except SettingsError as error:
        raise OpsError(str(error)) from None
    mirror = next((each for each in settings.mirrors if each.name == known.mirror), None)
    if mirror is None:
        raise OpsError(f"file {file}: mirrors must have {known.mirror} (got none). Take the file that is deployed.")
    if not has_rules(settings.cluster):
        return None, f"cluster {settings.cluster.name} does not ask for rights of users that stack {known.label} makes"
    if mirror.standby != "read-only":
        return None, f"mirror {mirror.name} has standby: {mirror.standby}"
    rights = UserRights(
        context=contexts(folder).get(known.label),
        environment=environment,
        log=log,
        require_permission=require_permission,
    )
    return (
        TargetFence(cluster=known.name_of("target"), mirror=known.mirror, file=file, rights=rights, log=log),
        _not_reached(mirror),
    )


def _not_reached(mirror: Mirror) -> str:
    """Why the fence does not reach all applications although there is one; empty if it does."""
    user, patterns = mirror.target.user, coverage(mirror).without_rule
    reasons = [f"no rule stands for {format_names(patterns)} of its topics"] if patterns else []
    if mirror.clients is not None and mirror.clients.user_of("target") == user:
        reasons.append(f"user {user} serves both the mirror and applications (clients)")
    return " and ".join(reasons)


@dataclass(frozen=True, kw_only=True)
class TargetFenceStatus:
    """The fence of a target that is active.

    Args:
        cluster: Name of the target's cluster.
        users: Whether each application user may write a mirrored topic there.
        unread: Why that is not known; None if it is.
    """

    cluster: str
    users: Mapping[str, bool]
    unread: str | None = None

    @property
    def refused(self) -> list[str]:
        """Application users that are refused."""
        return sorted(user for user, may in self.users.items() if not may)

    @property
    def in_force(self) -> bool | None:
        """Whether all application users are refused; None if there are none, or nobody can tell."""
        return all(not may for may in self.users.values()) if self.users else None

    @property
    def evidence(self) -> str | None:
        """Who is refused, in words; None if nobody is."""
        if not self.refused:
            return None
        return (
            f"the target is active, and {', '.join(self.refused)} may not write the mirrored topics at {self.cluster}: "
            "a failback has fenced it"
        )

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        may_write = sorted(user for user, may in self.users.items() if may)
        return {"cluster": self.cluster, "inForce": self.in_force, "mayWrite": may_write, "refused": self.refused}


def observe(pair: MirrorContext, environment: Mapping[str, str]) -> TargetFenceStatus | None:
    """Return the fence of a mirror's target; None unless that is active and can be fenced."""
    if pair.outputs.active != "target":
        return None
    try:
        found, _ = at_target(pair, pair.project, environment, lambda _: None)
        if found is None:
            return None
        quick = replace(found.rights, call_within_s=fencing.CALL_WITHIN_S, tried_within_s=0.0)
        users = replace(found, rights=quick).may_write()
    except (OpsError, SettingsError) as error:
        return unread(pair, str(error))
    return TargetFenceStatus(cluster=found.cluster, users=users)


def unread(pair: MirrorContext, why: str | None) -> TargetFenceStatus | None:
    """Return a fence of an active target that cannot be read for this reason; None without one."""
    if why is None or pair.outputs.active != "target":
        return None
    return TargetFenceStatus(cluster=pair.name_of("target"), users={}, unread=why)
