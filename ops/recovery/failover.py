"""The steps of a failover: planned, from a source that is alive, and unplanned, from one that is gone.

Owns what each step does and learns. Each is safe to run again; nothing is changed before `stop`. Does not own the
journal, the plan, or the question whether to begin.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # the package does not list it

from kafka import mirror_position
from kafka.cluster import CALL_DEADLINE_S, READER_WITHIN_S, Cluster
from kafka.errors import ClusterError
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.pulumi.stack_file import verification_state
from ops.recovery import draining, follower_pod, group_offsets, stranded_records, topic_selection, translation
from ops.recovery.client_workloads import FollowingClients
from ops.recovery.failover_scope import Scope, WholeMirror
from ops.recovery.fence import SourceFence
from ops.recovery.fencing import STEP as FENCE
from ops.recovery.fencing import Fencing
from ops.recovery.group_offsets import TargetGroups
from ops.recovery.journal import Journal, begun, now
from ops.recovery.mirror_context import MirrorContext, connected
from ops.recovery.operation import Facts, Say, StackChanges, Step

PLANNED, UNPLANNED = "planned", "unplanned"
MEASURED_WITHIN_S = 60.0
"""How long `measure` takes to read the mirror's position. `stop` may take longer: a failback needs to know it."""
SWITCHING = "switching"
"""Noted when the switch begins: from then on applications may work on the target."""
_NEWEST: OffsetSpec = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]  # the package has no types here


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the person on call has asked for. `drain_s` is how long producers may take to stop.

    `break_glass`: Pulumi is neither asked nor run. `without_fence`: people see to it that nobody writes. `part`: which
    topics fail over by themselves (`topic_selection.py`).
    """

    path: str
    exact: bool
    drain_s: float
    report_dir: Path
    break_glass: bool = False
    without_fence: bool = False
    part: Mapping[str, Any] = field(default_factory=dict)

    def kept(self) -> dict[str, Any]:
        """Return what must be the same when an interrupted failover goes on."""
        others = {"breakGlass": self.break_glass, "withoutFence": self.without_fence}
        given = {key: True for key, is_given in others.items() if is_given}
        return {"path": self.path, "exact": self.exact, **given, **self.part}


class Failover:
    """One failover of one mirror. Without `fence` nobody is refused: people stop the applications.

    `changes` carries out what a step declares. `reconcile` lets Pulumi take over what was changed without it; None
    where Pulumi makes the changes itself, or cannot be asked.
    """

    def __init__(
        self,
        known: MirrorContext,
        options: Options,
        changes: StackChanges,
        journal: Journal,
        say: Say,
        fence: SourceFence | None = None,
        reconcile: Callable[[], None] | None = None,
        scope: Scope | None = None,
    ) -> None:
        self.pair = known
        self.scope = scope or WholeMirror(pair=known, changes=changes, say=say)
        self.options = options
        self.changes = changes
        self._reconcile = reconcile
        self.journal = journal
        self.say = say
        self.mirror = known.request.mirror
        self.unanswered: str | None = None
        """Why the source, which is given up, did not answer this command: it is not asked again before the switch."""
        self.fencing = Fencing(pair=known, at_source=fence, journal=journal, say=say) if fence is not None else None
        # What is verified of a mirror would shrink to a part of it.
        state = None if options.part else verification_state(changes.file)
        self._prover = translation.Prover(known, options.report_dir, changes.environment, say, state)
        self.following = FollowingClients(known, changes.environment, journal, say)

    def steps(self) -> list[Step]:
        """Return the steps of the path in their order."""
        begin = [
            Step("drain", "wait until nothing is written to the source and everything is copied", self.drain),
            Step("prove", "verify records and groups", self.prove),
        ]
        if self.fencing is not None:
            source = self.pair.name_of("source")
            begin = [Step(FENCE, f"take the applications' right to write at {source} away", self.fence), *begin]
        if self.options.path == UNPLANNED:
            begin = [Step("measure", "note what is known of what stays behind", self.measure)]
        translated = "the follower" if self._has_follower else "MirrorMaker"
        exact = "exactly, by the records" if self.options.exact else f"as {translated} has translated them"
        return [
            *begin,
            Step("stop", self.scope.stop_words, self.stop),
            Step("offsets", f"set the groups' offsets on the target, {exact}", self.offsets),
            Step("switch", self.scope.switch_words, self.switch),
            *(self.following.steps() if self.scope.switches_clients else ()),
            Step("confirm", "read back who is active and where the groups stand", self.confirm),
            *([Step("reconcile", "let Pulumi take over what was changed", self.reconcile)] if self._reconcile else ()),
        ]

    def count_partitions(self) -> int:
        """Return how many partitions the remote topics have on the target."""
        return len(self._ends(connected(self.pair.target())))

    def fence(self) -> Facts:
        """Take the right to write away; what was drained before, and was written to since, is to be drained again."""
        if self.fencing is None:
            return {}
        source = connected(self.pair.source())
        facts = self.fencing.put_up(source)
        drained = self.journal.steps.get("drain")
        if drained is None or SWITCHING in self.journal.steps:
            return facts
        grown = draining.grown_since(source, self.pair.request, draining.read_places(drained["ends"]))
        if grown:
            self.say(f"  written to since it was drained: {draining.named(grown)}")
            if "stop" in begun(self.journal.entry or {"steps": {}}):
                self._run_again()
            self.journal.forget("drain", "prove")
        return facts

    def lift_fence(self) -> None:
        """Give the applications their rights back if this failover has ended before its switch."""
        if self.fencing is not None and self.options.path == PLANNED and SWITCHING not in self.journal.steps:
            self.fencing.lift(FENCE)

    def drain(self) -> Facts:
        """Wait until source and mirror are at rest."""
        return draining.drain(
            self.pair.source(),
            self.pair.target(),
            self.pair.request,
            self.options.drain_s,
            self.say,
            self._who_may_write(),
        )

    def prove(self) -> Facts:
        """Run the verification; raises OpsError if records or groups are not as they must be."""
        proof = self._prover.prove()
        group_offsets.require_inactive(connected(self.pair.target()), proof.committed())
        unforgiven = [name for name in proof.failed if not self.options.exact or name not in translation.ABOUT_GROUPS]
        doubts = [*proof.records_in_doubt(), *(() if self.options.exact else proof.groups_in_doubt())]
        unforgiven += [name for name in doubts if name not in unforgiven]
        if unforgiven:
            only_groups = set(unforgiven) <= translation.ABOUT_GROUPS
            fix = "With --exact the groups' offsets are set by the records instead. " if only_groups else ""
            raise OpsError(
                f"mirror {self.pair.mirror}: verification must hold before a planned failover (failed: "
                f"{', '.join(unforgiven)}). {fix}See {proof.report}; nothing has changed. If the source is lost "
                "anyway: --unplanned."
            )
        if self.options.exact:
            proof.require_exact()  # what cannot be translated is reported before anything is changed
        return {**proof.document(), "groups": self._costs(proof)}

    def measure(self) -> Facts:
        """Learn what is known of the records that stay behind; the source is asked as far as it answers."""
        target = connected(self.pair.target())
        return {"newestMirrored": self._newest(target), **self._missing(self._positions(target, MEASURED_WITHIN_S))}

    def _missing(self, copied: dict[TopicPartition, int] | None) -> Facts:
        """How many records of the source are not on the target, None and why if that is unknown."""
        if self.unanswered is not None:
            return {"notMirrored": None, "why": self.unanswered}
        source = self.pair.source()
        try:
            source.connect(stranded_records.ANSWERS_WITHIN_S)
            left = None if copied is None else stranded_records.left_behind(source, copied, self.pair.request)
        except ClusterError as error:  # also one that answers in part only: it shall keep nobody from going on
            return {"notMirrored": None, "why": str(error)}
        if left is None:
            return {"notMirrored": None, "why": "the mirror's position is not known"}
        return {"notMirrored": sum(left.values()), "why": ""}

    def stop(self) -> Facts:
        """Let nothing be copied any more, and note where both sides stand from now on."""
        self.scope.stop()
        if self._has_follower:
            follower_pod.require_ended(self.pair, self.changes.environment, self.say)
        if self.options.path == PLANNED:
            self._require_at_rest()
        target = connected(self.pair.target())
        draining.settled(target, self._ends, self.pair.name_of("target"))
        copied = self._positions(target)
        missing = self._missing(copied) if self.options.path == UNPLANNED else {}
        return {
            **missing,
            "boundary": draining.format_places(self._ends(target)),
            "copied": None if copied is None else draining.format_places(copied),
        }

    def offsets(self) -> Facts:
        """Put every group where it must go on."""
        target = connected(self.pair.target())
        if self.options.path == PLANNED:
            stood = translation.standing(connected(self.pair.source()), self.mirror)
            return {**self._planned_offsets(target), "stood": stood}
        states = target.group_states()
        active = group_offsets.members(target, {one: "" for one in states if self.mirror.carries_group(one)})
        for group in active:
            self.say(f"  group {group} has members on the target already: it is left as it is")
        return {**self._on(target).set_proven(active), "activeOnTarget": active}

    def switch(self) -> Facts:
        """Let the target be active, unless either side was written to since it was compared."""
        if SWITCHING not in self.journal.steps:
            if self.options.path == PLANNED:
                source, name = connected(self.pair.source()), self.pair.name_of("source")
                translation.follow_groups(source, name, self.mirror, self.journal, self.offsets, self.say)
                self._require_at_rest()
            self._require_stopped_since()
            self.journal.done(SWITCHING, {})
        elif left := self._stranded()["stranded"]:  # applications may be at the target: there is no way back
            self.say(f"  on the source only by now: {stranded_records.named(left)}")
        if self.fencing is not None and self.options.path == UNPLANNED:
            self.fencing.declare({tp.topic for tp in self._ends(connected(self.pair.target()))})
        topic_selection.take_in_earlier(self.journal)
        self.scope.switch()
        return {"switchedAt": now()}

    def confirm(self) -> Facts:
        """Read back what applications will find; raises OpsError if it is not what was set."""
        known = self.scope.read_back()
        target = connected(self.pair.target())
        groups = self.journal.steps["offsets"]["groups"]
        wanted = ((group, draining.read_places(found["offsets"])) for group, found in groups.items())
        group_offsets.require_reached(target, wanted)
        pending = self.fencing.carry_out_declared() if self.fencing and self.options.path == UNPLANNED else {}
        return {
            "active": known.active,
            "clientsSecret": known.outputs.clients_secret,
            **self._stranded(),
            **pending,
            **(replace(self.following, pair=known).listed() if self.scope.switches_clients else {}),
        }

    def reconcile(self) -> Facts:
        """Let Pulumi carry the stack file out, which declares what is there already; raises OpsError."""
        if self._reconcile is not None:
            try:
                self._reconcile()
            except OpsError as error:
                raise OpsError(f"{error}\n{self.scope.not_reconciled}") from None
        return {}

    def _who_may_write(self) -> str:
        return self.fencing.who_may_write() if self.fencing is not None else ""

    def _run_again(self) -> None:
        """Let the mirror copy what was written since it was drained, and forget all that was done since."""
        self.scope.run_again()
        self.journal.forget("drain", "prove", "stop", "offsets")

    def _stranded(self) -> Facts:
        """What the source has by now that is not on the target, and that nothing copies any more."""
        source, steps = self.pair.source(), self.journal.steps
        if self.options.path == PLANNED:
            ends = draining.read_places(steps["drain"]["ends"])
            grown = partial(draining.grown_since, source, self.pair.request, ends)
            return stranded_records.found_or_unknown(source, grown)
        if (noted := steps["stop"].get("copied")) is None:
            return {"stranded": None, "why": "the mirror's position is not known"}
        left = partial(stranded_records.left_behind, source, draining.read_places(noted), self.pair.request)
        return stranded_records.found_or_unknown(source, left)

    def _require_at_rest(self) -> None:
        """Raise OpsError if the source was written to after it was drained: the mirror runs again then."""
        ends = draining.read_places(self.journal.steps["drain"]["ends"])
        grown = draining.grown_since(connected(self.pair.source()), self.pair.request, ends)
        if not grown:
            return
        self._run_again()
        who = self._who_may_write()
        raise OpsError(
            f"source {self.pair.name_of('source')}: must not be written to once everything is copied (grew meanwhile: "
            f"{draining.named(grown)}). {f'These may write: {who}. ' if who else ''}The mirror runs again. Stop the "
            "producers and run the command again."
        )

    def _require_stopped_since(self) -> None:
        """Raise OpsError if the copies grew since the mirror was stopped, though applications are not there yet."""
        boundary, ends = self.journal.steps["stop"]["boundary"], self._ends(connected(self.pair.target()))
        if boundary == draining.format_places(ends):
            return
        grown = {tp: end for tp, end in ends.items() if boundary.get(draining.format_place(tp)) != end}
        self.journal.forget("stop", "offsets")
        raise OpsError(
            f"target {self.pair.name_of('target')}: nothing may be written there between stop and switch (changed: "
            f"{draining.named(grown)}). Somebody has started the mirror again, or an application: stop it and run the "
            "command again."
        )

    @property
    def _has_follower(self) -> bool:
        """Whether a pod has set the groups until the mirror was stopped; of some topics it goes on with the others."""
        return self.mirror.exact_offsets and not self.options.part

    def _planned_offsets(self, target: Cluster) -> Facts:
        if self._has_follower and not self.options.exact and follower_pod.last_rounds(self.pair, self.say):
            self._prover.forget()
        proof = self._prover.of_now(connected(self.pair.source()))
        stood = proof.committed()
        self.scope.require_groups(stood)
        group_offsets.require_inactive(target, stood)
        costs, on_target = self._costs(proof), self._on(target)
        if not self.options.exact:
            set_now = on_target.set_synced(stood)
            return {"groups": {group: {**costs.get(group, {}), **found} for group, found in set_now.items()}}
        groups: dict[str, Facts] = {}
        back: dict[str, Mapping[str, int]] = {}

        def set_back(group: str, before: Mapping[TopicPartition, int], to: Mapping[TopicPartition, int]) -> None:
            group_offsets.report_set_back(self.say, group, before, to)
            back[group] = draining.format_places({tp: before[tp] - offset for tp, offset in to.items()})

        wanted = sorted(proof.exact(self.pair, self._ends(target)).items())
        for group, offsets in group_offsets.commit_each(target, wanted, self.journal.require_held, set_back):
            self.say(f"  group {group}: exact in {len(offsets)} partitions")
            places, left = draining.format_places(offsets), on_target.left(offsets)
            noted = {"setBack": back[group]} if group in back else {}
            groups[group] = {"repeated": 0, "skipped": 0, "offsets": places, "left": left, **noted}
        return {"groups": groups}

    def _costs(self, proof: translation.Proof) -> dict[str, dict[str, int]]:
        again, never = proof.cost("repeated"), proof.cost("skipped")
        return {group: {"repeated": again[group], "skipped": never[group]} for group in sorted(again)}

    def _ends(self, target: Cluster) -> dict[TopicPartition, int]:
        return self._on(target).ends()

    def _on(self, target: Cluster) -> TargetGroups:
        return TargetGroups(self.pair, target, self.say, self.journal.require_held)

    def _positions(self, target: Cluster, within_s: float = READER_WITHIN_S) -> dict[TopicPartition, int] | None:
        """How far the mirror had copied; None if that is unknown, which keeps no unplanned failover from going on."""
        try:
            reader, why = mirror_position.open_reader(target, self.pair.request, self.say)
            if reader is not None:
                with closing(reader):
                    return reader.read(within_s)
        except ClusterError as error:
            if self.options.path == PLANNED:
                raise
            why = str(error)
        self.say(f"  the mirror's position is not known: {why}")
        return None

    def _newest(self, target: Cluster) -> dict[str, str]:
        """Time of the newest copied record by topic, UTC."""
        asked = {ClientTopicPartition(*tp): _NEWEST for tp in self._ends(target)}
        newest: dict[str, int] = {}
        for part, future in target.admin.list_offsets(asked, request_timeout=CALL_DEADLINE_S).items() if asked else ():
            try:
                stamp = int(future.result().timestamp)
            except KafkaException:
                continue
            if stamp > newest.get(part.topic, 0):
                newest[part.topic] = stamp
        return {topic: _moment(stamp) for topic, stamp in sorted(newest.items())}


def _moment(stamp_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(stamp_ms / 1000))
