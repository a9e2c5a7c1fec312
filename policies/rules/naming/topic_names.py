"""KafkaTopic: names in Kafka are lower case with dots, so that patterns of mirrors and rights can be written once.

Names that Kafka and MirrorMaker make are not judged here: they follow from aliases, and `internal-topic-names` decides
who may use them.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import topic_name
from policies.support.mirror_makers import is_kafkas, is_mirror_makers
from policies.support.policy_builder import Config, misnamed, pattern_option, resource_policy, stage_option
from policies.support.resources import TOPIC, Props


def violations(_type: str, props: Props, config: Config) -> Iterator[str]:
    """At most one message."""
    topic = topic_name(props)
    if not is_kafkas(topic) and not is_mirror_makers(topic):
        yield from misnamed(f"topic {topic}", "name", topic, config)


POLICY = resource_policy(
    name="topic-names",
    description="The name in Kafka of every KafkaTopic matches `pattern`.",
    types=TOPIC,
    violations=violations,
    options={"pattern": pattern_option("[a-z0-9]+([.-][a-z0-9]+)*", "names of topics"), "stage": stage_option()},
    severity=Severity.MEDIUM,
    remediation_steps="Name a new topic so, or set `pattern` to the convention of this stack: Kafka cannot rename a "
    "topic.",
)
