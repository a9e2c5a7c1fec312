"""The Prometheus metrics of a verification, made of its report; the job and `ops metrics` serve the same ones.

Owns the names. Reads any document that has at least a mirror and a verdict: a value that the document lacks has no
series, because a missing value is more honest than an invented one.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry, Gauge

from contract.report_rows import columns

JOB = "rt_inventory_verification"
VERDICTS = ("pass", "fail", "unknown", "error", "stopped")
STATES = {True: 1, False: 0, None: -1}
JUDGED = ("pass", "fail", "unknown")
UNITS = ("seconds", "records")
GROUP_METRICS = ("group", "skipped", "repeated", "active", "unclaimed")
"""What is read of a report's row of a group's position."""
# Findings of these kinds are judged by the check named here; all other kinds are ordinary and only shown.
JUDGED_BY = {
    "lost": "records_complete",
    "behind": "records_complete",
    "no_overlap": "records_complete",
    "doubled": "records_unique",
    "altered": "records_intact",
    "wrong_partition": "records_intact",
    "out_of_order": "records_ordered",
    "foreign": "records_foreign",
}


class _Gauges:
    """Creates the gauges of one registry; their first two labels are the stack and the mirror."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.registry = CollectorRegistry()
        self._owner = (str(result.get("stack") or ""), str(result["mirror"]))

    def __call__(self, name: str, text: str, *labels: str) -> "_Bound":
        unit = next((unit for unit in UNITS if name.endswith(f"_{unit}")), "")
        made = Gauge(f"{JOB}_{name}", text, ("stack", "mirror", *labels), unit=unit, registry=self.registry)
        return _Bound(made, self._owner)


class _Bound:
    """A gauge of one stack and mirror."""

    def __init__(self, gauge: Gauge, owner: tuple[str, str]) -> None:
        self._gauge, self._owner = gauge, owner

    def set(self, value: float, *labels: str) -> None:
        self._gauge.labels(*self._owner, *labels).set(value)


def registry(result: Mapping[str, Any]) -> CollectorRegistry:
    """Return the metrics of one report; each has the labels `stack` (empty if the request names none) and `mirror`."""
    gauge = _Gauges(result)
    verdict = gauge("verdict", "1 for the verdict of the last run, 0 for the others.", "verdict")
    for word in VERDICTS:
        verdict.set(word == result["verdict"], word)
    if result.get("finished_at"):
        finished = datetime.fromisoformat(result["finished_at"]).timestamp()
        gauge("finished_timestamp_seconds", "When the last run ended.").set(finished)
    if "seconds" in result:
        gauge("duration_seconds", "How long the last run took.").set(result["seconds"])
    if "exit_code" in result:
        gauge("exit_code", "Exit code of the last run.").set(result["exit_code"])
    check = gauge("check", "1 the check holds, 0 it fails, -1 it could not be judged.", "check")
    for one in result.get("checks") or ():
        check.set(STATES[one["ok"]], one["name"])
    if result.get("records_compared") is not None:
        compared = gauge("records_compared", "Records of the source that have an image.")
        compared.set(result["records_compared"])
    if "partitions" in result:
        _findings(gauge, result)
    _groups(gauge, result)
    last = (result.get("lag") or {}).get("at_end")
    if last:
        gauge("lag_records", "Records that the mirror was behind at the end.").set(last["records"])
        if last["seconds"] is not None:
            age = gauge("lag_seconds", "Age of the oldest record that was not mirrored at the end.")
            age.set(last["seconds"])
    return gauge.registry


def _findings(gauge: _Gauges, result: Mapping[str, Any]) -> None:
    """Totals by kind. A run that judged has 0 where it found nothing; a run that did not judge has no series."""
    records = gauge("finding_records", "Records found of each kind.", "kind")
    none = dict.fromkeys(JUDGED_BY, 0) if result["verdict"] in JUDGED else {}
    for kind, count in {**none, **totals(result)}.items():
        records.set(count, kind)


def _groups(gauge: _Gauges, result: Mapping[str, Any]) -> None:
    skipped = gauge("group_skipped_records", "Records a group would skip at its synced offsets.", "group")
    repeated = gauge("group_repeated_records", "Records a group would read again at its synced offsets.", "group")
    of_groups: dict[str, list[int]] = {}
    for group, never, again, active, unclaimed in columns(result.get("groups") or (), *GROUP_METRICS):
        total = of_groups.setdefault(group, [0, 0])
        # Members on the target go on from where they are, and may have read what no checkpoint explains.
        total[0] += 0 if active or unclaimed else never
        total[1] += 0 if active else again
    for group, (never, again) in of_groups.items():
        skipped.set(never, group)
        repeated.set(again, group)


def totals(result: Mapping[str, Any]) -> dict[str, int]:
    """Return how many records of each kind were found in all partitions together, most first."""
    found: dict[str, int] = {}
    for part in result["partitions"]:
        for finding in part["findings"]:
            found[finding["kind"]] = found.get(finding["kind"], 0) + finding["count"]
    return dict(sorted(found.items(), key=lambda item: -item[1]))
