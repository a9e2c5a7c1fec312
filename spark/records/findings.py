"""What the comparison found: plain data, shared by the comparison, the checks and the report."""

from dataclasses import dataclass, field
from typing import Any

SAMPLES_MAX = 20
KINDS = ("lost", "doubled", "foreign", "altered", "aborted", "expired_at_target", "expired_at_source", "no_overlap")


@dataclass(frozen=True)
class Sample:
    """One offending record: offsets on both sides (None where it is not), digests, and which parts differ."""

    source_offset: int | None
    target_offset: int | None
    digest: str
    differs: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the sample as JSON values; the digest is shortened to 16 hexadecimal digits."""
        found: dict[str, Any] = {
            "source_offset": self.source_offset,
            "target_offset": self.target_offset,
            "digest": self.digest[:16],
        }
        return found | ({"differs": list(self.differs)} if self.differs else {})


@dataclass(frozen=True)
class Finding:
    """All records of one kind in one partition: the exact number and up to SAMPLES_MAX of them."""

    kind: str
    topic: str
    partition: int
    count: int
    samples: tuple[Sample, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        return {
            "kind": self.kind,
            "topic": self.topic,
            "partition": self.partition,
            "count": self.count,
            "samples": [sample.document() for sample in self.samples[:SAMPLES_MAX]],
        }


@dataclass
class PartitionResult:
    """Comparison of one partition. `source_records` counts the committed data records before the cut.

    `verified_from`: source offset at which this run began to compare, None for the log start. `anchors`: pairs of a
    source and a target offset up to which everything is verified and corresponds; the last one is the frontier.
    """

    topic: str
    partition: int
    source_start: int
    cut: int
    target_start: int
    target_end: int
    source_records: int = 0
    target_records: int = 0
    compared: int = 0
    findings: list[Finding] = field(default_factory=list)
    verified_from: int | None = None
    anchors: list[tuple[int, int]] = field(default_factory=list)

    def count(self, kind: str) -> int:
        """Return how many records of a kind were found."""
        return sum(finding.count for finding in self.findings if finding.kind == kind)
