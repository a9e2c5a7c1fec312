"""Results: what all benchmarks log and keep of a run and its machine, and the tables of docs/benchmarks.md.

`python -m benchmarks.tables` writes the tables from the kept results. Text between the markers of a table belongs to
this program, everything else to people.
"""

import datetime
import json
import os
import platform
import signal
import statistics
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

RESULTS = Path(__file__).resolve().parent / "results"
_MIB = 2**20


def describe() -> dict[str, Any]:
    """Processor, cores, memory, system and the load of the last 1, 5 and 15 minutes."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memoryGib": round(psutil.virtual_memory().total / _MIB / 1024),
        "system": f"{platform.system()} {platform.release()}",
        "loadAverage": [round(load, 2) for load in os.getloadavg()],
    }


def clean_up_on_sigterm() -> None:
    """From now on SIGTERM ends the program as Ctrl-C does: with everything that it started stopped and removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def log(line: str) -> None:
    """Write a line of progress to standard error."""
    sys.stderr.write(f"{line}\n")


def today() -> str:
    """The date in UTC, as in 2026-11-21."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def keep(path: Path, document: Mapping[str, Any]) -> None:
    """Write a result where the next reader expects it, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"


def filled(text: str) -> str:
    """Return the document with the tables of the results that are kept now."""
    tables = {
        "verification": _verification,
        "groups": _groups,
        "failover": _failover,
        "distance": _distance,
        "soak": _soak,
        "audit": _audit,
        "nemesis": _nemesis,
        "follow": _follow,
        "nemesis_recovery": _nemesis_recovery,
    }
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"docs/benchmarks.md: must have {begin.strip()} and {end} (got none). Put them back.")
        shown = table(_result(name)) if (RESULTS / f"{name}.json").exists() else "Not measured yet.\n"
        text = f"{before}{begin}{shown}{end}{after}"
    return text


