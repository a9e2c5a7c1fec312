"""Made-up contents of report.json: clean, with faults, very large, and of a run that could not judge."""

import random
from typing import Any

Document = dict[str, Any]


def check(name: str, ok: bool | None = True, observed: str = "as expected", **fields: Any) -> Document:
    return {"name": name, "ok": ok, "expected": "what should be", "observed": observed, "evidence": [], **fields}


def partition(topic: str, number: int, *findings: Document, **fields: Any) -> Document:
    count = 1000 + number
    return {
        "topic": topic,
        "partition": number,
        "source_start": 0,
        "cut": count,
        "target_start": 0,
        "target_end": count,
        "source_records": count,
        "target_records": count,
        "compared": count,
        "findings": list(findings),
        "verified_from": None,
        "undecided": None,
        "position": count,
        **fields,
    }


def finding(kind: str, topic: str, number: int, count: int, samples: int = 3, **fields: Any) -> Document:
    rows = [
        {"source_offset": 100 + n, "target_offset": None if kind == "lost" else 90 + n, "digest": f"{n:016x}"}
        | ({"differs": ["value"]} if kind == "altered" else {})
        for n in range(samples)
    ]
    runs = [{"first": 100, "last": 99 + count, "records": count, "where": "gap" if kind == "lost" else None}]
    base = {"kind": kind, "topic": topic, "partition": number, "count": count, "samples": rows, "runs": runs}
    return base | fields


def lag_of(topic: str, number: int) -> Document:
    return {"topic": topic, "partition": number, "position": 995, "source_end": 1000, "records": 4, "seconds": 0.8}


def group(name: str, number: int = 0, **fields: Any) -> Document:
    return {
        "group": name,
        "topic": "orders",
        "partition": number,
        "committed": 900,
        "synced": 890,
        "lowest": 900,
        "highest": 900,
        "unread": 100,
        "skipped": 0,
        "repeated": 10,
        "active": False,
        "unclaimed": False,
        "judged": True,
        **fields,
    }


def side(alias: str, user: str, stack: str) -> Document:
    name = f"rt-inventory-{stack}"
    return {"alias": alias, "user": user, "cluster": name, "stack": stack, "namespace": name}


def clean() -> Document:
    """A pair without any fault."""
    partitions = [partition(topic, number) for topic in ("items", "orders") for number in range(6)]
    names = ("topics_present", "topic_config", "records_complete", "records_unique", "records_intact")
    return {
        "version": 1,
        "verdict": "pass",
        "exit_code": 0,
        "error": None,
        "warnings": [],
        "stack": "stg",
        "mirror": "mm2",
        "source": side("es-src", "rt-inv-dev-user", "dev"),
        "target": side("es-tgt", "rt-inv-stg-user", "stg"),
        "resource": {
            "kind": "KafkaMirrorMaker2",
            "namespace": "rt-inventory-stg",
            "name": "mm2",
            "context": "stg-cluster",
        },
        "started_at": "2026-01-02T03:04:05+00:00",
        "finished_at": "2026-01-02T03:04:47+00:00",
        "seconds": 42.1,
        "cut": {
            "waited_seconds": 3.2,
            "position_known": True,
            "behind": [],
            "offsets": {f"{part['topic']}-{part['partition']}": part["cut"] for part in partitions},
        },
        "records_compared": sum(part["compared"] for part in partitions),
        "allowed_unknown": [],
        "scope": {"topics": ["items", "orders"], "topics_exclude": ["__.*"], "groups": [".*"], "naming": "identity"},
        "limits": {"mirror_wait_seconds": 120, "duplicates_max": 0, "allow_unknown": []},
        "checks": [*map(check, names), check("groups_no_loss")],
        "not_judged": [{"name": "acls", "reason": "their sync is off"}],
        "partitions": partitions,
        "groups": [group("billing"), group("shipping", 1, synced=950, active=True)],
        "lag": {
            "at_cut": None,
            "at_end": {"at_seconds": 41.0, "records": 4, "seconds": 0.8, "partitions": [lag_of("orders", 0)]},
            "series": [[float(second), max(0, 4000 - 400 * second)] for second in range(12)],
        },
        "canary": {
            "records": 60,
            "p50_ms": 41.0,
            "p95_ms": 120.0,
            "p99_ms": 180.5,
            "latencies_ms": [20.0 + 2 * number for number in range(60)] + [180.5],
        },
        "steps": [{"step": "take the cut", "seconds": 0.4}, {"step": "compare", "seconds": 38.5}],
    }


