"""Rules of active and standby: no mirror writes into the cluster that applications use, a failback can begin and end.

Applications can log in on both sides. A fence can be enforced, and applications have users of their own that it can
refuse. No two mirrors share a remote topic, an offset-syncs topic, Connect's group or its topics.
"""

from collections.abc import Iterator, Mapping

from settings.cluster import Cluster
from settings.errors import Problem, Subject
from settings.fence import Fence, coverage, has_rules
from settings.mirror_parts import Clients, clients_secret
from settings.mirrors import Mirror
from settings.names import copied, literal, may_overlap
from settings.parsing import ParsedStack
from settings.platform import Platform
from settings.replication_topology import ReplicationTopology, TopicFlow
from settings.rules.common import refusing_listener
from settings.text import did_you_mean, format_names
from settings.users import User

_AT = Subject("fence", "fence")


def active(at: Subject, mirror: Mirror, platform: Platform | None) -> Iterator[Problem]:
    """A mirror that keeps names is at rest while its target is active, unless it settles a failback."""
    if mirror.active == "source" or mirror.naming != "identity" or platform is None or mirror.failback == "settling":
        return
    rest = platform.rest_state
    if mirror.state in (rest, "stopped"):  # where it cannot be stopped, the platform's rule reports it
        return
    yield at.problem(
        "state",
        f"must be {rest} where target is active and names are kept",
        mirror.state,
        "A mirror that runs writes into the topics that applications use, and sets their groups back. "
        f"Set state {rest}, or active source.",
    )


def clients(
    at: Subject, mirror: Mirror, cluster: Cluster | None, users: Mapping[str, User | None]
) -> Iterator[Problem]:
    """Applications log in as users that both sides have; their Secret has its name for itself."""
    wanted = mirror.clients
    if wanted is None:
        return
    if wanted.login is not None:
        yield from _one_login(at, mirror, cluster, users.get(wanted.login))
    else:
        yield from _source(at, mirror)
    field, name = ("clients.login", wanted.login) if wanted.login else ("clients.target", wanted.target)
    if name is None:
        yield at.problem(field, "must be given without login", "nothing", "Name one of this stack's users.")
        return
    if name not in users:
        yield at.problem(
            field,
            "must be one of this stack's users",
            f"{name}, allowed {format_names(users)}",
            f"{did_you_mean(name, users)} Declare it under users.",
        )
    user = users.get(name)
    listener = refusing_listener(cluster, user)
    if user is not None and cluster is not None and listener is not None:
        yield at.problem(
            field,
            f"must log in as listener {listener.name} of {cluster.name} demands",
            f"{user.name} with {user.authentication}, allowed {listener.authentication}",
            "Change the user, or cluster.listener.",
        )
    secret = clients_secret(mirror.name)
    taken = {mirror.source.user, *users, *(user.credentials_secret for user in users.values() if user is not None)}
    if secret in taken:
        yield at.problem(
            "clients",
            f"must have the Secret {secret} to itself",
            "a user whose Secret has that name",
            "Rename the user, or the mirror.",
        )


def _one_login(at: Subject, mirror: Mirror, cluster: Cluster | None, user: User | None) -> Iterator[Problem]:
    """A login that both sides have gets its password from the source's stack, which must be there, and nowhere else."""
    wanted, source = mirror.clients or Clients(), mirror.source
    login = str(wanted.login)
    others = [side for side in ("source", "target") if getattr(wanted, side) is not None]
    if others:
        got = " and ".join(others)
        yield at.problem("clients.login", f"must not be given with {got}", login, f"Remove {got}: it is both.")
    if source.stack is None or not source.required:
        got, fix = "required: false", "Name two users in clients.source and clients.target."
        if source.stack is None:
            got, fix = "no source stack", "Name one of this stack's users in clients.target."
        yield at.problem(
            "clients.login", "must have a source stack that is up first", got, fix, why="the password is that stack's"
        )
    if not source.copy_secrets:
        yield at.problem(
            "clients.login",
            "must not be given with copySecrets false",
            login,
            "Name two users in clients.source and clients.target.",
            why="in one namespace a KafkaUser has its name once",
        )
    if login in (source.user, mirror.target.user):
        yield at.problem(
            "clients.login", "must not be a user of the mirror", login, "Give applications a user of their own."
        )
    if cluster is not None and cluster.external is not None:
        yield at.problem(
            "clients.login",
            "must not be given on an external cluster",
            login,
            "Name two users in clients.source and clients.target.",
            why="nobody can set a password there",
        )
    elif user is not None:
        yield from _shared_user(Subject(f"{at.key}.clients.login", f"user {user.name}"), user)


