"""KafkaMirrorMaker2: no two mirrors may write the same topic of a target cluster.

With two, a topic has the records of both: those of two sources mixed, or those of one source twice. Topics have the
same name on the target if both mirrors keep names, or if both put the same alias before them.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

from pulumi_policy import Severity

from policies.support.connections import addresses
from policies.support.java_patterns import overlap
from policies.support.mirror_makers import SOURCE_TOPICS, ReplicationFlow, is_running, known_topics, topic_flows
from policies.support.policy_builder import Config, Finding, Resource, stack_policy
from policies.support.resources import MIRROR, TOPIC, each, name


def violations(resources: Sequence[Resource], config: Config) -> Iterator[Finding]:
    """A finding for each pair of mirrors that write the same topic, at the second of them."""
    candidates = known_topics(resources, config)

    def check(pair: tuple[tuple[Resource, ReplicationFlow], tuple[Resource, ReplicationFlow]]) -> Iterator[Finding]:
        (first, one), (second, other) = pair
        if not is_running(first.props, one) or not is_running(second.props, other):
            return
        into = addresses(one.target, first.props) & addresses(other.target, second.props)
        topic = _shared(one, other, candidates) if into else None
        if topic is not None:
            same_source = addresses(one.source, first.props) & addresses(other.source, second.props)
            content = "each record twice" if same_source else "records of two clusters"
            yield Finding(
                f"mirror {name(second.props)}: {other.where}.topicsPattern must share no topic with "
                f"{one.where} of mirror {name(first.props)} "
                f"(got {other.topics.include} and {one.topics.include}, which share {topic}). "
                f"Both write it to the same cluster: it would have {content}.",
                second,
            )

    return each(combinations(topic_flows(resources), 2), check)


def _shared(one: ReplicationFlow, other: ReplicationFlow, candidates: Sequence[str]) -> str | None:
    """A topic that both select and call the same."""
    if one.naming is None or one.naming != other.naming:
        return None
    excludes = (one.topics.exclude, other.topics.exclude)
    return overlap(one.topics.include, other.topics.include, candidates, excludes)


POLICY = stack_policy(
    name="mirrors-overlap",
    description="No two mirrors into one cluster select the same topic under the same name there.",
    types=MIRROR | TOPIC,
    violations=violations,
    options=SOURCE_TOPICS,
    severity=Severity.CRITICAL,
    remediation_steps="Select different topics, or give each mirror an alias of its own and names that bear it.",
)
