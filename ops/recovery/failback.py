"""The steps of a failback: what was written on the target returns to the source, and the source is active again.

A mirror of its own, `<mirror>-failback`, copies what was written since the failover, from where the failover's journal
says that both sides were equal. Owns what each step does and learns; each is safe to run again. Does not own the
journal, the plan, or the question whether to begin.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.pulumi.stack import PulumiStack
from ops.recovery import (
    connector_offsets,
    draining,
    mirror_context,
    mirror_offsets,
    stranded_records,
    translation,
)
from ops.recovery.client_workloads import FollowingClients
from ops.recovery.fence import SourceFence
from ops.recovery.fencing import STEP as FENCE
from ops.recovery.fencing import Fencing
from ops.recovery.journal import Journal, now
from ops.recovery.mirror_context import MirrorContext, connected
from ops.recovery.operation import Facts, Say, Step
from ops.recovery.returned_groups import ReturnedGroups
from ops.recovery.target_fence import TargetFence, TargetFencing

SETTLING, PREPARED, COPYING = "settling", "prepared", "copying"
NOT_COPIED = -1
SWITCHING = "switching"
"""Noted when the switch begins: from then on applications may work on the source."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the person on call has asked for. Seconds: to settle and catch up, and for producers to stop."""

    catch_up_s: float
    drain_s: float
    report_dir: Path


