"""Which mirrors a stack runs, each with its two ends: a mirror with a `reverse` runs both ways.

Owns the joining of ends. Makes no resource.
"""

from dataclasses import dataclass

from components import ends
from components.ends import End
from components.kafka_cluster import KafkaCluster
from components.kafka_users import KafkaUsers
from components.source_stack import source_end
from settings.mirrors import Mirror
from settings.stack import Stack


@dataclass(frozen=True, kw_only=True)
class Flow:
    """One KafkaMirrorMaker2: its settings, where it runs, and between which clusters."""

    mirror: Mirror
    namespace: str
    source: End
    target: End


def sources(settings: Stack) -> dict[str, End]:
    """Return the ends that other stacks hold, by mirror, without those that are awaited.

    Raises RunError before any resource is made.
    """
    home = settings.cluster.namespace
    found = {each.name: source_end(each, each.home(home)) for each in settings.mirrors if each.source.stack is not None}
    return {name: end for name, end in found.items() if end is not None}


def flows(settings: Stack, known: dict[str, End], kafka: KafkaCluster, users: KafkaUsers) -> list[Flow]:
    """Return every flow of the stack, both directions of a mirror with `reverse`."""
    found = []
    for mirror in settings.mirrors:
        namespace = mirror.home(settings.cluster.namespace)
        external = mirror.source.external
        if external is None and mirror.name not in known:
            continue
        source = ends.external_source(external, mirror.name, namespace, users) if external else known[mirror.name]
        target = _own_end(settings, mirror.target.user, kafka, users)
        found.append(Flow(mirror=mirror, namespace=namespace, source=source, target=target))
        if mirror.reverse is not None:
            found.append(Flow(mirror=mirror.opposite(), namespace=namespace, source=target, target=source))
    return found


def _own_end(settings: Stack, user: str, kafka: KafkaCluster, users: KafkaUsers) -> End:
    cluster = settings.cluster
    authority = cluster.external.certificate_authority if cluster.external else None
    return End(
        name=cluster.name,
        owner="this stack",
        home=cluster.namespace,
        tls=cluster.has_tls,
        bootstrap_servers=kafka.bootstrap_servers,
        ca_secret=cluster.ca_secret,
        ca_certificate=kafka.ca_certificate,
        ca_from_file=authority is not None and authority.file is not None,
        login=users.logins[user],
        credentials=users.credentials[user],
    )
