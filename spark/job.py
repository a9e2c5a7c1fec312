"""The order of a verification: connect, take the cut, wait, compare, read again what has changed since, judge."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kafka import canary, checkpoints, connectivity, mirror_metadata, mirror_position
from kafka import groups as consumer_groups
from kafka.cluster import Cluster
from kafka.groups import Groups
from kafka.lag import LagMeter
from kafka.mirror_position import CutState, Deadline, PositionReader
from kafka.open_transactions import still_open
from kafka.topic_metadata import HiddenTopics, hidden_topics, named_elsewhere
from kafka.topic_partition import TopicPartition
from spark.checks.registry import judge
from spark.comparison import comparer as comparison
from spark.comparison import translation
from spark.comparison.classification import records_behind
from spark.comparison.findings import cleaned_warnings, contents, expired_warnings, sample_offsets, with_contents
from spark.comparison.offset_ranges import OffsetRange, cleaned_copies
from spark.comparison.reading import SessionError
from spark.comparison.retention import expired_meanwhile, overtaken
from spark.comparison.spark_session import SessionStart
from spark.progress import Progress
from spark.report.publish import document
from spark.run_context import RunContext, ask_again, connect, ranges_to_read
from spark.state.ledger import Ledger
from spark.state.store import Store


def verify(
    context: RunContext,
    environment: Mapping[str, str],
    progress: Progress,
    started_at: datetime | None = None,
    store: Store | None = None,
    *,
    show_values: bool = False,
) -> dict[str, Any]:
    """Return the content of report.json; raises VerificationError when nothing can be judged.

    `context` holds the request, and is filled with what the run learns, even if it has to stop. With a store,
    partitions go on from the offsets that earlier runs have verified, where these still hold.
    """
    started_at = started_at or datetime.now(UTC)
    with SessionStart(environment, progress) as session_start:
        run = _Run(context, environment, progress, session_start, store)
        run.connect()
        run.take_cut()
        groups = run.wait()
        offset_ranges = run.compare(groups)
        session_start.end()
        run.read_again(offset_ranges)
        if show_values:
            run.read_samples()
        run.remember(offset_ranges)
        run.look_at_transactions()
        return document(context, judge(context), started_at, progress.steps)


class _Run:
    """One run between two clusters. Each step fills the context; they run in the order in which they are written."""

    def __init__(
        self,
        context: RunContext,
        environment: Mapping[str, str],
        progress: Progress,
        session_start: SessionStart,
        store: Store | None,
    ) -> None:
        self.context = context
        self.request = context.request
        self.environment = environment
        self.progress = progress
        self.source, self.target = Cluster(self.request.source), Cluster(self.request.target)
        self.comparer = comparison.Comparer(self.request, environment, session_start, (self.source, self.target))
        self.ledger = Ledger(store, self.request, self.source, self.target) if store is not None else None
        self.starts: dict[TopicPartition, int] = {}
        self.cut: dict[TopicPartition, int] = {}
        self.written: dict[TopicPartition, int] = {}
        self.reader: PositionReader | None = None
        self.meter: LagMeter | None = None

    def connect(self) -> None:
        """Connect to both sides; certificates that end soon become warnings, for tomorrow's run would fail for them."""
        self.context.stage = f"connecting to {self.request.source.alias} and {self.request.target.alias}"
        self.progress(self.context.stage)
        began = time.monotonic()
        connect(self.source, self.target)
        self.progress.step("connect", began)
        for side in (self.request.source, self.request.target):
            for line in connectivity.warnings(side.client_config):
                self.context.warnings.append(f"{side.role} {side.alias}: {line}")
                self.progress(f"warning: {self.context.warnings[-1]}")

    def take_cut(self) -> None:
        """Take the cut: the source's log end offsets now, up to which this run judges."""
        context, mirror, began = self.context, self.request.mirror, time.monotonic()
        context.stage = "taking the cut"
        context.source_topics = self.source.topics(mirror.carries_topic, mirror.named_topics)
        if mirror.version is None:
            context.doubtful_topics = self.source.names(mirror.is_doubtful)
        context.absent_topics = sorted(set(mirror.named_topics) - set(context.source_topics))
        topic_partitions = [
            TopicPartition(topic.name, number) for topic in context.source_topics.values() for number in topic.replicas
        ]
        self.starts = self.source.starts(topic_partitions)
        if self.request.limits.isolation == "read_committed":
            self.written = self.source.ends(topic_partitions, "read_uncommitted")
        self.cut = self.source.ends(topic_partitions, self.request.limits.isolation)
        context.cut = CutState(self.cut)
        self.progress.step("take the cut", began)
        text = (
            f"cut: {len(topic_partitions)} partitions of {len(context.source_topics)} topics, {self._records()} offsets"
        )
        self.progress(text)
        if mirror.failed_over:
            context.warnings.append(f"failed over by themselves, so not judged: {', '.join(mirror.failed_over)}")
            self.progress(f"warning: {context.warnings[-1]}")

    def wait(self) -> Groups:
        """Wait for topics, connectors, records, groups, metadata and canary side by side; one deadline for all."""
        context, request, progress, began = self.context, self.request, self.progress, time.monotonic()
        context.stage = "waiting for the mirror"
        deadline = Deadline(request.limits.mirror_wait_seconds)
        denied: dict[str, str] = {}
        self.reader, unknown = mirror_position.open_reader(self.target, request, progress)
        self.meter = meter = LagMeter(self.source, request, self.reader, list(self.starts))
        meter.at_cut()
        with ThreadPoolExecutor(3) as pool:
            try:
                sent = None
                if request.mirror.canary is not None:
                    there = context.source_topics.get(request.mirror.canary.topic)
                    replicas = there.replicas if there else ()
                    sent = pool.submit(canary.send, self.source, self.target, request, replicas, deadline)
                states = pool.submit(mirror_position.connectors, request, deadline, progress)
                context.target_topics = mirror_position.target_topics(
                    self.target, request, context.source_topics, deadline, progress
                )
                self._begin_spark()
                known = pool.submit(
                    mirror_metadata.wait_until_synced,
                    *(request, self.environment, self.source, self.target, context.source_topics, deadline, progress),
                )
                context.cut = mirror_position.past_cut(
                    self.source, request, self.reader, self.starts, self.cut, deadline, progress, meter.sample
                )
                context.cut.unknown = unknown
                occupied = [tp for tp, start in self.starts.items() if self.cut[tp] > start]
                groups = consumer_groups.read(self.source, self.target, request, occupied, deadline, progress, denied)
                context.absent_groups = consumer_groups.absent(self.source, request, denied)
                context.connectors, context.metadata = states.result(), known.result()
                if context.cut.behind:
                    self._read_mirror_again()
                if sent is not None:
                    progress("waiting for the canary to arrive on the target")
                    context.canary = sent.result()
                on_target = self.target.names(lambda name: True)
                context.loops = list(filter(request.mirror.is_loop, on_target))
                context.hidden_topics = self._hidden(groups, on_target)
            except BaseException:
                deadline.give_up()
                raise
        context.groups, context.denied_groups, context.waited = groups, denied, True
        progress.step("wait for the mirror", began)
        return groups

    def compare(self, groups: Groups) -> list[OffsetRange]:
        """Compare the records, and judge the groups' positions by them; return what was there to read."""
        context, request = self.context, self.request
        context.stage = "comparing records"
        offset_ranges = ranges_to_read(
            *(request, self.source, self.target, context.source_topics, context.target_topics, self.starts, context.cut)
        )
        counted = ((TopicPartition(one.target_topic, one.partition), one.target_counts_from) for one in offset_ranges)
        context.warnings += [*mirror_position.older_records(counted), *cleaned_copies(offset_ranges)]
        try:
            mirror_makers = checkpoints.offsets_to_verify(groups.translation, groups.keys(request.mirror), self.cut)
            ours = [one for one in offset_ranges if one.topic_partition in self.starts]
            wanted = groups.by_column.with_these(translation.positions(request, ours))
            compared = self.comparer.compare(offset_ranges, wanted, mirror_makers, self.progress, self.ledger)
        except SessionError:
            ask_again(self.source, context.source_topics)
            ask_again(self.target, context.target_topics)
            raise
        context.partitions = compared.partitions
        context.warnings += cleaned_warnings(compared.partitions)
        judged, context.translated = translation.parted(request, ours, compared.groups)
        groups.positions, context.truth = comparison.parted(judged)
        return offset_ranges

    def read_again(self, offset_ranges: list[OffsetRange]) -> None:
        """Measure the lag again, and count apart from the lost records those that expired or are not copied yet."""
        context = self.context
        context.stage = "judging"
        if self.meter is not None:
            self.meter.at_end()
            context.lag = self.meter.lag
        if self.reader is not None:
            self.reader.close()
        context.source_starts_after = self.source.starts(self.starts)
        held = {
            TopicPartition(one.target_topic, one.partition): one.topic_partition
            for one in offset_ranges
            if self._exists(one)
        }
        context.target_starts_after = {held[tp]: start for tp, start in self.target.starts(held).items()}
        kept = expired_meanwhile(context.partitions, context.source_starts_after, context.target_starts_after)
        copied = self.meter.lag.copied_at_cut if self.meter is not None else {}
        kept = overtaken(context.partitions, kept, copied, context.source_starts_after)
        compacted = {one.topic_partition for one in offset_ranges if one.compacted}
        context.partitions = records_behind(kept, context.cut.positions, compacted)
        context.warnings += expired_warnings(context.partitions)

    def read_samples(self) -> None:
        """Read what is in the records that samples name."""
        context, mirror = self.context, self.request.mirror
        context.stage = "reading the samples"
        ours, theirs = sample_offsets(context.partitions, mirror)
        known = contents(self.source, ours), contents(self.target, theirs)
        context.partitions = with_contents(context.partitions, mirror, *known)

    def remember(self, offset_ranges: list[OffsetRange]) -> None:
        """Keep what is verified by now for the runs to come."""
        if self.ledger is not None:
            self.ledger.keep(offset_ranges, self.context.partitions, self.progress)
            self.context.resumed, self.context.state = self.ledger.resumed, self.ledger.document()

    def look_at_transactions(self) -> None:
        """Leave partitions open in which a transaction hangs, and warn of those in which one only goes on.

        What lies in front of it is judged like all else: it may be remembered.
        """
        context = self.context
        found = still_open(self.source, self.cut, self.written)
        hanging = {one.topic_partition: str(one) for one in found if one.why_hanging}
        context.partitions = [
            replace(one, undecided=one.undecided or hanging.get(TopicPartition(one.topic, one.partition)))
            for one in context.partitions
        ]
        context.warnings += [f"{one.topic_partition}: {one}" for one in found if not one.why_hanging]

    def _hidden(self, groups: Groups, on_target: Sequence[str]) -> HiddenTopics:
        """Topics that the mirror's state or the target names, and that the source does not show to its user."""
        positions, seen = self.context.cut.positions, self.context.source_topics
        named = named_elsewhere(self.request.mirror, seen, positions, groups.translation, on_target)
        return hidden_topics(self.source, named)

    def _read_mirror_again(self) -> None:
        """Read what the mirror does at the end of a wait in vain: what ran when it began may have failed since."""
        context = self.context
        context.connectors = mirror_position.connectors_now(self.request, context.connectors)
        context.metadata.resource = mirror_metadata.resource_now(
            self.request, self.environment, context.metadata.resource
        )

    def _begin_spark(self) -> None:
        """Let Spark start while the mirror is waited for. With a state there may be nothing to read."""
        if self.ledger is None:
            self.comparer.begin(2 * self._records())

    def _records(self) -> int:
        return sum(self.cut[tp] - start for tp, start in self.starts.items())

    def _exists(self, offset_range: OffsetRange) -> bool:
        topic = self.context.target_topics.get(offset_range.target_topic)
        return topic is not None and offset_range.partition in topic.replicas