def _shared_user(at: Subject, user: User) -> Iterator[Problem]:
    """A user of this stack whose password is another stack's has none of its own."""
    if user.authentication != "scram-sha-512":
        yield at.problem(
            "authentication",
            "must be scram-sha-512 as clients.login",
            user.authentication,
            "Change it, or name two users in clients.source and clients.target.",
            why="a password is what both sides can have",
            key="",
        )
    own = {
        "secret": user.secret is not None,
        "generatedBy": user.generated_by == "operator",
        "passwordGeneration": user.password_generation > 1,
    }
    for field, given in own.items():
        if given:
            yield at.problem(
                field,
                "must not be given as clients.login",
                fix="Give it to the user in the source's stack.",
                why="the password is the source stack's",
                key="",
            )


def logins(found: Mapping[int, Mirror]) -> Iterator[Problem]:
    """A login that several mirrors give to applications has the password of one source stack."""
    first: dict[str, Mirror] = {}
    for index, mirror in found.items():
        login = mirror.clients.login if mirror.clients else None
        other = first.setdefault(login, mirror) if login else mirror
        if other.source.stack != mirror.source.stack:
            yield Subject(f"mirrors[{index}]", f"mirror {mirror.name}").problem(
                "clients.login",
                "must be one of mirrors from one source stack",
                f"{login}, as mirror {other.name} of stack {other.source.stack}",
                "Declare a user of another name for one of them.",
                why="it can have one password only",
            )


def _source(at: Subject, mirror: Mirror) -> Iterator[Problem]:
    given = mirror.clients.source if mirror.clients else None
    if mirror.source.external is not None and given is not None:
        yield at.problem(
            "clients.source",
            "must not be given with external",
            given,
            "Remove it.",
            why="the one login known there is the mirror's, which is not for applications",
        )
        return
    if mirror.source.stack is not None and given is None:
        yield at.problem("clients.source", "must be given with source.stack", "nothing", "Name one of its users.")
        return


def failback(at: Subject, mirror: Mirror) -> list[Problem]:
    """Return what keeps a failback from copying records of the target back under their names."""
    phase = mirror.failback
    if phase is None:
        return []
    problems: list[Problem] = []

    def refuse(rule: str) -> None:
        problems.append(at.hint("failback", f"failback must {rule}"))

    if mirror.naming != "identity":
        refuse(
            f"not be given with prefixed names (got {phase}). The direction back is a mirror of its own there: declare "
            "it with reverse."
        )
    if mirror.active != "target":
        refuse(
            f"not be given while source is active (got {phase}). There is nothing to bring back: set active target, or "
            "remove it; `python -m ops failback` sets and removes it by itself."
        )
    if mirror.source.external is not None:
        refuse(
            f"not be given with an external source (got {phase}; no user is known that may write there). Bring its "
            "records back by hand."
        )
    if not mirror.config_defaults:
        refuse(
            f"not be given with configDefaults false (got {phase}; such a mirror names no ConfigMap for its offsets). "
            "Leave configDefaults out."
        )
    return problems


