"""What the demo measures: committed offsets of a group on both clusters, and what a failover cost, record by record."""

import json
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient
from rich.table import Table

from sandbox.demo import StageError

Positions = dict[tuple[str, int], int]
_REQUEST_S = 10.0
_PAUSE_S = 1.0
_quiet = logging.getLogger("sandbox.librdkafka")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


def client_config(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the librdkafka properties of a stack's applications, with the password: never log them."""
    cluster, passwords = outputs["cluster"], outputs["userPasswords"]
    user = next(name for name in passwords if outputs["users"][name]["application"])
    return {
        "bootstrap.servers": cluster["bootstrapServers"],
        "security.protocol": cluster["securityProtocol"],
        "sasl.mechanism": cluster["saslMechanism"],
        "sasl.username": user,
        "sasl.password": passwords[user],
        "ssl.ca.pem": outputs["clusterCaCertificate"],
    }


def positions(outputs: Mapping[str, Any], group: str) -> Positions:
    """Return a group's committed offsets per topic and partition; empty if the cluster does not know the group."""
    admin = AdminClient(client_config(outputs), logger=_quiet)
    answers = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=_REQUEST_S)
    try:
        found = answers[group].result(timeout=_REQUEST_S + 1)
    except KafkaException:
        return {}
    return {(part.topic, part.partition): part.offset for part in found.topic_partitions if part.offset >= 0}


def wait_until_synced(
    source: Mapping[str, Any], target: Mapping[str, Any], group: str, timeout_s: float
) -> tuple[Positions, Positions]:
    """Wait until the target knows the group on every partition that it has read at the source; return both sides.

    The target's offsets are at or before the source's: a mirror translates to the nearest known pair of offsets.
    Raises StageError naming the partitions that are missing when the time is up.
    """
    before = positions(source, group)
    if not before:
        raise StageError(f"group {group}: must have committed at the source (got no offsets).")
    end = time.monotonic() + timeout_s
    while True:
        after = positions(target, group)
        missing = sorted(key for key, offset in before.items() if offset > 0 and key not in after)
        if not missing:
            return before, after
        if time.monotonic() > end:
            names = ", ".join(f"{topic}-{partition}" for topic, partition in missing)
            raise StageError(
                f"group {group}: must be at the target within {timeout_s:g} s (got no offset for {names}). "
                "Check the checkpoint connector: venv/bin/python -m sandbox status."
            )
        time.sleep(_PAUSE_S)


def wait_until_answers(outputs: Mapping[str, Any], timeout_s: float) -> None:
    """Wait until a stack's cluster answers its user; raises StageError when the time is up."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            AdminClient(client_config(outputs), logger=_quiet).list_topics(timeout=_REQUEST_S)
        except KafkaException:
            if time.monotonic() > end:
                name = outputs["cluster"]["name"]
                raise StageError(
                    f"cluster {name}: must answer within {timeout_s:g} s (got no answer). Check its brokers: "
                    "venv/bin/python -m sandbox status."
                ) from None
            time.sleep(_PAUSE_S)
        else:
            return


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


def count_records(
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


def summary_document(
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


def write_summary(path: Path, summary: Mapping[str, Any]) -> None:
    """Write the summary as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")


def summary_table(summary: Mapping[str, Any]) -> Table:
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
