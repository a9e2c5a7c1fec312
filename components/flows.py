"""Which mirrors a stack runs, each with its two ends: a mirror with a `reverse`, or a failback, runs both ways.

Owns the joining of ends. Makes no resource.
"""

from dataclasses import dataclass

import pulumi

from components import ends
from components.ends import End
from components.kafka_cluster import KafkaCluster
from components.kafka_users import KafkaUsers
from components.source_stack import source_ends
from settings.mirrors import Mirror
from settings.stack import Stack


@dataclass(frozen=True, kw_only=True)
class Flow:
    """One KafkaMirrorMaker2: its settings, where it runs, and between which clusters.

    `clients` is the active side as applications log in there; None if they get nothing from here.
    """

    mirror: Mirror
    namespace: str
    source: End
    target: End
    clients: End | None = None
    is_reverse: bool = False


def sources(settings: Stack) -> dict[str, dict[str, End]]:
    """Return the ends that other stacks hold, by mirror and user, without those that are awaited.

    Raises RunError before any resource is made.
    """
    home = settings.cluster.namespace
    return {
        each.name: found
        for each in settings.mirrors
        if each.source.stack is not None and (found := source_ends(each, each.home(home)))
    }


def flows(settings: Stack, known: dict[str, dict[str, End]], kafka: KafkaCluster, users: KafkaUsers) -> list[Flow]:
    """Return every flow of the stack, both directions of a mirror with `reverse` or with a failback under way."""
    found = []
    for mirror in settings.mirrors:
        namespace = mirror.home(settings.cluster.namespace)
        external = mirror.source.external
        if external is None and mirror.name not in known:
            continue
        if external is not None:
            source = ends.external_source(external, mirror.name, namespace, users)
        else:
            source = known[mirror.name][str(mirror.source.user)]
        target = _own_end(settings, mirror.target.user, kafka, users)
        clients = None
        if mirror.clients_user is not None and mirror.active == "target":
            clients = _own_end(settings, mirror.clients_user, kafka, users)
        elif mirror.clients_user is not None:
            clients = known[mirror.name][mirror.clients_user]
        found.append(Flow(mirror=mirror, namespace=namespace, source=source, target=target, clients=clients))
        backwards = [mirror.opposite()] if mirror.reverse is not None else []
        backwards += [mirror.returning()] if mirror.brings_back else []
        found += [
            Flow(mirror=back, namespace=namespace, source=target, target=source, is_reverse=True) for back in backwards
        ]
    return found


def _own_end(settings: Stack, user: str, kafka: KafkaCluster, users: KafkaUsers) -> End:
    cluster = settings.cluster
    authority = cluster.external.certificate_authority if cluster.external else None
    return End(
        name=cluster.name,
        owner="this stack",
        home=cluster.namespace,
        tls=cluster.has_tls,
        bootstrap_servers=kafka.internal_bootstrap_servers,
        outside_servers=kafka.bootstrap_servers,
        ca_secret=cluster.ca_secret,
        ca_certificate=kafka.ca_certificate,
        ca_from_file=authority is not None and authority.file is not None,
        login=users.logins[user],
        credentials=users.credentials[user],
        stack=pulumi.get_stack() if cluster.external is None else None,
        namespace=cluster.namespace if cluster.external is None else None,
    )