class Failback:
    """One failback of one mirror. `boundary` is where the target's copies ended when it became active.

    Without `fence` nobody's rights at the source change, without `target_fence` nobody's at the target before `switch`.
    """

    def __init__(
        self,
        known: MirrorContext,
        options: Options,
        pulumi: PulumiStack,
        journal: Journal,
        say: Say,
        fence: SourceFence | None = None,
        target_fence: TargetFence | None = None,
    ) -> None:
        self.pair = known
        self.options = options
        self.pulumi = pulumi
        self.journal = journal
        self.say = say
        self.mirror = known.request.mirror
        self.fencing = Fencing(pair=known, at_source=fence, journal=journal, say=say) if fence is not None else None
        self.target_fencing = TargetFencing(pair=known, at_target=target_fence, journal=journal, say=say)
        self.following = FollowingClients(known, pulumi.environment, journal, say)
        self.name = f"{known.mirror}{mirror_context.FAILBACK_SUFFIX}"
        self._prover: translation.Prover | None = None

    def require_support(self) -> None:
        """Raise OpsError unless the operator can set where a mirror goes on; nothing is changed."""
        where, context = self._connector(self.pair), self.pair.resource.context
        connector_offsets.require_support(*where, self.pulumi.environment, context)

    def steps(self) -> list[Step]:
        """Return the steps in their order."""
        source, target = self.pair.name_of("source"), self.pair.name_of("target")
        fence = f"keep applications from writing at {source}, and let the mirror {self.name} write there"
        return [
            *([Step(FENCE, fence, self.fence)] if self.fencing is not None else []),
            Step("survey", f"find records that only {source} has", self.survey),
            Step("realign", f"let {self.pair.mirror} go on behind all that it had copied", self.realign),
            Step("settle", f"bring them to {target} first, and make room for the whole order there is", self.settle),
            Step("prepare", f"declare the mirror {self.name}, stopped", self.prepare),
            Step("position", "let it begin where both sides were equal", self.position),
            Step("copy", f"bring what was written since back to {source}; applications go on", self.copy),
            *self.target_fencing.steps(self.fence_target),
            Step("drain", f"wait until nothing is written to {target} and everything is copied", self.drain),
            Step("prove", "verify records and groups on the way back", self.prove),
            Step("stop", f"stop the mirror {self.name}", self.stop),
            Step("offsets", f"set the groups' offsets on {source}, exactly, by the records", self.offsets),
            Step(
                "forward", f"let {self.pair.mirror} go on behind what has returned, so that nothing loops", self.forward
            ),
            Step("switch", f"record {source} as active, and start {self.pair.mirror} again", self.switch),
            *self.following.steps(),
            Step("confirm", "read back who is active and where the groups stand", self.confirm),
        ]

    def fence(self) -> Facts:
        """Put up the fence that the failover has declared, if it is not up; it also grants what a failback needs."""
        return self.fencing.put_up(connected(self.pair.source())) if self.fencing is not None else {}

    def survey(self) -> Facts:
        """Find the partitions of the source with records that the mirror had not copied at the failover."""
        source = connected(self.pair.source())
        ends = self._ends(source)
        beyond = self._beyond_commits(source, ends)
        stranded, emptied = stranded_records.not_copied(source, ends, {**self._noted("copied"), **beyond})
        stranded_records.require_logs(source, self.mirror, stranded, self.pair.name_of("source"))
        for tp, records in sorted(stranded.items()):
            self.say(f"  {draining.format_place(tp)}: up to {records} records were not copied before the failover")
        emptied += [tp for tp in self._noted("boundary") if tp not in ends]  # the topic is not there now
        if emptied:
            self.say(f"  made anew at the source, and filled from the target: {draining.named(emptied)}")
        return {
            "copied": draining.format_places(beyond),
            "stranded": draining.format_places(stranded),
            "emptied": draining.format_places({tp: ends[tp] - start for tp, start in source.starts(stranded).items()}),
            "anew": draining.format_places(dict.fromkeys({*stranded, *emptied}, 0)),
        }

    def to_be_emptied(self) -> Mapping[str, int]:
        """Return the offsets in each partition of the source that is to be emptied; reads only.

        Raises OpsError for partitions that must not be emptied now.
        """
        done = self.journal.steps if self.journal.under_way else {}
        emptied: Mapping[str, int] = (
            {} if "settle" in done else (done.get("survey") or self.survey()).get("emptied", {})
        )
        if emptied:
            target = connected(self.pair.target())
            stranded_records.require_replicated(target, draining.read_places(emptied), self.pair.name_of("target"))
        return emptied

    def realign(self) -> Facts:
        """Commit for the mirror what it had copied and could not commit: it would copy that once more."""
        beyond = self._places("survey", "copied")
        self._alter(self.pair, beyond)
        return {"partitions": len(beyond)}

    def settle(self) -> Facts:
        """Copy stranded records to the target, prove that they are there, and empty their partitions at the source.

        They come back with everything else, in the order in which the target has them: nothing is there twice.
        """
        stranded = self._places("survey", "stranded")
        if not stranded:
            return {"records": 0}
        self.pulumi.set_mirror(self.pair.mirror, {"failback": SETTLING, "state": "running"})
        self.pulumi.up(None, self.say)
        source, target = self.pair.source(), self.pair.target()
        drained = draining.drain(source, target, self.pair.request, self.options.catch_up_s, self.say)
        folder = self.options.report_dir / "settle"
        settling = mirror_context.load(
            self.pair.stack, self.pair.mirror, self.pulumi.environment, self.pair.project
        )  # no canary
        proof = translation.Prover(settling, folder, self.pulumi.environment, self.say).prove_records()
        emptied = self.journal.steps.get(stranded_records.EMPTYING, {}).get("ends", {})
        empty = stranded_records.empty_now(source, stranded, emptied)
        gone = {tp: stranded[tp] for tp, is_ours in empty.items() if not is_ours}
        if gone:
            named = stranded_records.named(draining.format_places(gone))
            self.say(f"  deleted at the source before they were found on the target: {named}")
        stranded_records.require_proven(proof, stranded.keys() - empty, self.pair.mirror)
        self.pulumi.set_mirror(self.pair.mirror, {"state": "stopped"})
        self.pulumi.up(None, self.say)
        ends = draining.read_places(drained["ends"])
        stranded_records.require_replicated(target, stranded, self.pair.name_of("target"))
        proven = {tp: ends[tp] for tp in stranded}
        self.journal.done(stranded_records.EMPTYING, {"ends": draining.format_places(proven)})
        stranded_records.delete_records(source, proven, self.journal.require_held)
        found = sum(stranded.values()) - sum(gone.values())
        return {"records": found, "deletedUnproven": sum(gone.values()), "report": proof.report}

    def prepare(self) -> Facts:
        """Declare the way back, stopped."""
        self.pulumi.set_mirror(self.pair.mirror, {"state": "stopped", "failback": PREPARED})
        self.pulumi.up(None, self.say)
        return {}

    def position(self) -> Facts:
        """Set where the way back begins: at the boundary, or at the start where the source's partition was emptied."""
        back = self._back()
        target = connected(back.source())
        boundary, anew = self._noted("boundary"), self._places("survey", "anew")
        positions = {tp: NOT_COPIED if tp in anew else boundary.get(tp, 0) - 1 for tp in self._ends(target)}
        self._alter(back, positions)
        return {"positions": draining.format_places(positions)}

    def copy(self) -> Facts:
        """Start the way back and wait until it is nearly done; who writes may go on."""
        self.pulumi.set_mirror(self.pair.mirror, {"failback": COPYING})
        self.pulumi.up(None, self.say)
        back = self._back()
        draining.catch_up(back.source(), back.target(), back.request, self.options.catch_up_s, self.say)
        return {}

    def fence_target(self) -> Facts:
        """Take the right to write away; what was drained before, and was written to since, is to be drained again."""
        if SWITCHING in self.journal.steps:  # applications are on their way already
            return {}
        return self.target_fencing.put_up(self._grown_since_drained, self._run_again)

    def lift_fence(self) -> None:
        """Give applications their rights at the target back if this failback has ended before its switch."""
        if SWITCHING not in self.journal.steps:
            self.target_fencing.lift()

    def drain(self) -> Facts:
        """Wait until the target and the way back are at rest."""
        back = self._back()
        who = self.target_fencing.who_may_write()
        return draining.drain(back.source(), back.target(), back.request, self.options.drain_s, self.say, who)

    def prove(self) -> Facts:
        """Compare both sides, from the target to the source; raises OpsError unless all records are there."""
        back = self._back()
        proof = self._way_back(back).prove()
        unforgiven = [name for name in proof.failed if name not in translation.ABOUT_GROUPS]
        unforgiven += [name for name in proof.records_in_doubt() if name not in unforgiven]
        if unforgiven:
            raise OpsError(
                f"mirror {self.name}: verification must hold before the source is active again (failed: "
                f"{', '.join(unforgiven)}). See {proof.report}; the target is still active."
            )
        proof.require_exact()  # what cannot be translated is reported while applications can go on
        return proof.document()

    def stop(self) -> Facts:
        """Stop the way back, and note where the source ends."""
        self.pulumi.set_mirror(self.pair.mirror, {"failback": PREPARED})
        self.pulumi.up(None, self.say)
        self._require_at_rest()
        source = connected(self.pair.source())
        draining.settled(source, self._ends, self.pair.name_of("source"))
        return {"ends": draining.format_places(self._ends(source))}

    def offsets(self) -> Facts:
        """Put every group on the source exactly where it is on the target."""
        back = self._back()
        return self._groups.set(back, self._way_back(back))

    def forward(self) -> Facts:
        """Let the forward mirror begin behind everything that the source has now: the target has it already.

        It gets to know where groups are on both sides.
        """
        self._alter(self.pair, {tp: end - 1 for tp, end in self._places("stop", "ends").items()})
        return {"claims": self._groups.write_mappings(self.journal.steps["offsets"]["groups"])}

    def switch(self) -> Facts:
        """Record the source as active, remove the way back and start the mirror; the `up` verifies it."""
        if SWITCHING not in self.journal.steps:
            back = self._back()
            self._groups.follow(back, self._way_back(back), partial(self._require_at_rest, back))
            self._require_at_rest(back)
            self.journal.done(SWITCHING, {})
        elif left := self._stranded()["stranded"]:  # applications may be at the source: there is no way back
            self.say(f"  on the target only by now: {stranded_records.named(left)}")
        if self.fencing is not None:
            self.fencing.open_for_applications()
        values = {"active": "source", "state": "running", "failback": None}
        self.pulumi.set_mirror(self.pair.mirror, values)
        self.pulumi.up(self.pair.mirror, self.say)
        if self.fencing is not None:  # the way back is gone: nothing needs its rights any more
            self.fencing.take_down()
        self.target_fencing.remove_denials()
        return {"switchedAt": now()}

    def confirm(self) -> Facts:
        """Read back what applications will find; raises OpsError if it is not what was set."""
        known = mirror_context.load(self.pair.stack, self.pair.mirror, self.pulumi.environment, self.pair.project)
        if known.active != "source" or known.state != "running":
            raise OpsError(
                f"stack {known.stack}: outputs of mirror {known.mirror} must say active source, state running (got "
                f"{known.active}, {known.state}). Look at the stack file and run the command again."
            )
        self._groups.require_reached()
        clients = {"clientsSecret": known.outputs.clients_secret, **replace(self.following, pair=known).listed()}
        return {"active": known.active, **clients, **self._stranded()}

    def _stranded(self) -> Facts:
        """What the target has by now that did not return and that the mirror has not copied there."""
        source, target = self.pair.source(), self.pair.target()
        at_rest, stopped = self._places("drain", "ends"), self._places("stop", "ends")

        def count() -> Mapping[TopicPartition, int]:
            return stranded_records.not_from(connected(source), stopped, target, at_rest, self.pair.request)

        return stranded_records.found_or_unknown(target, count)

    def _beyond_commits(self, source: Cluster, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """What the mirror had copied and not committed, where it was lost before it could."""
        committed = self._noted("copied")
        open_ = {tp: end for tp, end in ends.items() if committed.get(tp, NOT_COPIED) + 1 < end}
        target = connected(self.pair.target())
        return mirror_offsets.last_copied_offsets(source, target, committed, open_, self._noted("boundary"))

    def _require_at_rest(self, back: MirrorContext | None = None) -> None:
        """Raise OpsError if the target was written to after it was drained: the way back runs again then."""
        if not (grown := self._grown_since_drained(back)):
            return
        self._run_again()
        who = self.target_fencing.who_may_write()
        raise OpsError(
            f"target {self.pair.name_of('target')}: must not be written to once everything is copied (grew meanwhile: "
            f"{draining.named(grown)}). {f'These may write: {who}. ' if who else ''}Records are copied again. Stop the "
            "producers and run the command again."
        )

    def _grown_since_drained(self, back: MirrorContext | None = None) -> dict[TopicPartition, int]:
        back = back or self._back()
        return draining.grown_since(connected(back.source()), back.request, self._places("drain", "ends"))

    def _run_again(self) -> None:
        """Let the way back copy what was written since it was drained, and forget all that was done since."""
        self.pulumi.set_mirror(self.pair.mirror, {"failback": COPYING})
        self.pulumi.up(None, self.say)
        self.journal.forget("drain", "prove", "stop", "offsets", "forward")

    def _back(self) -> MirrorContext:
        """The way back as a pair: its source is the mirror's target."""
        environment = self.pulumi.environment
        back = mirror_context.load(self.pair.stack, self.name, environment, self.pair.project)
        return mirror_context.carrying(back, self.pair, environment)

    def _way_back(self, back: MirrorContext) -> translation.Prover:
        if self._prover is None:
            self._prover = translation.Prover(back, self.options.report_dir, self.pulumi.environment, self.say)
        return self._prover

    def _alter(self, known: MirrorContext, positions: Mapping[TopicPartition, int]) -> None:
        self.journal.require_held()
        connector_offsets.alter(
            *self._connector(known),
            positions,
            self.pulumi.environment,
            lambda line: self.say(f"  {line}"),
            context=known.resource.context,
            require_permission=self.journal.require_held,
        )

    def _connector(self, known: MirrorContext) -> tuple[tuple[str, str, str], str]:
        """Where a mirror's source connector is: its resource, and its name."""
        resource = known.resource
        return (resource.api_version, resource.namespace, resource.name), known.request.mirror.source_connector

    @property
    def _groups(self) -> ReturnedGroups:
        return ReturnedGroups(pair=self.pair, journal=self.journal, say=self.say)

    def _ends(self, side: Cluster) -> dict[TopicPartition, int]:
        return self._groups.ends(side)

    def _noted(self, what: str) -> dict[TopicPartition, int]:
        """What the failover noted when it stopped the mirror."""
        entry = self.journal.entry or {}
        failed_over = entry if entry.get("command") == "failover" else entry.get("before") or {}
        return draining.read_places((failed_over.get("steps") or {}).get("stop", {}).get(what) or {})

    def _places(self, step: str, what: str) -> dict[TopicPartition, int]:
        return draining.read_places(self.journal.steps[step][what])
