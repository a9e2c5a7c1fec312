"""Checks of the mirrored topics' metadata."""

from collections.abc import Mapping

from spark.checks.check import NAMED_MAX, NOTHING, Check
from spark.clusters.cluster import Topic
from spark.request.model import Mirror


def topics_present(mirror: Mirror, source: Mapping[str, Topic], target: Mapping[str, Topic]) -> Check:
    """Every topic of the source that the mirror carries is on the target."""
    missing = sorted(name for name in source if mirror.target_topic(name) not in target)
    observed = f"missing: {', '.join(missing)}" if missing else f"{len(source)} topics"
    return Check(
        name="topics_present",
        ok=not missing if source else None,
        expected="every mirrored topic is on the target",
        observed=observed if source else "no topic of the source matches the mirror's patterns",
        evidence=[{"topic": name, "target_topic": mirror.target_topic(name)} for name in missing],
    )


def partitions_match(mirror: Mirror, source: Mapping[str, Topic], target: Mapping[str, Topic]) -> Check:
    """Topics have as many partitions on the target as at the source."""
    common = {name: mirror.target_topic(name) for name in source if mirror.target_topic(name) in target}
    odd = [
        {"topic": name, "source": len(source[name].replicas), "target": len(target[there].replicas)}
        for name, there in sorted(common.items())
        if len(source[name].replicas) != len(target[there].replicas)
    ]
    shown = "; ".join(
        f"{item['topic']}: {item['source']} at the source, {item['target']} on the target" for item in odd
    )
    return Check(
        name="partitions_match",
        ok=not odd if common else None,
        expected="the same number of partitions on both sides",
        observed=(shown or f"{len(common)} topics agree") if common else NOTHING,
        evidence=odd,
    )


def replication_factor(mirror: Mirror, target: Mapping[str, Topic]) -> Check:
    """Every partition of the mirrored topics has at least the mirror's replication factor."""
    wanted = mirror.replication_factor
    low = [
        {"topic": topic.name, "partition": number, "replicas": replicas}
        for topic in target.values()
        for number, replicas in sorted(topic.replicas.items())
        if wanted is not None and replicas < wanted
    ]
    known = wanted is not None and bool(target)
    shown = "; ".join(f"{item['topic']}-{item['partition']} has {item['replicas']}" for item in low[:NAMED_MAX])
    return Check(
        name="replication_factor",
        ok=not low if known else None,
        expected=f"at least {wanted} replicas" if wanted is not None else "a factor stated in the request",
        observed=(shown or f"{len(target)} topics hold it") if known else NOTHING,
        evidence=low,
    )
