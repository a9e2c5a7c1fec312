"""Check of the topics that the mirror keeps for itself."""

from collections.abc import Sequence
from dataclasses import asdict

from kafka.mirror_metadata import InternalState
from spark.checks.registry import DOCTOR, NOTHING, Check, Remedy, check, named
from spark.run_context import RunContext


def internal_topics(states: Sequence[InternalState]) -> Check:
    """The topics that the mirror keeps for itself exist, have their factor, are in sync, and are compacted only.

    One that is not required and may not be described counts as absent: a broker answers both alike.
    """
    bad = [one for one in states if one.faults]
    refused = [one.refused for one in states if one.refused is not None and one.topic.required]
    there = [one for one in states if one.state is not None]
    shown = named([f"{one.topic.name} on the {one.topic.location} {', '.join(one.faults)}" for one in bad])
    return Check(
        name="internal_topics",
        ok=False if bad else True if there and not refused else None,
        expected="every internal topic is there, with its factor, in sync, cleanup.policy compact",
        observed=shown if bad else refused[0] if refused else f"{len(there)} topics hold it" if there else NOTHING,
        evidence=[
            {
                "topic": one.topic.name,
                "location": one.topic.location,
                "wanted_replicas": one.topic.replication_factor,
                "cleanup_policy": one.cleanup_policy,
                "partitions": {number: asdict(part) for number, part in one.state.partitions.items()}
                if one.state
                else None,
                "faults": one.faults,
                "refused": one.refused,
            }
            for one in states
        ],
    )


@check(
    "internal_topics",
    after="topic_config",
    needs_records=False,
    left_out=lambda mirror: None if mirror.internal_topics else "the request names none",
    remedy=Remedy(
        text="Raise the replication factor of the mirror's internal topics and set cleanup.policy=compact; the mirror "
        "loses its positions with them.",
        commands=(DOCTOR, "python -m ops topics list {target} --internal"),
        page="docs/mirrors.md#topics-that-a-mirror-keeps-for-itself",
    ),
)
def _internal_topics(context: RunContext) -> Check:
    return internal_topics(context.metadata.internal)