def faulty() -> Document:
    """The same pair with every kind of finding, a group that would skip records, and configuration that differs."""
    document = clean()
    moved = {"source_offset": 5, "target_offset": 7, "digest": "ab" * 8, "source_partition": 5, "target_partition": 4}
    placed = [
        (0, finding("lost", "orders", 0, 1250, runs=[
            {"first": 100, "last": 1299, "records": 1200, "where": "gap"},
            {"first": 1400, "last": 1449, "records": 50, "where": "tail"},
        ])),
        (1, finding("altered", "orders", 1, 3)),
        (2, finding("out_of_order", "orders", 2, 2)),
        (3, finding("foreign", "orders", 3, 4)),
        (4, finding("wrong_partition", "orders", 4, 1, samples=0) | {"samples": [moved]}),
        (5, finding("doubled", "orders", 5, 2)),
    ]  # fmt: skip
    for number, found in placed:
        document["partitions"][6 + number]["findings"].append(found)
    document["partitions"][0]["findings"].append(finding("expired_at_source", "items", 0, 12))
    document["partitions"][1] |= {"compared": 0, "undecided": "the log was truncated while it was read"}
    document["partitions"][2] |= {"compared": 0, "source_records": 0, "source_start": 1002}
    document["partitions"][6] |= {"target_records": 0, "compared": 0, "source_records": 1250}
    document["records_compared"] = sum(part["compared"] for part in document["partitions"])
    config = [{"topic": "orders", "target_topic": "orders", "property": "retention.ms", "source": "1", "target": None}]
    document |= {"verdict": "fail", "exit_code": 1, "warnings": ["group audit may not be described"]}
    document["checks"] = [
        check("topics_present"),
        check(
            "topic_config", False, "orders: retention.ms is 604800000 on the target, 1 at the source", evidence=config
        ),
        check("connectors_running", None, "Connect at http://connect.example.com:8083 does not answer"),
        check("records_complete", False, "1250 lost in orders-0"),
        check("records_unique", True, "2 doubled"),
        check("records_intact", False, "3 altered in orders-1; 1 wrong partition in orders-4"),
        check("records_ordered", False, "2 out of order in orders-2"),
        check("records_foreign", False, "4 foreign in orders-3"),
        check("groups_no_loss", False, "billing on orders-0: 50 skipped"),
    ]
    document["groups"][0] |= {"synced": 950, "skipped": 50, "repeated": 0}
    document["groups"].append(group("reporting", 2, synced=None, lowest=None, highest=None))
    return document


def stopped() -> Document:
    """A run that could not reach a cluster: only what was known then."""
    error = (
        "target es-tgt: must be reachable (got no answer from tgt.example.com:9093 within 20 s, user rt-inv-stg-user)."
    )
    names = ("stack", "mirror", "source", "target", "resource", "started_at", "finished_at", "seconds")
    kept = {name: value for name, value in clean().items() if name in names}
    empty: Document = {"checks": [], "partitions": [], "groups": [], "steps": []}
    return {"verdict": "error", "exit_code": 2, "error": error} | kept | empty


def large(topics: int = 50, width: int = 64, findings: int = 500) -> Document:
    """50 topics of 64 partitions with 500 findings, each with all its samples and runs."""
    chance = random.Random(6)  # noqa: S311 - made-up data
    document = faulty()
    parts = [
        partition(f"inventory.line-{topic:02}.events", number) for topic in range(topics) for number in range(width)
    ]
    for part in chance.sample(parts, findings):
        kind = chance.choice(["lost", "lost", "altered", "foreign", "out_of_order", "expired_at_source", "aborted"])
        runs = [{"first": 30 * n, "last": 30 * n + 9, "records": 10, "where": "gap"} for n in range(20)]
        part["findings"].append(finding(kind, part["topic"], part["partition"], chance.randint(1, 9000), 20, runs=runs))
    groups = [group(f"consumer-{n:02}", m, skipped=n % 7 == 0, synced=901) for n in range(40) for m in range(64)]
    document |= {"partitions": parts, "groups": groups, "records_compared": sum(part["compared"] for part in parts)}
    document["cut"]["offsets"] = {f"{part['topic']}-{part['partition']}": part["cut"] for part in parts}
    return document
