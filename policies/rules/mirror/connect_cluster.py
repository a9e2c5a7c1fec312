"""KafkaMirrorMaker2 with a list of clusters: its workers belong to the target, and every alias must name a cluster.

MirrorMaker's connectors write through the workers' own connection, so that all mirrors of a resource end in the cluster
that `connectCluster` names. The v1 API has one `target` in place of both fields.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import MIRROR, STRIMZI_V1, Props, each, mapping, name, sequence

_WITH_CLUSTERS = MIRROR - {f"kubernetes:{STRIMZI_V1}:KafkaMirrorMaker2"}


def violations(_type: str, props: Props, _config: Config) -> Iterator[str]:
    """A message for each alias that no cluster has, and for each mirror that ends elsewhere than its workers."""
    spec = mapping(props.get("spec"))

    def check_alias(named: tuple[str, Props, str]) -> Iterator[str]:
        where, holder, key = named
        alias = holder.get(key)
        known = [str(mapping(cluster).get("alias")) for cluster in sequence(spec.get("clusters"))]
        if alias is not None and str(alias) not in known:
            yield (
                f"mirror {name(props)}: {where}{key} must be the alias of one of clusters "
                f"(got {alias}, allowed {', '.join(known) or 'none'}). The operator refuses the resource."
            )

    def check_target(numbered: tuple[int, Props]) -> Iterator[str]:
        index, mirror = numbered
        workers, target = spec.get("connectCluster"), mirror.get("targetCluster")
        if None not in (workers, target) and target != workers:
            yield (
                f"mirror {name(props)}: mirrors[{index}].targetCluster must be connectCluster "
                f"(got {target}, allowed {workers}). The workers write to the cluster that they belong to: "
                "give each target a resource of its own."
            )

    mirrors = [*enumerate(mapping(mirror) for mirror in sequence(spec.get("mirrors")))]
    aliases = [("", spec, "connectCluster")] + [
        (f"mirrors[{index}].", mirror, key) for index, mirror in mirrors for key in ("sourceCluster", "targetCluster")
    ]
    yield from each(aliases, check_alias)
    yield from each(mirrors, check_target)


POLICY = resource_policy(
    name="connect-cluster",
    description="A mirror's workers belong to the cluster to which it copies, and every alias names a cluster.",
    types=_WITH_CLUSTERS,
    violations=violations,
    severity=Severity.HIGH,
    remediation_steps="Name the target in `connectCluster` and in every `targetCluster`, and declare it in `clusters`.",
)
