"""KafkaMirrorMaker2 with identity naming: no topic may come back to the cluster from which it was copied.

With prefixes, a topic's name contains the clusters from which it was copied. Under its own name a record that comes
back, by the opposite direction or by a ring of mirrors, is copied again, without end. In a ring, what counts is a name
that every mirror of it takes. The stack's topics are tried, and names that the patterns spell out or begin with; a ring
whose patterns share none of these is not reported. The two directions between two clusters are reported even then,
unless `disjointDirections` lets them be: one more topic in either pattern would close the loop.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from pulumi_policy import Severity

from policies.support.connections import addresses
from policies.support.java_patterns import Selection, samples
from policies.support.mirror_makers import ReplicationFlow, declared_topics, is_running, replication_flows
from policies.support.policy_builder import Config, Finding, Resource, stack_policy
from policies.support.resources import MIRROR, TOPIC, Props, each, flag, if_known, name, namespace, text


@dataclass(frozen=True)
class _Edge:
    """A mirror with identity naming: what it takes from which cluster to which; a cluster is its addresses."""

    resource: Resource
    where: str
    source: frozenset[str]
    target: frozenset[str]
    topics: Selection

    @property
    def key(self) -> tuple[str, str, str]:
        """Namespace, name and place."""
        return namespace(self.resource.props), name(self.resource.props), self.where


def violations(resources: Sequence[Resource], config: Config) -> Iterator[Finding]:
    """A finding for each ring of mirrors by which a topic comes back, of which the shortest are reported."""
    mirrors = [resource for resource in resources if resource.type_ in MIRROR]
    edges = _joined(sorted(each(mirrors, _edges), key=lambda edge: edge.key))
    reported: set[frozenset[tuple[str, str, str]]] = set()
    for topic in dict.fromkeys([*sorted(declared_topics(resources)), *samples(edge.topics.include for edge in edges)]):
        taking = [edge for edge in edges if edge.topics.selects(topic)]
        for edge in taking:
            ring = _ring(edge, taking)
            if ring and (keys := frozenset(of.key for of in ring)) not in reported:
                reported.add(keys)
                yield Finding(_message(ring, topic), edge.resource)
    if not flag(config["disjointDirections"], default=False):
        for edge, back in combinations([edge for edge in edges if edge.topics.include], 2):
            if (edge.source, edge.target) == (back.target, back.source) and frozenset(
                {edge.key, back.key}
            ) not in reported:
                yield Finding(_message_of_directions(edge, back), edge.resource)


def _message(ring: Sequence[_Edge], topic: str) -> str:
    first, *others = ring
    back = "by " + " and ".join(" ".join(edge.key[1:]) for edge in others) if others else "for its target is its source"
    return (
        f"mirror {name(first.resource.props)}: {first.where} must not let topics come back under the same name "
        f"(got topics such as {topic}, which come back {back}). "
        "A record would be copied again, without end: prefix the names, or mirror other topics."
    )


def _message_of_directions(edge: _Edge, back: _Edge) -> str:
    return (
        f"mirror {name(edge.resource.props)}: {edge.where} must not keep names beside its opposite direction "
        f"(got {' '.join(back.key[1:])} back, under kept names too). "
        "Their patterns share no topic yet; one more in either would be copied without end: prefix the names."
    )


def _edges(resource: Resource) -> Iterator[_Edge]:
    def edge(flow: ReplicationFlow) -> Iterator[_Edge]:
        source, target = (_addresses(end, resource.props) for end in (flow.source, flow.target))
        if source and target and flow.identity and is_running(resource.props, flow):
            yield _Edge(resource, flow.where, source, target, flow.topics)

    return each(replication_flows(resource.type_, resource.props), edge)


def _addresses(end: Props, props: Props) -> frozenset[str]:
    """Where a cluster listens; its alias where that is not known."""
    if if_known(end, "bootstrapServers"):
        return addresses(end, props)
    alias = text(if_known(end, "alias"))
    return frozenset({f"alias {alias}"} if alias else ())


def _joined(edges: Iterable[_Edge]) -> list[_Edge]:
    """The edges, with all addresses of a cluster wherever one of them is named."""
    edges = list(edges)
    clusters: list[frozenset[str]] = []
    for named in (end for edge in edges for end in (edge.source, edge.target)):
        same = [cluster for cluster in clusters if cluster & named]
        clusters = [cluster for cluster in clusters if cluster not in same] + [named.union(*same)]

    def cluster_of(end: frozenset[str]) -> frozenset[str]:
        return next(cluster for cluster in clusters if cluster & end)

    return [
        _Edge(edge.resource, edge.where, cluster_of(edge.source), cluster_of(edge.target), edge.topics)
        for edge in edges
    ]


def _ring(start: _Edge, edges: Sequence[_Edge]) -> list[_Edge]:
    """The shortest way from the source of `start` over `start` back to it; empty if there is none."""
    ways, seen = [[start]], {start.target}
    for way in ways:
        at = way[-1].target
        if at == start.source:
            return way
        for edge in edges:
            if edge.source == at and edge.target not in seen:
                seen.add(edge.target)
                ways.append([*way, edge])
    return []


POLICY = stack_policy(
    name="identity-loops",
    description="No topic comes back to its cluster under its own name, by one mirror or by a ring of them.",
    types=MIRROR | TOPIC,
    violations=violations,
    options={
        "disjointDirections": {
            "type": "boolean",
            "default": False,
            "description": "whether both directions may keep names as long as their patterns share no topic",
        }
    },
    severity=Severity.CRITICAL,
    remediation_steps="Use prefixed naming in the named mirrors, or have them mirror different topics.",
)
