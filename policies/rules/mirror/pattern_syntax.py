"""KafkaMirrorMaker2: its patterns must be lists of expressions that Java compiles.

MirrorMaker cuts each pattern at its commas and has Java compile the rest. The operator checks none of it: a mistake
shows only when the connector fails. What Python cannot decide about Java is no error, but the verification would
refuse it, and so does this rule.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.java_patterns import mistake, unverifiable
from policies.support.mirror_makers import PATTERNS, ReplicationFlow, replication_flows
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import MIRROR, Props, each, name


def violations(type_: str, props: Props, _config: Config) -> Iterator[str]:
    """A message for each pattern that does not compile."""

    def check(place: tuple[ReplicationFlow, str]) -> Iterator[str]:
        flow, key = place
        pattern = flow.pattern(key)
        if pattern is None:
            return
        if reason := mistake(pattern):
            yield (
                f"mirror {name(props)}: {flow.where}.{key} must be a list of Java's regular expressions "
                f"(got {pattern}: {reason}). MirrorMaker's connectors would fail."
            )
        elif reason := unverifiable(pattern):
            yield (
                f"mirror {name(props)}: {flow.where}.{key} must select what can be verified "
                f"(got {pattern}: {reason}). Write it another way: nobody could find out what is missing."
            )

    return each(((flow, key) for flow in replication_flows(type_, props) for key in PATTERNS), check)


POLICY = resource_policy(
    name="pattern-syntax",
    description="Patterns on topics and groups compile in Java, cut at every comma, and can be verified outside of it.",
    types=MIRROR,
    violations=violations,
    severity=Severity.HIGH,
    remediation_steps="Correct the pattern. A comma ends an expression even within {1,2} and [,]: write them without.",
)