def failed_over(at: Subject, mirror: Mirror) -> Iterator[Problem]:
    """Yield what keeps topics from failing over by themselves: all have, or they are none of the mirror's."""
    moved = mirror.failed_over
    if moved is None:
        return
    at, name = at.inside("failedOver"), "failedOver"
    fix = "`python -m ops failover` sets and removes it by itself."
    if mirror.active != "source":
        yield at.problem(name, "must not be given while target is active", key="", fix=fix, got=", ".join(moved.topics))
    for field, topics in (("topics", moved.topics), ("pending", moved.pending)):
        for index, topic in enumerate(topics):
            known = copied(topic, mirror.topics, mirror.topics_exclude)
            if known if field == "topics" else topic in moved.topics:
                continue
            rule = "must be topics of the mirror" if field == "topics" else "must be some of its topics"
            yield at.problem(f"{name}.{field}", rule, topic, fix, key=f"{field}[{index}]")


def sharing(at: Subject, flow: TopicFlow, topology: ReplicationTopology) -> Iterator[Problem]:
    """Yield what a mirror of the file must not share with another one; of two of one file the later one is reported."""
    for other in topology.all_flows:
        if other.file == flow.file and other.where >= flow.where:
            continue
        named = f"mirror {other.mirror.name} of stack {other.file}"
        if flow.target is not None and other.target == flow.target:
            yield from _workers(at, flow, other, named) if other.file != flow.file else []
            yield from _remote_topics(at, flow, other, named)
        if flow.source is not None and other.source == flow.source and other.target != flow.target:
            yield from _offset_syncs(at, flow, other, named)


def _workers(at: Subject, flow: TopicFlow, other: TopicFlow, named: str) -> Iterator[Problem]:
    """Workers of one group run each other's connectors, and each operator removes those that it does not know."""
    mine, theirs = flow.mirror.storage_topics, other.mirror.storage_topics
    shared = sorted(set(mine.values()) & set(theirs.values()))
    if flow.mirror.connect_group == other.mirror.connect_group:
        shared.insert(0, flow.mirror.connect_group)
    if not shared:
        return
    yield Problem(
        f"{flow.where}.name" if not flow.is_reverse else flow.where,
        f"{at.name}: group and storage topics must be its own on the target (got {', '.join(shared)}, as {named}). "
        "Rename the mirror, or set groupId and the storage topics.",
    )


def _remote_topics(at: Subject, flow: TopicFlow, other: TopicFlow, named: str) -> Iterator[Problem]:
    """Two mirrors that copy a topic to the same name double its records."""
    if flow.source is None or other.source != flow.source or other.mirror.source.external is not None:
        return
    if flow.is_identity != other.is_identity:
        return
    if not flow.is_identity and flow.mirror.source.alias != other.mirror.source.alias:
        return
    found = may_overlap(flow.mirror.topics, other.mirror.topics)
    both = [each for each in found if literal(each) is None or (flow.copies(each) and other.copies(each))]
    if not both:
        return
    yield Problem(
        f"{flow.where}.topics",
        f"{at.name}: topics must not be copied to the same name by two mirrors (got {', '.join(both)}, as "
        f"{named}). Every record would be there twice: exclude them in one.",
    )


def _offset_syncs(at: Subject, flow: TopicFlow, other: TopicFlow, named: str) -> Iterator[Problem]:
    """On the source the topic is named after the target's alias only."""
    location = {flow.mirror.offset_syncs_location, other.mirror.offset_syncs_location}
    if location != {"source"} or flow.mirror.target.alias != other.mirror.target.alias:
        return
    yield Problem(
        f"{flow.where}.target.alias",
        f"{at.name}: target.alias must be its own where offset syncs lie on the source (got "
        f"{flow.mirror.target.alias}, as {named}). Each would translate groups with the other's offsets: rename "
        "one, or set offsetSyncsLocation target.",
    )


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
            "source": (mirror.clients.user_of("source"), mirror.source.user),
            "target": (mirror.clients.user_of("target"), mirror.target.user),
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
