"""What a run found, as Prometheus metrics: for node_exporter's textfile collector, or pushed to a gateway."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, push_to_gateway, write_to_textfile

from spark.report.summary import totals

JOB = "rt_inventory_verification"
VERDICTS = ("pass", "fail", "unknown", "error", "stopped")
STATES = {True: 1, False: 0, None: -1}
PUSH_DEADLINE_S = 10.0


def registry(result: Mapping[str, Any]) -> CollectorRegistry:
    """Return the metrics of one report; each has the label `mirror`."""
    found = CollectorRegistry()

    def gauge(name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"{JOB}_{name}", text, ("mirror", *labels), registry=found)

    mirror = result["mirror"]
    verdict = gauge("verdict", "1 for the verdict of the last run, 0 for the others.", "verdict")
    for word in VERDICTS:
        verdict.labels(mirror, word).set(word == result["verdict"])
    finished = datetime.fromisoformat(result["finished_at"]).timestamp()
    gauge("finished_timestamp_seconds", "When the last run ended.").labels(mirror).set(finished)
    gauge("duration_seconds", "How long the last run took.").labels(mirror).set(result["seconds"])
    gauge("exit_code", "Exit code of the last run.").labels(mirror).set(result["exit_code"])
    check = gauge("check", "1 the check holds, 0 it fails, -1 it could not be judged.", "check")
    for one in result["checks"]:
        check.labels(mirror, one["name"]).set(STATES[one["ok"]])
    if "records_compared" in result:
        gauge("records_compared", "Records of the source that have an image.").labels(mirror).set(
            result["records_compared"]
        )
    records = gauge("finding_records", "Records found of each kind.", "kind")
    for kind, count in totals(result).items():
        records.labels(mirror, kind).set(count)
    skipped = gauge("group_skipped_records", "Records a group would skip at its synced offsets.", "group")
    repeated = gauge("group_repeated_records", "Records a group would read again at its synced offsets.", "group")
    for one in result["groups"]:
        skipped.labels(mirror, one["group"]).inc(one["skipped"])
        repeated.labels(mirror, one["group"]).inc(one["repeated"])
    last = (result.get("lag") or {}).get("at_end")
    if last:
        gauge("lag_records", "Records that the mirror was behind at the end.").labels(mirror).set(last["records"])
        if last["seconds"] is not None:
            age = gauge("lag_seconds", "Age of the oldest record that was not mirrored at the end.")
            age.labels(mirror).set(last["seconds"])
    return found


def to_file(path: Path, result: Mapping[str, Any]) -> None:
    """Replace a file in the text exposition format at once; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_to_textfile(str(path), registry(result))


def push(url: str, result: Mapping[str, Any]) -> None:
    """Replace this mirror's group on a push gateway; raises OSError, of which urllib's errors are a kind."""
    push_to_gateway(url, JOB, registry(result), grouping_key={"mirror": result["mirror"]}, timeout=PUSH_DEADLINE_S)
