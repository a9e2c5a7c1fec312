"""What a failover cost, counted record by record: produced, replicated, lost, repeated."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table


@dataclass(frozen=True)
class Outcome:
    """Records by their ids. Lost: produced, and read by the group neither at the source nor at the target."""

    produced: int
    replicated: int
    read_before: int
    read_after: int
    lost: int
    repeated: int

    @property
    def nothing_lost(self) -> bool:
        """Whether every record that was produced reached the target and the group."""
        return self.produced > 0 and self.lost == 0 and self.replicated == self.produced


def read_ids(path: Path) -> list[str]:
    """Return the record ids of a file of `partition, offset, id` lines, in order; '' where a record has no id."""
    return [line.rstrip("\n").split("\t")[2] for line in path.read_text("utf-8").splitlines()]


def count(
    produced: Collection[str], at_target: Collection[str], before: Sequence[str], after: Sequence[str]
) -> Outcome:
    """Return the outcome of a failover.

    `produced` are the acknowledged records, `at_target` all records of the target's topic, `before` and `after` what
    the group was handed at the source and at the target, in order, with every repetition.
    """
    ours = set(produced)
    seen = set(before)
    repeated = 0
    for record in after:
        repeated += record in seen
        seen.add(record)
    return Outcome(
        produced=len(produced),
        replicated=len(ours & set(at_target)),
        read_before=len(before),
        read_after=len(after),
        lost=len(ours - seen),
        repeated=repeated,
    )


def document(
    outcome: Outcome, seconds: Mapping[str, float], *, resident_mib: int | None, verdict: str, report: str
) -> dict[str, Any]:
    """Return the machine-readable summary. Times in seconds, memory in MiB (None: not known)."""
    return {
        "records": asdict(outcome),
        "nothingLost": outcome.nothing_lost,
        "seconds": dict(seconds),
        "secondsTotal": round(sum(seconds.values()), 1),
        "residentMiB": resident_mib,
        "verdict": verdict,
        "report": report,
    }


def write(path: Path, summary: Mapping[str, Any]) -> None:
    """Write the summary as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")


def table(summary: Mapping[str, Any]) -> Table:
    """Return the summary for people: what happened to the records, then how long each stage took."""
    records = summary["records"]
    result = Table(title="Failover of a consumer group from dev to stg", title_justify="left", show_header=False)
    result.add_column()
    result.add_column(justify="right")
    for label, key in (
        ("records produced at the source", "produced"),
        ("records replicated to the target", "replicated"),
        ("read by the group at the source", "read_before"),
        ("read by the group at the target", "read_after"),
        ("repeated after the failover", "repeated"),
    ):
        result.add_row(label, f"{records[key]:,}")
    lost = records["lost"]
    result.add_row("[bold]lost[/bold]", f"[bold {'red' if lost else 'green'}]{lost:,}[/]", end_section=True)
    for stage, taken in summary["seconds"].items():
        result.add_row(stage, f"{taken:.1f} s")
    result.add_row("[bold]all stages[/bold]", f"[bold]{summary['secondsTotal']:.1f} s[/bold]", end_section=True)
    if summary["residentMiB"] is not None:
        result.add_row("memory of both clusters and the mirror", f"{summary['residentMiB']:,} MiB")
    result.add_row("verification before the failover", summary["verdict"])
    return result
