"""Where groups must stand on the other side: exactly, by the verification's comparison, or as MirrorMaker says.

Owns running the job for its positions and reading them. Does not own how the job finds them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ops import verify
from ops.errors import OpsError
from ops.recovery.pair import Pair
from spark.clusters import checkpoints
from spark.clusters.cluster import Cluster, Partition

Offsets = dict[str, dict[Partition, int]]
_TRIES, _STOPPED_WAIT_S = 3, 2
# What the state of connectors, groups and checkpoints says about the way, not about the records.
ABOUT_GROUPS = frozenset({"groups_synced", "groups_no_loss", "groups_reread_bounded", "checkpoints_consistent"})


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What one run of the job found. `positions` are the report's rows of groups.

    `expired` are records by partition that the target had and its retention has removed.
    """

    verdict: str
    exit_code: int
    failed: tuple[str, ...]
    records_compared: int
    report: str
    positions: tuple[Mapping[str, Any], ...]
    expired: Mapping[Partition, int] = field(default_factory=dict)

    def committed(self) -> Offsets:
        """Return where each group stood at the source."""
        return self._by_group(lambda row: ((row["topic"], row["partition"]), row["committed"]))

    def exact(self, pair: Pair, ends: Mapping[Partition, int]) -> Offsets:
        """Return where each group must stand on the target to skip and repeat nothing; raises OpsError if unknown.

        `ends` are the target's: a group that has read everything of a partition that holds nothing more goes on there.
        """
        unknown = [row for row in self.positions if row["lowest"] is None and row["lag"] != 0]
        if unknown:
            row = unknown[0]
            raise OpsError(
                f"group {row['group']}: its exact offset on {row['topic']}-{row['partition']} must be known (got none: "
                f"nothing of the partition could be compared). Report: {self.report}"
            )
        mirror = pair.request.mirror

        def place(row: Mapping[str, Any]) -> tuple[Partition, int]:
            copy = mirror.target_topic(row["topic"]), row["partition"]
            return copy, ends.get(copy, 0) if row["lowest"] is None else row["lowest"]

        return self._by_group(place)

    def cost(self, what: str) -> dict[str, int]:
        """Return what each group would skip or have `repeated` where MirrorMaker has put it."""
        found: dict[str, int] = {}
        for row in self.positions:
            found[row["group"]] = found.get(row["group"], 0) + int(row[what])
        return found

    def document(self) -> dict[str, Any]:
        """Return it as JSON values, as a journal keeps it."""
        return {
            "verdict": self.verdict,
            "failed": list(self.failed),
            "recordsCompared": self.records_compared,
            "report": self.report,
        }

    def _by_group(
        self,
        place: Callable[[Mapping[str, Any]], tuple[Partition, int]],
    ) -> Offsets:
        found: Offsets = {}
        for row in self.positions:
            where, offset = place(row)
            found.setdefault(row["group"], {})[where] = offset
        return found


class Prover:
    """Runs the verification job of a mirror, and again when groups have moved since; keeps the latest proof."""

    def __init__(self, pair: Pair, folder: Path, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._pair = pair
        self._folder = folder
        self._environment = environment
        self._say = say
        self._latest: Proof | None = None

    def prove(self) -> Proof:
        """Return what the job finds now; raises OpsError if it cannot judge."""
        return self._run(self._pair.plan)

    def _run(self, plan: verify.Plan) -> Proof:
        verdict = verify.run(plan, self._folder, self._environment, lambda line: self._say(f"  {line}"))
        report = verdict.report
        self._latest = Proof(
            verdict=str(report.get("verdict")),
            exit_code=verdict.exit_code,
            failed=tuple(str(check["name"]) for check in report.get("checks", []) if check["ok"] is False),
            records_compared=int(report.get("records_compared") or 0),
            report=str(verdict.html),
            positions=tuple(report.get("groups") or ()),
            expired=_expired(report.get("partitions") or ()),
        )
        return self._latest

    def of_now(self, source: Cluster) -> Proof:
        """Return a proof in which every group stands where it stands at the source now; raises OpsError.

        The mirror is stopped by then: a run now does not wait for it.
        """
        moved: list[str] = []
        for _ in range(_TRIES):
            proof = self._latest or self._run(_without_waiting(self._pair.plan))
            self._latest = None
            moved = _moved(proof, source)
            if not moved:
                return proof
            self._say(
                f"  groups have moved at {source.side.alias} since: {', '.join(moved)}; they are translated again"
            )
        raise OpsError(
            f"cluster {source.side.alias}: consumer groups must be at rest ({', '.join(moved)} commit on and on). Stop "
            "these applications and run the command again."
        )


def claimed(pair: Pair, target: Cluster) -> Offsets:
    """Return where MirrorMaker's checkpoints say that each group should go on, source not needed; raises OpsError."""
    found: Offsets = {}
    claims = checkpoints.read_checkpoints(target, pair.request.mirror)
    if claims.problems:
        raise OpsError("\n".join(claims.problems))
    for (group, topic, partition), history in claims.checkpoints.items():
        if history.newest and pair.request.mirror.carries_group(group):
            found.setdefault(group, {})[topic, partition] = history.newest[-1].downstream
    return found


def _expired(rows: Iterable[Mapping[str, Any]]) -> dict[Partition, int]:
    found: dict[Partition, int] = {}
    for row in rows:
        records = sum(one["count"] for one in row["findings"] if one["kind"] == "expired_at_target")
        if records:
            found[row["topic"], row["partition"]] = records
    return found


def _without_waiting(plan: verify.Plan) -> verify.Plan:
    """The plan for a stopped mirror, which would never copy a canary."""
    limits = {**plan.request["limits"], "mirror_wait_seconds": _STOPPED_WAIT_S}
    mirror = {**plan.request["mirror"], "canary": None}
    return replace(plan, request={**plan.request, "limits": limits, "mirror": mirror})


def _moved(proof: Proof, source: Cluster) -> list[str]:
    """Return the groups that do not stand any more where they stood in the proof."""
    return [
        group
        for group, known in proof.committed().items()
        if any(source.group_offsets([group])[group].get(place) != offset for place, offset in known.items())
    ]
