"""Puts the content of records into the samples of findings, for people who asked to see it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from contract.verification_request import Mirror
from kafka.contents import Content, Place
from kafka.topic_partition import TopicPartition
from spark.comparison.findings import Finding, PartitionResult, Sample

SAMPLES_MAX = 200  # of all findings together


def wanted(
    results: Iterable[PartitionResult], mirror: Mirror
) -> tuple[dict[TopicPartition, list[int]], dict[TopicPartition, list[int]]]:
    """Return the offsets of all samples at the source and on the target, by each side's own topics."""
    source: dict[TopicPartition, list[int]] = defaultdict(list)
    target: dict[TopicPartition, list[int]] = defaultdict(list)
    samples = [(finding, sample) for result in results for finding in result.findings for sample in finding.samples]
    for finding, sample in samples[:SAMPLES_MAX]:
        here, there = _places(finding, sample)
        if sample.source_offset is not None:
            source[TopicPartition(finding.topic, here)].append(sample.source_offset)
        if sample.target_offset is not None:
            target[TopicPartition(mirror.target_topic(finding.topic), there)].append(sample.target_offset)
    return source, target


def shown(
    results: Sequence[PartitionResult], mirror: Mirror, source: Mapping[Place, Content], target: Mapping[Place, Content]
) -> list[PartitionResult]:
    """Return the results with the contents of their samples."""

    def filled(finding: Finding, sample: Sample) -> Sample:
        here, there = _places(finding, sample)
        ours, theirs = sample.source_offset, sample.target_offset
        return replace(
            sample,
            source=None if ours is None else source.get((finding.topic, here, ours)),
            target=None if theirs is None else target.get((mirror.target_topic(finding.topic), there, theirs)),
        )

    return [
        replace(
            result,
            findings=[
                replace(finding, samples=tuple(filled(finding, sample) for sample in finding.samples))
                for finding in result.findings
            ],
        )
        for result in results
    ]


def _places(finding: Finding, sample: Sample) -> tuple[int, int]:
    here = finding.partition if sample.source_partition is None else sample.source_partition
    there = finding.partition if sample.target_partition is None else sample.target_partition
    return here, there
