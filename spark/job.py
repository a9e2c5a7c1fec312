"""Order of the verification: clusters, cut, wait, comparison, second look, checks."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from kafka import canary, connectivity, mirror_metadata, mirror_position, waiting
from kafka import groups as consumer_groups
from kafka.cluster import Cluster
from kafka.contents import contents
from kafka.groups import Groups
from kafka.lag import LagMeter
from kafka.mirror_position import PositionReader
from kafka.topic_metadata import HiddenTopics, hidden_topics, named_elsewhere
from kafka.topic_partition import TopicPartition
from kafka.waiting import CutState, Deadline
from spark import cluster_pair as pair
from spark.checks.registry import judge
from spark.cluster_pair import Facts
from spark.comparison import comparer as comparison
from spark.comparison import samples as showing
from spark.comparison import translation
from spark.comparison.classification import records_behind
from spark.comparison.expiry import expired_meanwhile
from spark.comparison.findings import cleaned_warnings
from spark.comparison.offset_ranges import Extent
from spark.comparison.spark_session import Starting
from spark.errors import SessionError
from spark.progress import Progress
from spark.report.document import document
from spark.state.ledger import Ledger
from spark.state.store import Store


def verify(
    facts: Facts,
    environment: Mapping[str, str],
    progress: Progress,
    started_at: datetime | None = None,
    store: Store | None = None,
    *,
    show_values: bool = False,
) -> dict[str, Any]:
    """Return the content of report.json; raises VerificationError when nothing can be judged.

    `facts` holds the request, and is filled with what the run learns, even if it has to stop. With a store, partitions
    go on from the offsets that earlier runs have verified, where these still hold.
    """
    started_at = started_at or datetime.now(UTC)
    with Starting(environment, progress) as starting:
        run = _Run(facts, environment, progress, starting, store)
        run.connect()
        run.take_cut()
        groups = run.wait()
        extents = run.compare(groups)
        starting.end()
        run.look_again(extents)
        if show_values:
            run.read_samples()
        run.remember(extents)
        return document(facts, judge(facts), started_at, progress.steps)


class _Run:
    """One run between two clusters. Each step fills `facts`; they come in the order in which they stand here."""

    def __init__(
        self,
        facts: Facts,
        environment: Mapping[str, str],
        progress: Progress,
        starting: Starting,
        store: Store | None,
    ) -> None:
        self.facts = facts
        self.request = facts.request
        self.environment = environment
        self.progress = progress
        self.source, self.target = Cluster(self.request.source), Cluster(self.request.target)
        self.comparer = comparison.Comparer(self.request, environment, starting, (self.source, self.target))
        self.ledger = Ledger(store, self.request, self.source, self.target) if store is not None else None
        self.starts: dict[TopicPartition, int] = {}
        self.cut: dict[TopicPartition, int] = {}
        self.reader: PositionReader | None = None
        self.meter: LagMeter | None = None

    def connect(self) -> None:
        """Connect to both sides; certificates that end soon become warnings, for tomorrow's run would fail for them."""
        self.facts.stage = f"connecting to {self.request.source.alias} and {self.request.target.alias}"
        self.progress(self.facts.stage)
        began = time.monotonic()
        pair.connect(self.source, self.target)
        self.progress.step("connect", began)
        for side in (self.request.source, self.request.target):
            for line in connectivity.warnings(side.client_config):
                self.facts.warnings.append(f"{side.role} {side.alias}: {line}")
                self.progress(f"warning: {self.facts.warnings[-1]}")

    def take_cut(self) -> None:
        """Note up to where this run judges: the source's ends, now."""
        facts, mirror, began = self.facts, self.request.mirror, time.monotonic()
        facts.stage = "taking the cut"
        facts.source_topics = self.source.topics(mirror.carries_topic, mirror.named_topics)
        if mirror.version is None:
            facts.doubtful_topics = self.source.names(mirror.is_doubtful)
        facts.absent_topics = sorted(set(mirror.named_topics) - set(facts.source_topics))
        places = [
            TopicPartition(topic.name, number) for topic in facts.source_topics.values() for number in topic.replicas
        ]
        self.starts = self.source.starts(places)
        self.cut = self.source.ends(places, self.request.limits.isolation)
        facts.cut = CutState(self.cut)
        self.progress.step("take the cut", began)
        text = f"cut: {len(places)} partitions of {len(facts.source_topics)} topics, {self._records()} offsets"
        self.progress(text)

    def wait(self) -> Groups:
        """Wait for topics, connectors, records, groups, metadata and canary side by side; one deadline for all."""
        facts, request, progress, began = self.facts, self.request, self.progress, time.monotonic()
        facts.stage = "waiting for the mirror"
        deadline = Deadline(request.limits.mirror_wait_seconds)
        denied: dict[str, str] = {}
        self.reader, unknown = mirror_position.open_reader(self.target, request, progress)
        self.meter = meter = LagMeter(self.source, request, self.reader, list(self.starts))
        meter.at_cut()
        with ThreadPoolExecutor(3) as pool:
            try:
                sent = None
                if request.mirror.canary is not None:
                    there = facts.source_topics.get(request.mirror.canary.topic)
                    replicas = there.replicas if there else ()
                    sent = pool.submit(canary.send, self.source, self.target, request, replicas, deadline)
                states = pool.submit(waiting.connectors, request, deadline, progress)
                facts.target_topics = waiting.target_topics(
                    self.target, request, facts.source_topics, deadline, progress
                )
                self._begin_spark()
                known = pool.submit(
                    mirror_metadata.settled,
                    *(request, self.environment, self.source, self.target, facts.source_topics, deadline, progress),
                )
                facts.cut = waiting.past_cut(
                    self.source, request, self.reader, self.starts, self.cut, deadline, progress, meter.sample
                )
                facts.cut.unknown = unknown
                occupied = [place for place, start in self.starts.items() if self.cut[place] > start]
                groups = consumer_groups.read(self.source, self.target, request, occupied, deadline, progress, denied)
                facts.absent_groups = consumer_groups.absent(self.source, request, denied)
                facts.connectors, facts.metadata = states.result(), known.result()
                if facts.cut.behind:
                    self._look_at_mirror_again()
                if sent is not None:
                    progress("waiting for the canary to arrive on the target")
                    facts.canary = sent.result()
                on_target = self.target.names(lambda name: True)
                facts.loops = list(filter(request.mirror.is_loop, on_target))
                facts.hidden_topics = self._hidden(groups, on_target)
            except BaseException:
                deadline.give_up()
                raise
        facts.groups, facts.denied_groups, facts.waited = groups, denied, True
        progress.step("wait for the mirror", began)
        return groups

    def compare(self, groups: Groups) -> list[Extent]:
        """Compare the records, and judge the groups' positions by them; return what was there to read."""
        facts, request = self.facts, self.request
        facts.stage = "comparing records"
        extents = pair.extents(
            *(request, self.source, self.target, facts.source_topics, facts.target_topics, self.starts, facts.cut)
        )
        counted = ((TopicPartition(one.target_topic, one.partition), one.target_counts_from) for one in extents)
        facts.warnings += mirror_position.warnings_of(counted)
        try:
            claimed = comparison.positions_to_translate(request, groups, self.cut)
            ours = [one for one in extents if one.place in self.starts]
            wanted = [*groups.positions, *translation.positions(request, ours)]
            compared = self.comparer.compare(extents, wanted, claimed, self.progress, self.ledger)
        except SessionError:
            pair.ask_again(self.source, facts.source_topics)
            pair.ask_again(self.target, facts.target_topics)
            raise
        facts.partitions = compared.partitions
        facts.warnings += cleaned_warnings(compared.partitions)
        judged, facts.translated = translation.parted(request, ours, compared.groups)
        groups.positions, facts.truth = comparison.parted(judged)
        return extents

    def look_again(self, extents: list[Extent]) -> None:
        """Measure the lag once more, and part from the lost records what retention removed and what is on its way."""
        facts = self.facts
        facts.stage = "judging"
        if self.meter is not None:
            self.meter.at_end()
            facts.lag = self.meter.lag
        if self.reader is not None:
            self.reader.close()
        facts.source_starts_after = self.source.starts(self.starts)
        held = {TopicPartition(one.target_topic, one.partition): one.place for one in extents if self._exists(one)}
        facts.target_starts_after = {held[place]: start for place, start in self.target.starts(held).items()}
        kept = expired_meanwhile(facts.partitions, facts.source_starts_after, facts.target_starts_after)
        compacted = {one.place for one in extents if one.compacted}
        facts.partitions = records_behind(kept, facts.cut.positions, compacted)

    def read_samples(self) -> None:
        """Read what is in the records that samples name."""
        facts, mirror = self.facts, self.request.mirror
        facts.stage = "reading the samples"
        ours, theirs = showing.wanted(facts.partitions, mirror)
        known = contents(self.source, ours), contents(self.target, theirs)
        facts.partitions = showing.shown(facts.partitions, mirror, *known)

    def remember(self, extents: list[Extent]) -> None:
        """Keep what is verified by now for the runs to come."""
        if self.ledger is not None:
            self.ledger.keep(extents, self.facts.partitions, self.progress)
            self.facts.resumed, self.facts.state = self.ledger.resumed, self.ledger.document()

    def _hidden(self, groups: Groups, on_target: Sequence[str]) -> HiddenTopics:
        """Topics that the mirror's state or the target names, and that the source does not show to its user."""
        positions, seen = self.facts.cut.positions, self.facts.source_topics
        named = named_elsewhere(self.request.mirror, seen, positions, groups.translation, on_target)
        return hidden_topics(self.source, named)

    def _look_at_mirror_again(self) -> None:
        """Read what the mirror does at the end of a wait in vain: what ran when it began may have failed since."""
        facts = self.facts
        facts.connectors = waiting.connectors_now(self.request, facts.connectors)
        facts.metadata.resource = mirror_metadata.resource_now(self.request, self.environment, facts.metadata.resource)

    def _begin_spark(self) -> None:
        """Let Spark start while the mirror is waited for. With a state there may be nothing to read."""
        if self.ledger is None:
            self.comparer.begin(2 * self._records())

    def _records(self) -> int:
        return sum(self.cut[place] - start for place, start in self.starts.items())

    def _exists(self, extent: Extent) -> bool:
        topic = self.facts.target_topics.get(extent.target_topic)
        return topic is not None and extent.partition in topic.replicas
