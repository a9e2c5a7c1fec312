"""KafkaMirrorMaker2: its name and its aliases, which become part of names of topics, groups and metrics."""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.mirror_makers import cluster_endpoints
from policies.support.policy_builder import WORDS, Config, misnamed, pattern_option, resource_policy, stage_option
from policies.support.resources import MIRROR, Props, each, name


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for the name, and one for each alias however many mirrors of the resource use it."""
    subject = f"mirror {name(props)}"
    reported: set[str] = set()

    def check(end: tuple[str, Props]) -> Iterator[str]:
        where, cluster = end
        alias = cluster.get("alias")
        if alias is not None and str(alias) not in reported:
            reported.add(str(alias))
            yield from misnamed(subject, f"{where} alias", str(alias), config, option="aliasPattern")

    yield from misnamed(subject, "name", name(props), config)
    yield from each(cluster_endpoints(type_, props), check)


POLICY = resource_policy(
    name="mirror-names",
    description="The name of every KafkaMirrorMaker2 matches `pattern`, and each of its aliases `aliasPattern`.",
    types=MIRROR,
    violations=violations,
    options={
        "pattern": pattern_option(WORDS, "names of mirrors"),
        "aliasPattern": pattern_option(WORDS, "aliases"),
        "stage": stage_option(),
    },
    severity=Severity.MEDIUM,
    remediation_steps="Name a new mirror so, or set the pattern to the convention of this stack: with another alias, a "
    "mirror starts again from the beginning.",
)