def _result(name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return result


def _where(result: dict[str, Any]) -> str:
    machine = result["machine"]
    cores = f"{machine['cores']} cores of an {machine['processor']}, {machine['memoryGib']} GiB"
    return (
        f"{result['date']}, {cores}, Kafka {result['versions']['kafka']}, load before {machine['loadAverage'][0]}.\n\n"
    )


def _verification(result: dict[str, Any]) -> str:
    rows = [
        (
            f"{run['millions']} million of {run['bytes']} B",
            run["seconds"],
            run["sessionSeconds"],
            run["consumerSeconds"],
            run["peakMib"],
        )
        for run in result["runs"]
    ]
    few = result["incremental"]
    rows += [
        (f"{run['millions']} million of {run['bytes']} B, without Spark", run["seconds"], 0, "", run["peakMib"])
        for run in result["withoutSpark"]
    ]
    rows.append(("1 % new of 10 million, with a state", few["seconds"], few["sessionSeconds"], "", few["peakMib"]))
    head = ("records on each side", "whole run, s", "session of it, s", "consumer tool, s", "peak, MiB")
    costs = [(f"{one['of']}, {one['bytes']} B", one["fixedSeconds"], one["perMillion"]) for one in result["costs"]]
    fitted = _table(("fitted", "every run, s", "a million records, s"), costs)
    plain = f"The plain comparison of the 1 KiB records took {result['plainSeconds']} s.\n\n"
    return _where(result) + _table(head, rows) + "\n" + fitted + "\n" + plain + _judged(result)


def _judged(result: dict[str, Any]) -> str:
    ratios = [
        (
            row["name"],
            row["value"],
            f"{'>=' if 'least' in row else '<='} {row.get('least', row.get('most'))}",
            _holds(row),
        )
        for row in result["ratios"]
    ]
    return _table(("judged", "measured", "bound", ""), ratios)


def _groups(result: dict[str, Any]) -> str:
    rows = [
        (
            f"{_spaced(row['groups'])} of {_spaced(row['partitions'])}",
            row["what"],
            row["seconds"],
            row["peakMib"],
            row.get("jobPeakMib", ""),
            _spaced(row["journalBytes"]) if "journalBytes" in row else "",
        )
        for row in result["rows"]
    ]
    head = ("groups of partitions", "what", "seconds", "peak, MiB", "of the job, MiB", "journal, bytes")
    return _where(result) + _table(head, rows) + "\n" + _judged(result)


def _holds(row: dict[str, Any]) -> str:
    return "holds" if row["holds"] else "**missed**"


def _soak(result: dict[str, Any]) -> str:
    found = {kind: sum(row["truth"].get(kind, 0) for row in result["rows"][-1:]) for kind in ("aborted", "doubled")}
    restarts = ", ".join(f"{one['how']} after {one['at_s']:.0f} s" for one in result["restarts"])
    rows = [
        ("minutes", f"{result['minutes']:.0f}"),
        ("records acknowledged", _spaced(result["recordsAcknowledged"])),
        ("the worker", restarts),
        ("in the last run", ", ".join(f"{_spaced(number)} {kind}" for kind, number in found.items())),
        ("runs that agree with the truth", f"{result['runsThatAgree']} of {result['runs']}"),
    ]
    return _where(result) + _table(("soak", ""), rows)


def _audit(result: dict[str, Any]) -> str:
    row = result["row"]
    rows = [
        ("minutes, records/s", f"{row['minutes']:g}, {_spaced(row['recordsPerSecond'])}"),
        ("buckets", ", ".join(f"{_spaced(number)} {state}" for state, number in row["buckets"].items())),
        ("buckets with faults that it gives exactly", f"{row['foundExactly']} of {row['faultyBuckets']}"),
        ("held back beyond their time, of which no other fault was", row["lateInjected"]),
        ("buckets without faults that it takes for faulty", len(row["falseBuckets"])),
        ("cores while nothing is written", row["idleCores"]),
        ("cores before the kill and after it", ", ".join(map(str, row["busyCores"]))),
        ("share of all cores beyond the former, before the kill", f"{row['shareOfMachine']:.1%}"),
        ("MiB, medians of twelfths of the run", ", ".join(map(str, row["memoryMib"]))),
    ]
    return _where(result) + _table(("audit", ""), rows)


def _nemesis(result: dict[str, Any]) -> str:
    rows = [
        (
            row["seed"],
            f"{row['minutes']:g}",
            sum(row["faults"].values()),
            f"{row['agree']} of {row['verdicts']}",
            _spaced(row["acknowledged"]),
            row["lost"],
            row["skipped"],
            _spaced(row["doubled"]),
            _spaced(row["aborted"]),
            ", ".join(f"{number} {state}" for state, number in row.get("audit", {}).items()),
            (row["follower"] or {}).get("exact", ""),
            "holds" if _nemesis_holds(row) else "does not hold",
        )
        for row in result["rows"]
    ]
    kinds: Counter[str] = Counter()
    for row in result["rows"]:
        kinds.update(row["faults"])
    head = (
        *(
            "seed",
            "minutes",
            "faults",
            "verdicts that are true",
            "acknowledged",
            "lost",
            "skipped",
            "copied again",
            "aborted",
        ),
        *("the audit's buckets", "positions followed exactly", ""),
    )
    faults = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    return f"{_where(result)}{_table(head, rows)}\nFaults of all seeds: {faults}.\n"


def _follow(result: dict[str, Any]) -> str:
    rows = [
        (
            row["case"],
            row["topic"],
            _spaced(int(row["group"].rpartition("-")[2])),
            row["skipped"],
            f"{row['readAgainMedian']:g} (most {_spaced(row['readAgainMost'])})",
            f"{row['lastSecondMedian']:g}",
            f"{row['sinceRoundMedian']:g} ({row['roundAgeMedianS']} s)",
            f"{row['within']} of {row['seeds']}",
            f"{row['withinLastSecond']} of {row['seeds']}",
            f"{_spaced(round(row['mirrorMakerMedian']))} (most {_spaced(row['mirrorMakerMost'])})",
        )
        for row in result["summary"]
    ]
    head = (
        *("before", "topic", "records behind", "skipped", "read again", "read in the last second"),
        *(
            "read since the last round",
            "within either",
            "within the last second",
            "read again by MirrorMaker's offsets",
        ),
    )
    costs = [
        (
            row["what"],
            f"{_spaced(row['positions']['exact'])} of {_spaced(sum(row['positions'].values()))}",
            f"{row['roundMedianS']} (most {row['roundMostS']})",
            "" if row["ageMostS"] is None else f"{row['ageMedianS']} (most {row['ageMostS']})",
            "" if row["cores"] is None else row["cores"],
            row["peakMib"],
        )
        for row in result["costs"]
    ]
    of_many = ("follower", "exact positions", "a round, s", "age, s", "cores", "peak, MiB")
    return f"{_where(result)}{_table(head, rows)}" + (f"\n{_table(of_many, costs)}" if costs else "")


def _nemesis_holds(row: Mapping[str, Any]) -> bool:
    return not row["differences"] and row["lost"] == row["skipped"] == 0


def _nemesis_recovery(result: dict[str, Any]) -> str:
    rows = [
        (
            row["seed"],
            row["command"],
            row["roundTripMs"],
            "; ".join(row["faults"]),
            len(row["failedTries"]),
            row["seconds"],
            _spaced(row["acknowledged"]),
            row["lost"],
            row["skipped"],
            "holds" if row["holds"] else "does not hold",
        )
        for row in result["rows"]
    ]
    head = ("seed", "command", "ms", "faults, from the command's start", "given again", "s", "acknowledged")
    stopped = f"\nStopped: {result['stoppedBy']}\n" if result["stoppedBy"] else ""
    return _where(result) + _table((*head, "lost", "skipped", ""), rows) + stopped


def _distance(result: dict[str, Any]) -> str:
    rows = [
        (
            row["roundTripMs"],
            row["name"],
            row["tasks"],
            _spaced(row["oneTaskHere"]),
            _spaced(row["consumer"]),
            _spaced(row["mirror"]),
            f"{row['mirror'] / row['consumer']:.2f}",
            _spaced(row["expected"]),
            "within 20 %" if row["holds"] else "**not**",
            row["latencyP50Ms"],
            row["latencyP99Ms"],
            _spaced(row["latencyAt"]),
        )
        for row in _by_distance(result["rows"])
    ]
    head = (
        *("round trip, ms", "clients", "tasks", "a task at 0 ms", "consumer tool", "mirror", "to the tool"),
        *("`ops size`", "", "latency p50, ms", "p99, ms", "at records/s"),
    )
    what = (
        f"Records a second of {result['recordBytes']} B, {result['partitions']} partitions; the line: {result['line']}."
    )
    stream = result["stream"]
    streams = [
        (
            row["roundTripMs"],
            row["name"],
            row["tasks"],
            row["grows"],
            row["behindSeconds"],
            f"{max(0.0, row['grows']) * 24:.1f}",
            "follows" if row["holds"] else "**falls behind**",
        )
        for row in _by_distance(result["streams"])
    ]
    streams_head = (
        *("round trip, ms", "clients", "tasks", "behind, s more each second"),
        *(f"behind after {stream['seconds']:g} s, s", "after a day, h", ""),
    )
    rate = f"A stream of {stream['bytesPerSecond'] / 1e6:g} MB/s:"
    return f"{_where(result)}{what}\n\n{_table(head, rows)}\n{rate}\n\n{_table(streams_head, streams)}"


def _by_distance(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["roundTripMs"], row["name"]))


def _failover(result: dict[str, Any]) -> str:
    judged = [
        (
            one["path"],
            f"{one['within']} of {one['rounds']}",
            round(one["medianSeconds"], 1),
            one["mostSeconds"],
            f"<= {one['boundSeconds']:.0f}",
            _holds(one),
        )
        for one in result["judged"]
    ]
    head = ("failover", "within the bound", "median, s", "most, s", "bound, s", "")
    steps: dict[str, dict[str, list[float]]] = {}
    for row in result["rows"]:
        for step, seconds in row["steps"].items():
            steps.setdefault(step, {}).setdefault(row["path"], []).append(seconds)
    paths = [one["path"] for one in result["judged"]]
    shares = [(step, *(_middle_and_most(found.get(path)) for path in paths)) for step, found in steps.items()]
    return _where(result) + _table(head, judged) + "\n" + _table(("step", *(f"{path}, s" for path in paths)), shares)


def _middle_and_most(seconds: Sequence[float] | None) -> str:
    return f"{statistics.median(seconds):.1f} (most {max(seconds)})" if seconds else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def main() -> int:
    """Write the document; return the exit code."""
    DOCUMENT.write_text(filled(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stderr.write(f"written: {DOCUMENT}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
