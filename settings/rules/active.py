"""Rules of who is active: no mirror writes into a side that applications use, and applications have a user there."""

from collections.abc import Mapping

from settings.cluster import Cluster
from settings.errors import Problem
from settings.mirrors import Mirror
from settings.platform import Platform
from settings.rules.common import refusing_listener
from settings.users import User
from settings.wording import alike, listed


def active(where: str, subject: str, mirror: Mirror, platform: Platform | None) -> list[Problem]:
    """A mirror that keeps names is at rest while its target is active, unless it carries over what was left behind."""
    if mirror.active == "source" or mirror.naming != "identity" or platform is None or mirror.failback == "settling":
        return []
    rest = platform.rest_state
    if mirror.state in (rest, "stopped"):  # where it cannot be stopped, that is told about the platform
        return []
    return [
        Problem(
            f"{where}.state",
            f"{subject}: state must be {rest} where target is active and names are kept (got {mirror.state}). A "
            "mirror that runs writes into the topics that applications use, and sets their groups back. "
            f"Set state {rest}, or active source.",
        )
    ]


def clients(
    where: str, subject: str, mirror: Mirror, cluster: Cluster | None, users: Mapping[str, User | None]
) -> list[Problem]:
    """Applications log in as users that both sides have; their Secret has its name for itself."""
    wanted = mirror.clients
    if wanted is None:
        return []
    problems = _source(where, subject, mirror)
    if wanted.target not in users:
        problems.append(
            Problem(
                f"{where}.clients.target",
                f"{subject}: clients.target must be one of this stack's users (got {wanted.target}, allowed "
                f"{listed(users)}).{alike(wanted.target, users)} Declare it under users.",
            )
        )
    user = users.get(wanted.target)
    listener = refusing_listener(cluster, user)
    if user is not None and cluster is not None and listener is not None:
        problems.append(
            Problem(
                f"{where}.clients.target",
                f"{subject}: clients.target must log in as listener {listener.name} of {cluster.name} demands (got "
                f"{user.name} with {user.authentication}, allowed {listener.authentication}). Change the user, or "
                "cluster.listener.",
            )
        )
    secret = f"{mirror.name}-clients"
    taken = {mirror.source.user, *users, *(user.credentials_secret for user in users.values() if user is not None)}
    if secret in taken:
        problems.append(
            Problem(
                f"{where}.clients",
                f"{subject}: clients must have the Secret {secret} to itself (got a user whose Secret has that name). "
                "Rename the user, or the mirror.",
            )
        )
    return problems


def _source(where: str, subject: str, mirror: Mirror) -> list[Problem]:
    given, at = mirror.clients.source if mirror.clients else None, f"{where}.clients.source"
    if mirror.source.external is not None and given is not None:
        return [
            Problem(
                at,
                f"{subject}: clients.source must not be given with external (got {given}; the one login known there is "
                "the mirror's, which is not for applications). Remove it.",
            )
        ]
    if mirror.source.stack is not None and given is None:
        return [
            Problem(
                at,
                f"{subject}: clients.source must be given with source.stack (got nothing). Name one of its users.",
            )
        ]
    return []
