"""Where groups must stand on the other side: exactly, by the verification's comparison, or as MirrorMaker says.

Owns running the job for its positions and reading them. Does not own how the job finds them.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from contract.report_rows import columns
from contract.verification_request import Mirror
from kafka.cluster import Cluster
from kafka.errors import ClusterError, DeniedError
from kafka.topic_partition import TopicPartition
from ops import verify
from ops.errors import OpsError
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import MirrorContext, connected
from settings.text import format_names

Offsets = dict[str, dict[TopicPartition, int]]
TRIES, _STOPPED_WAIT_S = 3, 2
_NAMED_MAX = 5
# Findings after which a record of the source is not surely on the target.
_NOT_HELD = ("lost", "behind", "no_overlap", "altered", "wrong_partition", "expired_at_target")
_ABOUT_RIGHTS = "standby_read_only"
"""Who may write on the side that is to become active: no reason to stay, for applications may write there then."""
ABOUT_GROUPS = frozenset({"groups_synced", "groups_no_loss", "groups_reread_bounded", "checkpoints_consistent"})
"""Checks of where the mirror has put groups, not of records: nothing of that counts if groups are set by the records.
"""

_ABOUT_TOPICS = frozenset({"topics_present", "partitions_match"})
"""Checks that all records were compared: a topic that the source's user may not see has records that nobody has read.
"""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What one run of the job found. `positions` are the report's rows of groups, `partitions` those of partitions.

    `unproven` are checks without an answer, whatever the stack's `allowUnknown` allows: it is meant for an empty pair.
    `empty`: neither side has a record, nor the source a topic that its user may not see.
    """

    verdict: str
    failed: tuple[str, ...]
    unproven: tuple[str, ...] = ()
    records_compared: int
    empty: bool = False
    report: str
    positions: Sequence[Mapping[str, Any]]
    partitions: tuple[Mapping[str, Any], ...] = ()

    def committed(self) -> Offsets:
        """Return where each group stood at the source."""
        return self._by_group("committed", TopicPartition, lambda _, committed: int(committed or 0))

    def exact(self, pair: MirrorContext, ends: Mapping[TopicPartition, int]) -> Offsets:
        """Return where each group must stand on the target to skip and repeat nothing; raises OpsError if unknown.

        `ends` are the target's: a group that has read everything of a partition that holds nothing more goes on there.
        """
        self.require_exact()
        mirror = pair.request.mirror
        return self._by_group(
            "lowest",
            lambda topic, partition: TopicPartition(mirror.target_topic(topic), partition),
            lambda tp, lowest: ends.get(tp, 0) if lowest is None else lowest,
        )

    def require_exact(self) -> None:
        """Raise OpsError, with some of the positions, unless the exact offset of each is known."""
        keys = "group", "topic", "partition", "lowest", "lag"
        unknown = (
            f"{group} on {topic}-{partition}"
            for group, topic, partition, lowest, lag in columns(self.positions, *keys)
            if lowest is None and lag != 0
        )
        if named := list(islice(unknown, _NAMED_MAX)):
            raise OpsError(
                f"groups: exact offsets must be known (got none for {', '.join(named)}: nothing of the partition could "
                f"be compared). Delete groups that nobody needs, or leave --exact out. Report: {self.report}"
            )

    def records_in_doubt(self) -> list[str]:
        """Return the checks of records that failed, and those of records and their topics that had no answer.

        An empty pair has none of the latter.
        """
        unproven = () if self.empty else self.unproven
        found = [name for name in (*self.failed, *unproven) if name.startswith("records_")]
        return found + [name for name in unproven if name in _ABOUT_TOPICS]

    def groups_in_doubt(self) -> list[str]:
        """Return the check that no group skips records if it had no answer although there are groups."""
        return [name for name in self.unproven if name == "groups_no_loss" and self.positions and not self.empty]

    def not_held(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
        """Return those of the partitions of which the target does not surely hold every record, and why."""
        rows = {TopicPartition(row["topic"], row["partition"]): row for row in self.partitions}
        return {tp: why for tp in topic_partitions if (why := _doubt(rows.get(tp)))}

    def cost(self, what: str) -> dict[str, int]:
        """Return what each group would skip or have `repeated` where MirrorMaker has put it."""
        found: dict[str, int] = {}
        for group, number in columns(self.positions, "group", what):
            found[group] = found.get(group, 0) + int(number)
        return found

    def document(self) -> dict[str, Any]:
        """Return it as JSON values, as a journal keeps it."""
        return {
            "verdict": self.verdict,
            "failed": list(self.failed),
            "unproven": list(self.unproven),
            "recordsCompared": self.records_compared,
            "report": self.report,
        }

    def _by_group(
        self,
        key: str,
        place: Callable[[str, int], TopicPartition],
        offset: Callable[[TopicPartition, int | None], int],
    ) -> Offsets:
        """Return an offset of each position by group, made of the value of a key by its partition on a side."""
        found: Offsets = {}
        once: dict[tuple[str, int], TopicPartition] = {}
        for group, topic, partition, value in columns(self.positions, "group", "topic", "partition", key):
            tp = once.get((topic, partition)) or once.setdefault((topic, partition), place(topic, partition))
            found.setdefault(group, {})[tp] = offset(tp, value)
        return found


class Prover:
    """Runs the verification job of a mirror, and again when groups have moved since; keeps the latest proof."""

    def __init__(
        self,
        pair: MirrorContext,
        folder: Path,
        environment: Mapping[str, str],
        say: Callable[[str], None],
        state: str | None = None,
    ) -> None:
        """Run the job for a pair, reports below `folder`; `state` is the URI of what it has verified before."""
        self._pair = pair
        self._state = state
        self._folder = folder
        self._environment = environment
        self._say = say
        self._latest: Proof | None = None

    def prove(self) -> Proof:
        """Return what the job finds now; raises OpsError if it cannot judge."""
        return self._run(_without_canary(self._pair.plan))

    def prove_records(self) -> Proof:
        """Return what the job finds of the records now, without waiting until groups are synced; raises OpsError.

        A mirror that was let go on behind what it had copied cannot translate a position from before, however long one
        waits.
        """
        return self._run(_without_canary(self._pair.plan, sync_group_offsets=False, exact_offsets=False))

    def _run(self, plan: verify.Plan) -> Proof:
        verdict = verify.run(plan, self._folder, self._environment, lambda line: self._say(f"  {line}"), self._state)
        report = verdict.report
        checks = [check for check in report.get("checks", []) if check["name"] != _ABOUT_RIGHTS]
        compared = int(report.get("records_compared") or 0)
        self._latest = Proof(
            verdict=str(report.get("verdict")),
            failed=tuple(str(check["name"]) for check in checks if check["ok"] is False),
            unproven=tuple(str(check["name"]) for check in checks if check["ok"] is None),
            records_compared=compared,
            empty=compared == 0 and not _hides_topics(checks) and self._is_empty(),
            report=str(verdict.html),
            positions=report.get("groups") or (),
            partitions=tuple(report.get("partitions") or ()),
        )
        return self._latest

    def _is_empty(self) -> bool:
        """Whether no mirrored partition of either side has a record."""
        mirror = self._pair.request.mirror
        source, target = connected(self._pair.source()), connected(self._pair.target())
        names = source.topics(mirror.carries_topic, mirror.named_topics)
        remote = {mirror.target_topic(name) for name in names}
        for side, topics in ((source, names), (target, target.topics(remote.__contains__))):
            places = [TopicPartition(topic.name, number) for topic in topics.values() for number in topic.replicas]
            if side.starts(places) != side.ends(places, "read_uncommitted"):
                return False
        return True

    def forget(self) -> None:
        """Let the next proof be a new one, for groups were set on the target since the last."""
        self._latest = None

    def of_now(self, source: Cluster) -> Proof:
        """Return a proof in which every group stands where it stands at the source now; raises OpsError.

        The mirror is stopped by then: a run now does not wait for it.
        """
        moved: list[str] = []
        for _ in range(TRIES):
            proof = self._latest or self._run(_without_waiting(self._pair.plan))
            self._latest = None
            moved = _moved(proof, source, self._pair)
            if not moved:
                return proof
            self._say(
                f"  groups have moved at {source.side.alias} since: {format_names(moved)}; they are translated again"
            )
        raise never_at_rest(source, f"{format_names(moved)} commit on and on")


def _hides_topics(checks: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a report names topics of which nobody knows what the source has in them."""
    return any(one["name"] in _ABOUT_TOPICS and one["ok"] is None and one.get("evidence") for one in checks)


def _doubt(row: Mapping[str, Any] | None) -> str:
    """Why the target does not surely hold every record of a partition; empty if it does."""
    if row is None or not row["compared"]:
        return "nothing of it was compared"
    found = [f"{one['count']} {one['kind']}" for one in row["findings"] if one["kind"] in _NOT_HELD and one["count"]]
    return ", ".join(found) or str(row.get("undecided") or "")


def _without_canary(plan: verify.Plan, **changes: Any) -> verify.Plan:
    """The plan without what it sends: a side that is drained stays so, and a stopped mirror would never copy it.

    `changes` are what else of its mirror is otherwise.
    """
    return replace(plan, request={**plan.request, "mirror": {**plan.request["mirror"], "canary": None, **changes}})


def _without_waiting(plan: verify.Plan) -> verify.Plan:
    """The plan for a stopped mirror."""
    limits = {**plan.request["limits"], "mirror_wait_seconds": _STOPPED_WAIT_S}
    quiet = _without_canary(plan)
    return replace(quiet, request={**quiet.request, "limits": limits})


def never_at_rest(source: Cluster, got: str) -> OpsError:
    """Return the error of groups that move on while a command sets their offsets."""
    return OpsError(
        f"cluster {source.side.alias}: consumer groups must be at rest ({got}). Stop these applications and run the "
        "command again."
    )


def standing(source: Cluster, mirror: Mirror) -> str:
    """Return a digest of where the mirrored groups stand at the source, by which a later one shows that they moved.

    A group whose offsets this user may not read does not count. Raises ClusterError.
    """
    unread: dict[str, ClusterError] = {}
    carried = sorted(group for group in source.group_states() if mirror.carries_group(group))
    at = source.group_offsets(carried, unread)
    _require_answers(unread)
    found = hashlib.sha256()
    for group in sorted(at):
        for tp in sorted(at[group]):
            if mirror.carries_topic(tp.topic):
                found.update(json.dumps([group, *tp, at[group][tp]]).encode())
    return found.hexdigest()


def follow_groups(
    source: Cluster,
    name: str,
    mirror: Mirror,
    journal: Journal,
    set_again: Callable[[], dict[str, Any]],
    report: Callable[[str], None],
) -> None:
    """Set groups' offsets again until none has moved at the source since; raises OpsError if they go on.

    A journal of an earlier release does not say where they were: they may have moved.

    Args:
        source: The side where applications work.
        name: Its name in messages.
        mirror: The mirror that carries the groups from there.
        journal: Its step `offsets` has `stood`, what `standing` returned right before the offsets were set.
        set_again: Sets the offsets again and returns what `offsets` notes. Whatever else follows from them is done by
            then: once this is noted, nobody does it again.
        report: Gets a line for each time.
    """
    for _ in range(TRIES):
        noted = journal.steps["offsets"]
        before = noted.get("stood")
        if before is None:
            report(f"  where groups were at {name} when their offsets were set is not noted")
        elif before == standing(source, mirror):
            return
        else:
            report(f"  groups have moved at {name} since their offsets were set")
        journal.done("offsets", {**noted, **set_again()})
    raise never_at_rest(source, "they have moved each time their offsets were set")


def _moved(proof: Proof, source: Cluster, pair: MirrorContext) -> list[str]:
    """Return the groups that stand elsewhere than in the proof, or are not in it although they have read records."""
    known = proof.committed()
    carried = [group for group in source.group_states() if pair.request.mirror.carries_group(group)]
    unread: dict[str, ClusterError] = {}
    at = source.group_offsets(sorted(known))
    at |= source.group_offsets(sorted(set(carried) - set(known)), unread)
    _require_answers(unread)
    new = {tp for group, topic_partitions in at.items() for tp in topic_partitions if tp not in known.get(group, {})}
    held = _with_records(source, {tp for tp in new if pair.request.mirror.carries_topic(tp[0])})
    return [
        group
        for group, topic_partitions in at.items()
        if any(topic_partitions.get(tp) != offset for tp, offset in known.get(group, {}).items())
        or any(tp in held and tp not in known.get(group, {}) for tp in topic_partitions)
    ]


def _require_answers(unread: Mapping[str, ClusterError]) -> None:
    """Raise the error of a group that cannot be read, unless a right is missing: the proof has said so then."""
    for error in unread.values():
        if not isinstance(error, DeniedError):
            raise error


def _with_records(source: Cluster, topic_partitions: set[TopicPartition]) -> set[TopicPartition]:
    starts, ends = source.starts(topic_partitions), source.ends(topic_partitions, "read_committed")
    return {tp for tp in topic_partitions if ends.get(tp, 0) > starts.get(tp, 0)}
