"""What is measured of many consumer groups: the functions behind `status`, `failover` and `failback`, on real brokers.

Owns which functions are called, and what is reported of them. Each measurement has its own process, because its peak
memory is that of the process: `python -m benchmarks.group_steps NAME REQUEST FOLDER` prints its rows as JSON. Without
Kubernetes and Pulumi: their parts do not depend on the number of groups, but for the journal, whose bytes are those
that its store would write. Does not own the clusters.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import tables
from kafka import in_flight
from kafka.cluster import Cluster
from ops.inspection import snapshot
from ops.recovery import draining, failover, group_offsets, journal_store, mirror_context, mirror_offsets
from ops.recovery.failover_command import FailoverPlan
from ops.recovery.journal import Journal
from ops.recovery.journal_store import JournalStore
from ops.recovery.lease import Lease
from ops.recovery.mirror_context import MirrorContext, connected
from ops.status import document as status

ALONE = 300
"""Groups that are read one after the other: the baseline."""
PARTS = (snapshot.SOURCE, snapshot.TARGET, snapshot.LAG_AND_GROUPS)
Row = dict[str, Any]


class Offline(Journal):
    """A journal that nobody else can have, and that is not stored."""

    def __init__(self) -> None:
        namespace, name = "benchmark", "mm2-failover"
        super().__init__(JournalStore(namespace, name, {}), Lease(namespace, name, {}), None, None)
        self.entry = {"command": "failover", "options": {}, "startedAt": "", "steps": {}, "finishedAt": None}

    def require_held(self) -> None:
        """Permit everything."""


class NothingDeclared:
    """The changes of a stack that a measured step does not make."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "Pulumi.benchmark.yaml"
        self.file.write_text("config: {}\n", encoding="utf-8")
        self.environment = dict(os.environ)

    def require_permission(self) -> None:
        """Permit everything."""

    def outputs(self) -> dict[str, Any]:
        """Return nothing: no measured step reads them."""
        return {}

    def require_as_deployed(self, mirror: str, deployed: Mapping[str, str]) -> None:
        """Accept everything."""

    def set_mirror(self, mirror: str, values: Mapping[str, str | None]) -> None:
        """Change nothing."""

    def up(self, mirror: str | None, log: Callable[[str], None]) -> None:
        """Carry nothing out."""


