"""The metrics of one mirror: the snapshot of `ops status`, by the names that alerts and dashboards use.

Owns names, help texts and what is exported when. What could not be read has no series. Neither have connectors of a
mirror that is declared stopped: they should not run.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from contract import verification_metrics
from kafka.retention import UntilDeletion, worst
from ops.inspection.group_status import GroupStatus
from ops.inspection.snapshot import MirrorSnapshot
from ops.recovery.mirror_context import REPORTS, MirrorContext, latest_verification
from ops.status import document as status

UNITS = ("seconds", "records", "bytes")


@dataclass(frozen=True, kw_only=True)
class Family:
    """One gauge with its samples: labels and value."""

    name: str
    text: str
    samples: list[tuple[dict[str, str], float]] = field(default_factory=list)

    def add(self, value: float | None, **labels: str) -> None:
        """Add a sample; None is not exported at all."""
        if value is not None:
            self.samples.append((labels, float(value)))

    def as_json(self) -> dict[str, Any]:
        """Return the family as JSON values."""
        samples = [{"labels": labels, "value": value} for labels, value in self.samples]
        return {"name": self.name, "help": self.text, "samples": samples}


def of_json(document: Mapping[str, Any]) -> Family:
    """Return the family of a document by `as_json`."""
    samples = [(dict(one["labels"]), float(one["value"])) for one in document["samples"]]
    return Family(name=document["name"], text=document["help"], samples=samples)


def of_registry(registry: Collector) -> list[Family]:
    """Return the gauges of a registry."""
    return [
        Family(
            name=metric.name,
            text=metric.documentation,
            samples=[(dict(one.labels), float(one.value)) for one in metric.samples],
        )
        for metric in registry.collect()
    ]


def merged(families: Iterable[Family]) -> list[Family]:
    """Return one family a name, with the samples of all of them; a family without any is left out."""
    found: dict[str, Family] = {}
    for one in families:
        if one.samples:
            found.setdefault(one.name, Family(name=one.name, text=one.text)).samples.extend(one.samples)
    return [found[name] for name in sorted(found)]


def registry(families: Iterable[Family]) -> CollectorRegistry:
    """Return a registry that collects these families."""
    made = CollectorRegistry()
    made.register(_FamilyCollector(merged(families)))
    return made


class _FamilyCollector(Collector):
    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            unit = next((unit for unit in UNITS if family.name.endswith(f"_{unit}")), "")
            metric = Metric(family.name, family.text, "gauge", unit)
            for labels, value in family.samples:
                metric.add_sample(family.name, labels, value)
            yield metric


PREFIX = "rt_inventory"
MIRROR_STATES = ("running", "paused", "stopped")
SIDES = ("source", "target")
GROUPS_MAX = 500
"""Groups with series of their own; of more the costliest are exported."""
TOPICS_MAX = 500
"""Topics with series of their own; of more those are exported in which retention is nearest."""

HELP = {
    "mirror_up": "1 if all connectors and tasks of the mirror run and its resource is Ready; only while it is declared "
    "running.",
    "mirror_state": "1 for the state in which the mirror is declared, 0 for the others.",
    "mirror_active": "1 for the side that applications use by what is declared, 0 for the other.",
    "mirror_fenced": "1 if no application user may write the mirrored topics at the source, 0 if one may; only if its "
    "users can be read.",
    "mirror_target_fenced": "1 if no application user may write the mirrored topics at the target, for a failback has "
    "fenced it, 0 if one may; only while the target is active and if its users can be read.",
    "mirror_failed_over_topics": "Topics that are failed over by themselves, and are not copied any more.",
    "mirror_problems": "Things that ops status calls a problem of the mirror.",
    "mirror_unproven": "1 if the latest verification found no record and the source has some now, 0 if not.",
    "mirror_lag_records": "Records from the first that is not mirrored to the end of the source.",
    "mirror_lag_seconds": "Age of the oldest record that is not mirrored by its own timestamp, 0 without one.",
    "topic_until_deletion_seconds": "How long retention spares the first record of the topic that is not mirrored, at "
    "least; if all are, what one has that is written now. Of the partition where the least is left beyond what the "
    "mirror needs; only where retention deletes, and while the source is active.",
    "topic_until_deletion_bytes": "Bytes that may be written to that partition until retention by size deletes that "
    "record, about.",
    "topic_lag_seconds": "Age of that record by its own timestamp, 0 without one.",
    "topic_catch_up_seconds": "How long the mirror needs for what is not mirrored of that partition as fast as it "
    "copies now; 0 if there is nothing, no series while it copies nothing.",
    "cluster_reachable": "1 if the cluster answers the user of the mirror, 0 if not.",
    "connector_running": "1 if the connector itself runs, 0 if not; only while the mirror is declared running.",
    "task_running": "1 if the task runs, 0 if not; only while the mirror is declared running.",
    "groups": "Consumer groups of the source that the mirror carries.",
    "group_unread_records": "Records at the source that the group has not read.",
    "group_unsynced_records": "Records that the group would read again at a failover now, in partitions in which it "
    "has a position on the target; by offsets, so about. Only while the source is active.",
    "group_skipped_records": "Records that the group would never read at a failover now; by offsets, so about. Only "
    "while the source is active.",
    "group_partitions_without_position": "Partitions in which the group has a position at the source and none on the "
    "target: it would begin there by its auto.offset.reset. Only while the source is active.",
    "group_checkpoint_age_seconds": "For how long, at most, what the group has read at the source is not in its "
    "position on the target: since the later of the newest checkpoint and the timestamp of the first record that it "
    "read behind that; 0 if the newest checkpoint is of where it stands. Only while the source is active.",
    "failover_cost_records": "Records that all groups together would read again at a failover now: the sum of "
    "rt_inventory_group_unsynced_records. Only while the source is active, and not while a group has a partition "
    "without a position on the target or a position is not known: nobody can tell the cost then.",
    "certificate_expiry_timestamp_seconds": "Last moment of a certificate that clients hold or brokers show.",
}


def families(seen: MirrorSnapshot, certificates: Iterable[tuple[str, datetime]]) -> list[Family]:
    """Return the metrics of a snapshot, each with the labels `stack` and `mirror`."""
    of = {"stack": seen.pair.label, "mirror": seen.pair.mirror}
    made = {name: Family(name=f"{PREFIX}_{name}", text=text) for name, text in HELP.items()}

    def add(name: str, value: float | None, **labels: str) -> None:
        made[name].add(value, **of, **labels)

    for state in MIRROR_STATES:
        add("mirror_state", state == seen.pair.state, state=state)
    for side in SIDES:
        add("mirror_active", side == seen.pair.active, side=side)
    add("cluster_reachable", seen.source_alive, side="source")
    add("cluster_reachable", seen.target_alive, side="target")
    if seen.fence is not None:
        add("mirror_fenced", seen.fence.in_force)
    if seen.target_fence is not None:
        add("mirror_target_fenced", seen.target_fence.in_force)
    add("mirror_failed_over_topics", len(seen.pair.failed_over.topics) if seen.pair.failed_over else 0)
    add("mirror_problems", len(status.problems(seen)))
    add("mirror_unproven", status.proves_too_little(seen))
    if seen.lag is not None:
        add("mirror_lag_records", seen.lag.records)
        add("mirror_lag_seconds", seen.lag.seconds)
    for topic, first in list(_by_topic(seen.until_deletion or ()).items())[:TOPICS_MAX]:
        add("topic_until_deletion_seconds", first.seconds, topic=topic)
        add("topic_until_deletion_bytes", first.left_bytes, topic=topic)
        add("topic_lag_seconds", first.waited_s, topic=topic)
        add("topic_catch_up_seconds", first.catch_up_s, topic=topic)
    if seen.pair.state == "running":
        add("mirror_up", up(seen))
        for one in seen.connectors or ():
            add("connector_running", one.state == "RUNNING", connector=one.name)
            for number, task in enumerate(one.tasks):
                add("task_running", task == "RUNNING", connector=one.name, task=str(number))
    if seen.groups is not None and seen.source_alive:
        add("groups", len(seen.groups))
    if seen.groups is not None and seen.pair.active == "source":
        add("failover_cost_records", cost(seen))
        for group in sorted(seen.groups, key=_weight)[:GROUPS_MAX]:
            add("group_unread_records", group.unread, group=group.group)
            add("group_unsynced_records", group.again, group=group.group)
            add("group_skipped_records", group.skipped, group=group.group)
            add("group_checkpoint_age_seconds", group.behind_s, group=group.group)
            if seen.lag is not None:
                add("group_partitions_without_position", len(group.unsynced), group=group.group)
    for what, ends in _latest(certificates).items():
        add("certificate_expiry_timestamp_seconds", ends.timestamp(), certificate=what)
    return list(made.values())


def _by_topic(found: Iterable[UntilDeletion]) -> dict[str, UntilDeletion]:
    """Return the worst partition of each topic, the worst topic first."""
    by_topic: dict[str, list[UntilDeletion]] = {}
    for one in found:
        by_topic.setdefault(one.topic, []).append(one)
    firsts = {topic: first for topic, ones in by_topic.items() if (first := worst(ones)) is not None}
    return dict(sorted(firsts.items(), key=lambda item: (item[1].margin_s, item[0])))


def up(seen: MirrorSnapshot) -> bool | None:
    """Return whether the mirror works by Connect and its resource; None if neither reports it."""
    resource = seen.mirror if seen.mirror is not None and seen.mirror.silent is None else None
    if resource is not None and not resource.ready:
        return False
    if seen.connectors is None:
        return None
    return all(one.running for one in seen.connectors)


def cost(seen: MirrorSnapshot) -> int | None:
    """Return what all groups together would read again; None where a position of a group or the mirror is not known."""
    if seen.lag is None or seen.groups is None or "groups" in seen.unknown or any(one.unsynced for one in seen.groups):
        return None
    return sum(one.again or 0 for one in seen.groups)


def _weight(group: GroupStatus) -> tuple[int, str]:
    return -(group.again or 0) - len(group.unsynced), group.group


def _latest(certificates: Iterable[tuple[str, datetime]]) -> dict[str, datetime]:
    """The last moment by certificate: one that was renewed under its name is trusted until the newer one ends."""
    found: dict[str, datetime] = {}
    for what, ends in certificates:
        found[what] = max(ends, found.get(what, ends))
    return found


def verification_families(pair: MirrorContext, reports: Path = REPORTS) -> list[Family]:
    """Return the metrics of the last run whose end is known; nothing if there is none.

    A report has them all. Of a run whose report is elsewhere the outputs have the verdict, the checks that do not
    hold, and how many records were compared.
    """
    last = latest_verification(pair, reports)
    if last is None:
        return []
    try:
        return of_registry(verification_metrics.registry({**last, "stack": pair.label, "mirror": pair.mirror}))
    except (KeyError, TypeError, ValueError, AttributeError):  # a report of another version, or half of one
        return []
