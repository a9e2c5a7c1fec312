"""Rules and hints of the fence: it can be enforced, and applications have users of their own that it can refuse."""

from collections.abc import Iterator, Mapping

from settings.cluster import Cluster
from settings.errors import Problem, Subject
from settings.fence import Fence, coverage, has_rules
from settings.parsing import ParsedStack
from settings.replication_topology import TopicFlow
from settings.text import did_you_mean, format_names
from settings.users import User

_AT = Subject("fence", "fence")


def fence(found: Fence, on: Cluster | None, users: Mapping[str, User | None]) -> Iterator[Problem]:
    """It names topics, its users are there, and the cluster asks for the rights of users that the stack makes."""
    if not found.topics and not found.prefixes:
        yield _AT.problem(
            "topics or prefixes", "must be given", "nothing", "Name the topics, or remove fence.", key="topics"
        )
    for index, user in enumerate(found.mirror_users):
        if user not in users:
            yield _AT.problem(
                "mirrorUsers",
                "must be this stack's users",
                f"{user}, allowed {format_names(users)}",
                f"{did_you_mean(user, users)} Declare it under users, or remove it.",
                key=f"mirrorUsers[{index}]",
            )
    if on is None or has_rules(on):
        return
    external = on.external is not None
    yield _AT.problem(
        "fence",
        f"must not be given {'on an external cluster' if external else 'where cluster.authorization is none'}",
        fix="Remove it, and stop the applications instead.",
        why="somebody else grants rights there" if external else "every user may do everything",
        key="",
    )


def fence_hints(flow: TopicFlow, found: ParsedStack) -> Iterator[Problem]:
    """Yield a hint for a user that a mirror and applications share, and for a pattern that no rule stands for."""
    if flow.is_reverse:
        return
    mirror = flow.mirror
    at = Subject(flow.where, f"mirror {mirror.name}")
    if mirror.clients is not None:
        users = {
            "source": (mirror.clients.source, mirror.source.user),
            "target": (mirror.clients.target, mirror.target.user),
        }
        for side, (of_clients, of_mirror) in users.items():
            if of_clients is not None and of_clients == of_mirror:
                yield at.hint(
                    f"clients.{side}",
                    f"user {of_mirror} serves both the mirror and applications (clients.{side}, {side}.user), so that "
                    f"nothing can refuse the applications while the {side} is not active. Give applications a user of "
                    "their own.",
                )
    if found.cluster is None or not has_rules(found.cluster) or mirror.standby == "open":
        return
    without_rule = coverage(mirror).without_rule
    for index, pattern in enumerate(mirror.topics):
        if pattern in without_rule:
            yield at.hint(
                f"topics[{index}]",
                f"the topics of '{pattern}' cannot be fenced on the target by a rule: Kafka knows names and prefixes, "
                "and a prefix must hold no topic that topicsExclude leaves out. Applications that may write them are "
                "not refused while the source is active. List names and prefixes instead; the check "
                "standby_read_only names who may write.",
            )
