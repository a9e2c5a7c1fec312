"""Which topics flow from which stack to which, as the stack files of one folder declare together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from settings.mirrors import Mirror
from settings.names import copied, literal
from settings.parsing import ParsedStack


@dataclass(frozen=True, kw_only=True)
class TopicFlow:
    """One direction of one mirror. `source` and `target` are stacks, None is an external cluster.

    `where` is the key of its lists in the file of the stack `file`.
    """

    file: str
    where: str
    mirror: Mirror
    source: str | None
    target: str | None
    is_reverse: bool = False

    @property
    def is_identity(self) -> bool:
        """Whether remote topics keep the names of the source's."""
        return self.mirror.naming == "identity"

    def copies(self, topic: str) -> bool:
        """Whether it copies a topic of that name."""
        return copied(topic, self.mirror.topics, self.mirror.topics_exclude)

    def remote_topic(self, topic: str) -> str:
        """Return the name of the remote topic of a source topic."""
        return topic if self.is_identity else f"{self.mirror.source.alias}{self.mirror.separator}{topic}"


def flows(stack: str, parsed: ParsedStack) -> list[TopicFlow]:
    """Both directions of every mirror of a stack file."""
    result = []
    for index, mirror in parsed.mirrors.items():
        where, other = f"mirrors[{index}]", mirror.source.stack
        result.append(TopicFlow(file=stack, where=where, mirror=mirror, source=other, target=stack))
        if mirror.reverse is not None:
            reversed_mirror = mirror.reverse_mirror()
            where += ".reverse"
            result.append(
                TopicFlow(file=stack, where=where, mirror=reversed_mirror, source=stack, target=other, is_reverse=True)
            )
    return result


def failback_flows(stack: str, parsed: ParsedStack) -> list[TopicFlow]:
    """The flows of failbacks that are under way; the forward direction of such a mirror does not run then."""
    return [
        TopicFlow(
            file=stack,
            where=f"mirrors[{index}].failback",
            mirror=mirror.failback_mirror(),
            source=stack,
            target=mirror.source.stack,
            is_reverse=True,
        )
        for index, mirror in parsed.mirrors.items()
        if mirror.has_failback_mirror
    ]


@dataclass(frozen=True)
class ReplicationTopology:
    """All stack files of a folder and what flows between their clusters."""

    stacks: Mapping[str, ParsedStack]

    @cached_property
    def _known(self) -> dict[str | None, set[str] | None]:
        return {}

    @cached_property
    def all_flows(self) -> list[TopicFlow]:
        """Every direction of every mirror of every file."""
        return [flow for stack, parsed in self.stacks.items() for flow in flows(stack, parsed)]

    def topics(self, stack: str | None) -> set[str] | None:
        """Topics that a stack's cluster will hold: declared, and brought by mirrors; None if that cannot be known.

        A stack that declares nothing and is brought nothing leaves its topics to others: that is not known either.
        """
        if stack not in self._known:
            self._known[stack] = self._topics(stack, ())
        return self._known[stack]

    def _topics(self, stack: str | None, above: tuple[str, ...]) -> set[str] | None:
        """The same, without what comes from the stacks above, from which the question came."""
        parsed = self.stacks.get(stack) if stack is not None else None
        if (
            stack is None
            or parsed is None
            or parsed.reference_cluster is None
            or parsed.reference_cluster.external is not None
        ):
            return None
        if not {"topics", "mirrors"} <= parsed.complete_lists:
            return None
        names = {topic.name for topic in parsed.topics.values()}
        for flow in self.all_flows:
            if flow.target != stack or flow.source in above:
                continue
            origin = self._topics(flow.source, (*above, stack))
            if origin is None:
                return None
            names |= {flow.remote_topic(name) for name in origin if flow.copies(name)}
        return names or None

    def replication_cycle(self, flow: TopicFlow, topic: str) -> list[TopicFlow]:
        """Mirrors that keep names and bring the topic from the flow's target back to its source; empty if none do."""
        ways: list[list[TopicFlow]] = [[]]
        seen = set[tuple[str, str]]()
        while ways:
            way = ways.pop(0)
            node = way[-1].source if way else flow.source
            for other in self.all_flows:
                if other.target != node or node is None or not other.is_identity or not other.copies(topic):
                    continue
                if other.source == flow.target:
                    return [*way, other]
                if (other.file, other.where) not in seen:
                    seen.add((other.file, other.where))
                    ways.append([*way, other])
        return []


def plain_names(found: Iterable[TopicFlow]) -> set[str]:
    """Names that the flows' lists spell out."""
    return {name for flow in found for pattern in flow.mirror.topics if (name := literal(pattern)) is not None}
