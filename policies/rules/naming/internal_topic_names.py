"""KafkaTopic: no application's topic takes a name that Kafka, MirrorMaker or Connect keeps for itself.

Where clusters let nobody create topics, those of MirrorMaker and Connect are declared beforehand: compacted, as they
make them themselves. Compaction therefore distinguishes such a topic from an application's.
"""

from collections.abc import Iterator, Sequence

from pulumi_policy import Severity

from policies.support.clusters import setting, topic_name
from policies.support.mirror_makers import connect_storage, copies_internal_names, is_kafkas, is_mirror_makers
from policies.support.policy_builder import Config, Finding, Resource, stack_policy
from policies.support.resources import CONNECT, MIRROR, TOPIC, each, mapping, name, text, within


def violations(resources: Sequence[Resource], _config: Config) -> Iterator[Finding]:
    """At most one finding for each topic."""
    mirrors = [one for one in resources if one.type_ in MIRROR]
    # A topic may meet a mirror up to Kafka 3.9, which copies no such name, unless every mirror is known to be newer.
    newer = bool(mirrors) and all(copies_internal_names(one.props) for one in mirrors)
    owners = dict(each((one for one in resources if one.type_ not in TOPIC), _storage))

    def check(resource: Resource) -> Iterator[Finding]:
        topic = topic_name(resource.props)
        if is_kafkas(topic):
            why = "Kafka keeps such names for itself, and no mirror copies them."
            yield Finding(f"topic {topic}: name must not start with __ (got {topic}). {why}", resource)
            return
        if topic in owners:
            why = f"{owners[topic]} keeps its state in it: rename the topic unless it is meant for that."
        elif is_mirror_makers(topic, copies_internal_names=newer):
            why = "MirrorMaker takes a topic of this name for its own: rename it unless it is one."
        else:
            return
        policy, got = setting(mapping(within(resource.props, "spec", "config")), "cleanup.policy", "delete")
        if text(policy) != "compact":
            yield Finding(f"topic {topic}: cleanup.policy must be compact (got {got}). {why}", resource)

    return each((one for one in resources if one.type_ in TOPIC), check)


def _storage(resource: Resource) -> Iterator[tuple[str, str]]:
    """Connect's topics of the resource, each with who keeps its state there."""
    noun = "Mirror" if resource.type_ in MIRROR else "Connect cluster"
    for topic in connect_storage(resource.type_, resource.props):
        yield topic, f"{noun} {name(resource.props)}"


POLICY = stack_policy(
    name="internal-topic-names",
    description="No topic takes a name that Kafka, MirrorMaker or Connect keeps for itself, unless declared as theirs.",
    types=TOPIC | MIRROR | CONNECT,
    violations=violations,
    severity=Severity.HIGH,
    remediation_steps="Rename the topic; if it is Connect's or MirrorMaker's own, set `cleanup.policy` to `compact`.",
)
