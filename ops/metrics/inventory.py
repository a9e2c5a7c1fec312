"""The metrics of one mirror: what `ops status` sees, by the names that alerts and dashboards use.

Owns names, help texts and what is told when. What could not be learned has no series, and neither has what nobody
expects: a connector of a mirror that is declared stopped is no fault.
"""

from collections.abc import Iterable
from datetime import datetime

from ops.metrics.families import Family
from ops.recovery import status
from ops.recovery.sight import GroupSight, Sight

PREFIX = "rt_inventory"
MIRROR_STATES = ("running", "paused", "stopped")
SIDES = ("source", "target")
GROUPS_MAX = 500
"""Groups with series of their own; of more the costliest are told."""

HELP = {
    "mirror_up": "1 if all connectors and tasks of the mirror run and its resource is Ready; only while it is declared "
    "running.",
    "mirror_state": "1 for the state in which the mirror is declared, 0 for the others.",
    "mirror_active": "1 for the side that applications use by what is declared, 0 for the other.",
    "mirror_problems": "Things that ops status calls a problem of the mirror.",
    "mirror_lag_records": "Records from the first that is not mirrored to the end of the source.",
    "mirror_lag_seconds": "Age of the oldest record that is not mirrored by its own timestamp, 0 without one.",
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


def families(seen: Sight, certificates: Iterable[tuple[str, datetime]]) -> list[Family]:
    """Return the metrics of a look, each with the labels `stack` and `mirror`."""
    of = {"stack": seen.pair.label, "mirror": seen.pair.mirror}
    made = {name: Family(name=f"{PREFIX}_{name}", text=text) for name, text in HELP.items()}

    def tell(name: str, value: float | None, **labels: str) -> None:
        made[name].add(value, **of, **labels)

    for state in MIRROR_STATES:
        tell("mirror_state", state == seen.pair.state, state=state)
    for side in SIDES:
        tell("mirror_active", side == seen.pair.active, side=side)
    tell("cluster_reachable", seen.source_alive, side="source")
    tell("cluster_reachable", seen.target_alive, side="target")
    tell("mirror_problems", len(status.problems(seen)))
    if seen.lag is not None:
        tell("mirror_lag_records", seen.lag.records)
        tell("mirror_lag_seconds", seen.lag.seconds)
    if seen.pair.state == "running":
        tell("mirror_up", up(seen))
        for one in seen.connectors or ():
            tell("connector_running", one.state == "RUNNING", connector=one.name)
            for number, task in enumerate(one.tasks):
                tell("task_running", task == "RUNNING", connector=one.name, task=str(number))
    if seen.groups is not None and seen.source_alive:
        tell("groups", len(seen.groups))
    if seen.groups is not None and seen.pair.active == "source":
        tell("failover_cost_records", cost(seen))
        for group in sorted(seen.groups, key=_weight)[:GROUPS_MAX]:
            tell("group_unread_records", group.unread, group=group.group)
            tell("group_unsynced_records", group.again, group=group.group)
            tell("group_skipped_records", group.skipped, group=group.group)
            tell("group_checkpoint_age_seconds", group.behind_s, group=group.group)
            if seen.lag is not None:
                tell("group_partitions_without_position", len(group.unsynced), group=group.group)
    for what, ends in _latest(certificates).items():
        tell("certificate_expiry_timestamp_seconds", ends.timestamp(), certificate=what)
    return list(made.values())


def up(seen: Sight) -> bool | None:
    """Return whether the mirror works by Connect and its resource; None if neither tells."""
    resource = seen.mirror if seen.mirror is not None and seen.mirror.silent is None else None
    if resource is not None and not resource.ready:
        return False
    if seen.connectors is None:
        return None
    return all(one.running for one in seen.connectors)


def cost(seen: Sight) -> int | None:
    """Return what all groups together would read again; None where a position of a group or the mirror is not known."""
    if seen.lag is None or seen.groups is None or "groups" in seen.unknown or any(one.unsynced for one in seen.groups):
        return None
    return sum(one.again or 0 for one in seen.groups)


def _weight(group: GroupSight) -> tuple[int, str]:
    return -(group.again or 0) - len(group.unsynced), group.group


def _latest(certificates: Iterable[tuple[str, datetime]]) -> dict[str, datetime]:
    """The last moment by certificate: one that was renewed under its name is trusted until the newer one ends."""
    found: dict[str, datetime] = {}
    for what, ends in certificates:
        found[what] = max(ends, found.get(what, ends))
    return found
