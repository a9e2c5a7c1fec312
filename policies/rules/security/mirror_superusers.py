"""The stack: no mirror logs in as a superuser.

Its logins lie in Secrets beside it and, for the source, often in another site. As superusers they would open whole
clusters to whoever reads one. A user is a superuser by its cluster's `superUsers`, by its own ACLs, or, at a cluster
that is not of this stack, because the option lists it. The user of a login by OAuth or `custom` is not known.
"""

from collections.abc import Callable, Iterator, Sequence

from pulumi_policy import Severity

from policies.support.clusters import belongs
from policies.support.connections import (
    bare,
    hosts,
    leads_to,
    principal_of_login,
    principal_of_user,
    secret_of_login,
    secret_prefix,
    super_users,
    superuser_rights,
)
from policies.support.mirror_makers import cluster_endpoints
from policies.support.policy_builder import Config, Finding, Resource, stack_policy
from policies.support.resources import CLUSTER, MIRROR, USER, Props, each, name, namespace, sequence


def violations(resources: Sequence[Resource], config: Config) -> Iterator[Finding]:
    """A finding for each way in which the login at one end of a mirror is that of a superuser."""
    clusters = [one for one in resources if one.type_ in CLUSTER]
    users = [one for one in resources if one.type_ in USER]
    elsewhere = [bare(principal) for principal in sequence(config["superUsers"])]

    def check(mirror: Resource) -> Iterator[Finding]:
        return each(cluster_endpoints(mirror.type_, mirror.props), lambda end: check_end(mirror, *end))

    def check_end(mirror: Resource, where: str, end: Props) -> Iterator[Finding]:
        if not end:
            return
        origin = namespace(mirror.props)
        own = _such(users, lambda user: _has_secret_of(user, clusters, origin, end))
        principal = principal_of_user(own[0].props) if own else principal_of_login(end)
        if principal is None:
            return
        servers = hosts(end.get("bootstrapServers"))
        reached = _such(clusters, lambda cluster: _reaches(servers, origin, cluster))
        reached += _such(clusters, lambda cluster: any(belongs(user.props, cluster.props) for user in own))
        same = _such(users, lambda user: _is_user_of(principal, user, reached))
        sources = [
            *(["the option superUsers"] if principal in elsewhere and not reached else []),
            *each(reached, lambda cluster: _listing(principal, cluster)),
            *each([*own, *same], _rights),
        ]
        for source in dict.fromkeys(sources):
            yield Finding(
                f"mirror {name(mirror.props)}: {where} user {principal} must not be a superuser (got it by {source}). "
                "Whoever reads the mirror's login has that cluster. Give the mirror a user with the rights it needs.",
                mirror,
            )

    return each((one for one in resources if one.type_ in MIRROR), check)


def _such(resources: list[Resource], test: Callable[[Resource], bool]) -> list[Resource]:
    """The resources that pass the test; one of which too little is known does not."""
    return [*each(resources, lambda resource: [resource] if test(resource) else [])]


def _has_secret_of(user: Resource, clusters: list[Resource], origin: str, end: Props) -> bool:
    """Whether the mirror mounts the Secret that the User Operator writes for the user, in the user's namespace."""
    of_user = [cluster for cluster in clusters if belongs(user.props, cluster.props)]
    prefix = secret_prefix(of_user[0].type_, of_user[0].props) if of_user else ""
    return origin == namespace(user.props) and secret_of_login(end) == prefix + name(user.props)


def _reaches(servers: list[str], origin: str, cluster: Resource) -> bool:
    return any(leads_to(host, origin, cluster.type_, cluster.props) for host in servers)


def _listing(principal: str, cluster: Resource) -> Iterator[str]:
    if principal in super_users(cluster.type_, cluster.props):
        yield f"authorization.superUsers of cluster {name(cluster.props)}"


def _is_user_of(principal: str, user: Resource, reached: list[Resource]) -> bool:
    return principal_of_user(user.props) == principal and any(belongs(user.props, cluster.props) for cluster in reached)


def _rights(user: Resource) -> Iterator[str]:
    yield from (f"{right} of KafkaUser {name(user.props)}" for right in superuser_rights(user.type_, user.props))


POLICY = stack_policy(
    name="mirror-superusers",
    description="No mirror logs in as a superuser: not by `superUsers` of a cluster of the stack, not by the ACLs of a "
    "KafkaUser of the stack, and not as one of the option `superUsers`.",
    types=MIRROR | CLUSTER | USER,
    violations=violations,
    options={
        "superUsers": {
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "superusers of clusters outside the stack, such as `CN=admin`",
        }
    },
    severity=Severity.CRITICAL,
    remediation_steps="Make a KafkaUser for the mirror with the rights of one end, and log in as that user.",
)