class Measured:
    """The rows of one process."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    @contextmanager
    def step(self, what: str) -> Iterator[Row]:
        """Measure the block; what it puts into the row is kept."""
        row: Row = {"what": what}
        began = time.monotonic()
        yield row
        row["seconds"] = round(time.monotonic() - began, 2)
        row["peakMib"] = _own_peak_mib()
        self.rows.append(row)


def _own_peak_mib() -> int:
    """The most memory that this program has held: getrusage counts what its parent held when it was started."""
    status_lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return round(next(int(line.split()[1]) for line in status_lines if line.startswith("VmHWM:")) / 1024)


def _work(known: MirrorContext, folder: Path, path: str) -> failover.Failover:
    exact = path == failover.PLANNED
    options = failover.Options(path=path, exact=exact, drain_s=30.0, report_dir=folder / "report", without_fence=True)
    return failover.Failover(known, options, NothingDeclared(folder), Offline(), lambda _: None)


def _seen(known: MirrorContext) -> snapshot.MirrorSnapshot:
    """Return a snapshot of which the groups are known; raises OpsError if they are not."""
    seen = snapshot.collect(known, os.environ, parts=PARTS)
    if seen.groups is None or seen.lag is None or any(one.problem for one in seen.groups):
        raise SystemExit(f"groups and lag must be known (got {seen.unknown}).")
    return seen


def _shown(found: object) -> None:
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        Console(file=nowhere, width=200).print(found)


def reading(known: MirrorContext, _folder: Path, measured: Measured) -> None:
    """Read groups one after the other, then all of them as commands do."""
    source = connected(known.source())
    names = sorted(filter(known.request.mirror.carries_group, source.group_states()))
    source.group_offsets(names[: in_flight.IN_FLIGHT])  # connections and code are there
    with measured.step("read, one group at a time") as row:
        for name in names[:ALONE]:
            source.group_offsets([name])
        row["groups"] = len(names[:ALONE])
    with measured.step("read") as row:
        row["positions"] = sum(map(len, source.group_offsets(names).values()))
        row["groups"] = len(names)


def show_status(known: MirrorContext, _folder: Path, measured: Measured) -> None:
    """Do what `ops status` does, as JSON and on the screen."""
    with measured.step("status") as row:
        seen = _seen(known)
        document = status.document(seen)
        row["documentBytes"] = len(json.dumps(document))
        _shown(status.table(document))
        row["positions"] = sum(len(one.offsets) for one in seen.groups or ())


def show_plan(known: MirrorContext, folder: Path, measured: Measured) -> None:
    """Do what `ops failover --dry-run` does."""
    with measured.step("plan"):
        work = _work(known, folder, failover.PLANNED)
        plan = FailoverPlan(seen=_seen(known), options=work.options, steps=tuple(work.steps()), journal=Offline())
        json.dumps(plan.document())
        _shown(plan.table())


def unplanned(known: MirrorContext, folder: Path, measured: Measured) -> None:
    """Do the step `offsets` of an unplanned failover: half of the positions are not on the target yet."""
    with measured.step("unplanned failover: offsets") as row:
        facts = _work(known, folder, failover.UNPLANNED).offsets()
        row["journalBytes"] = len(journal_store.packed(facts))
        row["positions"] = sum(len(one["offsets"]) for one in facts["groups"].values())


def planned(known: MirrorContext, folder: Path, measured: Measured) -> None:
    """Do the steps of a planned failover that depend on the groups: prove, offsets, and reading back in confirm."""
    work = _work(known, folder, failover.PLANNED)
    with measured.step("planned failover: prove") as row:
        work.prove()
        row["jobPeakMib"] = round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
        row["reportBytes"] = (folder / "report" / "report.json").stat().st_size
    with measured.step("planned failover: offsets") as row:
        facts = work.offsets()
        row["journalBytes"] = len(journal_store.packed(facts))
        row["positions"] = sum(len(one["offsets"]) for one in facts["groups"].values())
    with measured.step("planned failover: confirm"):
        group_offsets.require_reached(connected(known.target()), _noted(facts, "offsets"))


def failback(known: MirrorContext, _folder: Path, measured: Measured) -> None:
    """Do what a failback does for the groups once it knows where they belong: offsets, forward, confirm."""
    source, target = connected(known.source()), connected(known.target())
    names = sorted(filter(known.request.mirror.carries_group, target.group_states()))
    stood = target.group_offsets(names)
    wanted = {group: {tp: offset + 1 for tp, offset in places.items()} for group, places in stood.items()}
    with measured.step("failback: offsets") as row:
        facts = {"groups": {group: _of_group(places, stood[group]) for group, places in _commit(source, wanted)}}
        row["journalBytes"] = len(journal_store.packed(facts))
        row["positions"] = sum(map(len, wanted.values()))
    with measured.step("failback: forward") as row:
        places = {tp for offsets in stood.values() for tp in offsets}
        mappings = mirror_offsets.of_groups(places, wanted, stood)
        row["checkpoints"] = mirror_offsets.write(mappings, known.request.mirror, source, target)
    with measured.step("failback: confirm"):
        group_offsets.require_reached(source, _noted(facts, "offsets"))


def _commit(side: Cluster, wanted: Mapping[str, group_offsets.Offsets]) -> Iterable[tuple[str, group_offsets.Offsets]]:
    return group_offsets.commit_each(side, sorted(wanted.items()))


def _of_group(places: group_offsets.Offsets, stood: group_offsets.Offsets) -> Row:
    at = {"offsets": draining.format_places(places), "from": draining.format_places(stood)}
    return {"repeated": 0, "skipped": 0, **at}


def _noted(facts: Mapping[str, Any], what: str) -> Iterator[tuple[str, group_offsets.Offsets]]:
    return ((group, draining.read_places(found[what])) for group, found in facts["groups"].items())


STEPS: Mapping[str, Callable[[MirrorContext, Path, Measured], None]] = {
    "reading": reading,
    "status": show_status,
    "plan": show_plan,
    "unplanned": unplanned,
    "planned": planned,
    "failback": failback,
}
"""In the order in which they are measured: later ones change positions."""


def main(name: str, request: Path, folder: Path) -> int:
    """Measure one of `STEPS` and print its rows; return the exit code."""
    tables.clean_up_on_sigterm()
    document = json.loads(request.read_text(encoding="utf-8"))
    outputs = {"verificationRequests": {"mm2": document}, "mirrors": {"mm2": {"active": "source"}}}
    known = mirror_context.of_outputs("benchmark", outputs, "mm2", os.environ)
    measured = Measured()
    before = _own_peak_mib()
    STEPS[name](known, folder, measured)
    sys.stdout.write(json.dumps([{**row, "beforeMib": before} for row in measured.rows]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
