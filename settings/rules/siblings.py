"""Rules that compare a stack file's mirrors with the stack files beside it, and whether clusters reach each other.

Problems are reported for the file that is checked only; a sibling's own mistakes are reported when it is checked.
"""

from collections.abc import Iterator, Mapping

from settings.cluster import Cluster, Listener
from settings.errors import Problem, Subject
from settings.names import copied, matches, may_overlap
from settings.parsing import ParsedStack
from settings.replication_topology import ReplicationTopology, TopicFlow, failback_flows, flows, plain_names
from settings.rules.active import sharing
from settings.rules.common import refusing_listener
from settings.rules.operation import driver_beside
from settings.text import did_you_mean, format_names

_NO_AUTHENTICATION = "none"
SHARED = "scram-sha-512"  # the authentication of one login for both sides


def siblings(
    found: ParsedStack, stack: str | None, others: Mapping[str, ParsedStack], required: bool
) -> Iterator[Problem]:
    """Yield the problems of a file beside its siblings; with `required` a source's file must be among them."""
    name = stack or ""
    topology = ReplicationTopology({**others, name: found})

    for flow in flows(name, found):
        at = Subject(flow.where, f"mirror {flow.mirror.name}")
        if flow.is_reverse:
            yield from _reverse_factor(at, flow, topology)
        else:
            yield from _source(at, flow, others, required)
            yield from _aliases(at, flow, topology)
        yield from sharing(at, flow, topology)
        yield from _topics(at, flow, topology)
        yield from _loop(at, flow, topology)
        yield from _prefix_cycle(at, flow, topology)
    for flow in failback_flows(name, found):
        yield from sharing(Subject(flow.where, f"mirror {flow.mirror.name}"), flow, topology)
    if found.verification is not None:
        clusters = (each.reference_cluster for each in others.values())
        elsewhere = {cluster.namespace for cluster in clusters if cluster is not None}
        own = {found.reference_cluster.namespace} if found.reference_cluster is not None else set[str]()
        yield from driver_beside(found.verification.run, elsewhere - own)


def _source(at: Subject, flow: TopicFlow, others: Mapping[str, ParsedStack], required: bool) -> Iterator[Problem]:
    """The source stack has a file, and the mirror's user there, and that of applications, can log in."""
    source = flow.source
    if source is None or source == flow.file:
        return
    there = others.get(source)
    if there is None:
        if not required:
            return
        yield Problem(
            f"{flow.where}.source.stack",
            f"{at.name}: source.stack must have its file beside this one (got {source}, allowed "
            f"{format_names(others)}).{did_you_mean(source, others)} Write Pulumi.{source}.yaml, or correct the "
            "name.",
        )
        return
    yield from [
        problem for field, user in flow.mirror.source_users.items() for problem in _user(at, flow, there, field, user)
    ]


def _user(at: Subject, flow: TopicFlow, there: ParsedStack, field: str, wanted: str) -> Iterator[Problem]:
    """A user of the source stack is declared there, and can log in as its listener demands."""
    source, known = flow.source, there.users_by_name()
    if wanted not in known:
        if "users" not in there.complete_lists:
            return
        yield Problem(
            f"{flow.where}.{field}",
            f"{at.name}: {field} must be a user of stack {source} (got {wanted}, allowed {format_names(known)})."
            f"{did_you_mean(wanted, known)} Declare it in Pulumi.{source}.yaml, or correct the name.",
        )
        return
    user = known[wanted]
    if user is not None and field == "clients.login" and (user.authentication, user.login) != (SHARED, wanted):
        yield Problem(
            f"{flow.where}.{field}",
            f"{at.name}: {field} must log in with {SHARED} under its own name at stack {source} (got {user.login} with "
            f"{user.authentication}). Change the user there, or name two users in clients.source and clients.target.",
        )
        return
    listener = refusing_listener(there.reference_cluster, user)
    if user is None or listener is None:
        return
    fix = "Change the user, or cluster.listener, there."
    if listener.authentication == _NO_AUTHENTICATION:
        fix = "Mirrors log in: choose a listener with authentication as cluster.listener there."
    yield Problem(
        f"{flow.where}.{field}",
        f"{at.name}: {field} must log in as listener {listener.name} of stack {source} demands (got "
        f"{wanted} with {user.authentication}, allowed {listener.authentication}). {fix}",
    )


def _aliases(at: Subject, flow: TopicFlow, topology: ReplicationTopology) -> Iterator[Problem]:
    """An alias that the source's file uses names the same cluster here."""
    if flow.source is None:
        return

    def meanings(each: TopicFlow) -> dict[str, tuple[str, str]]:
        external = each.mirror.source.external
        other = f"external cluster {external.name}" if external else f"the cluster of stack {each.source}"
        return {
            "source": (each.mirror.source.alias, other),
            "target": (each.mirror.target.alias, f"the cluster of stack {each.target}"),
        }

    problems = []
    theirs = [each for each in topology.all_flows if each.file == flow.source != flow.file and not each.is_reverse]
    for side, (alias, cluster) in meanings(flow).items():
        for each in theirs:
            for other_alias, known in meanings(each).values():
                if other_alias == alias and known != cluster:
                    problems.append(
                        Problem(
                            f"{flow.where}.{side}.alias",
                            f"{at.name}: {side}.alias must name one cluster in all stack files (got {alias} for "
                            f"{cluster}, and for {known} in Pulumi.{each.file}.yaml). Rename one.",
                        )
                    )
    yield from list(dict.fromkeys(problems))


def _topics(at: Subject, flow: TopicFlow, topology: ReplicationTopology) -> Iterator[Problem]:
    """Every pattern matches a topic that the source has."""
    names = topology.topics(flow.source)
    if names is None:
        return
    for index, pattern in enumerate(flow.mirror.topics):
        matched = sorted(name for name in names if matches(pattern, name))
        if not matched:
            rule = (
                f"must match a topic of stack {flow.source} (got '{pattern}', allowed {format_names(names)})."
                f"{did_you_mean(pattern, names)} Correct it, or declare the topic there."
            )
        elif not any(copied(name, [pattern], flow.mirror.topics_exclude) for name in matched):
            rule = (
                f"must leave something to copy (got '{pattern}', and topicsExclude takes away all that it matches on "
                f"stack {flow.source}: {format_names(matched)}). Change one of the two."
            )
        else:
            continue
        yield Problem(f"{flow.where}.topics[{index}]", f"{at.name}: topics {rule}")


def _loop(at: Subject, flow: TopicFlow, topology: ReplicationTopology) -> Iterator[Problem]:
    """No record comes back under its own name."""
    if not flow.is_identity or flow.source in (None, flow.target) or flow.is_reverse or flow.mirror.reverse is not None:
        return  # a mirror with a reverse of its own is judged without siblings
    names = {
        *(topology.topics(flow.source) or ()),
        *(topology.topics(flow.target) or ()),
        *plain_names(topology.all_flows),
    }
    ways = {
        name: way for name in sorted(names) if flow.copies(name) and (way := topology.replication_cycle(flow, name))
    }
    back = next(iter(ways.values()), [])
    topics = list(ways)
    if not topics:
        for other in topology.all_flows:
            if (other.source, other.target) == (flow.target, flow.source) and other.is_identity and not names:
                topics, back = may_overlap(flow.mirror.topics, other.mirror.topics), [other]
    if not topics:
        return
    by = " and ".join(f"{other.mirror.name} of stack {other.file}" for other in reversed(back))
    yield Problem(
        f"{flow.where}.naming",
        f"{at.name}: naming must be prefixed, in both directions, where topics come back (got identity, and "
        f"{format_names(topics)} would come back by mirror {by}). Under the same name a record would be copied "
        "again, without end. Use prefixed, or other topics.",
    )


def _prefix_cycle(at: Subject, flow: TopicFlow, topology: ReplicationTopology) -> Iterator[Problem]:
    """A prefixed mirror knows its own records by the alias of its target: the other direction must use the same."""
    if flow.is_identity or flow.source is None or flow.is_reverse:
        return
    mine = flow.mirror.target.alias
    for other in topology.all_flows:
        theirs = other.mirror.source.alias
        if (other.source, other.target) != (flow.target, flow.source) or other.is_identity or theirs == mine:
            continue
        names = {*(topology.topics(flow.target) or ()), *plain_names([other])}
        back = sorted(copy for name in names if other.copies(name) and flow.copies(copy := other.remote_topic(name)))
        if back:
            yield Problem(
                f"{flow.where}.target.alias",
                f"{at.name}: target.alias must be the alias that mirror {other.mirror.name} of stack {other.file} "
                f"gives this cluster (got {mine}, allowed {theirs}). By it MirrorMaker knows what came from here; "
                f"{format_names(back)} would be copied again, without end.",
            )
            return


def _reverse_factor(at: Subject, flow: TopicFlow, topology: ReplicationTopology) -> Iterator[Problem]:
    """What the reverse direction creates fits the cluster that it writes to."""
    there = topology.stacks.get(flow.target or "")
    factor = flow.mirror.replication_factor
    if there is None or there.reference_cluster is None or factor <= there.reference_cluster.broker_count:
        return
    yield Problem(
        f"{flow.where.removesuffix('.reverse')}.replicationFactor",
        f"{at.name}: replicationFactor must be <= brokers of {there.reference_cluster.name}, to which reverse "
        f"writes (got {factor}, allowed 1..{there.reference_cluster.broker_count}). Lower it, or add brokers in "
        f"Pulumi.{flow.target}.yaml.",
    )


def connectivity(
    found: ParsedStack, stack: str | None, others: Mapping[str, ParsedStack], contexts: Mapping[str, str]
) -> Iterator[Problem]:
    """A mirror reaches the brokers of a source that is known, by its context, to be in another Kubernetes cluster."""
    own = contexts.get(stack or "")
    for flow, listener in _unexposed_sources(found, stack, others):
        there = contexts.get(str(flow.source))
        if own is None or there is None or own == there:
            continue
        yield Subject(flow.where, f"mirror {flow.mirror.name}").problem(
            "source.stack",
            "must expose its brokers to other Kubernetes clusters",
            f"listener {listener.name} of type {listener.type} on stack {flow.source} in context {there}, and "
            f"this stack in context {own}",
            f"Set cluster.expose in Pulumi.{flow.source}.yaml. If both are one Kubernetes cluster, give both "
            "stacks one kubernetes:context.",
        )


def connectivity_hints(found: ParsedStack, stack: str | None, others: Mapping[str, ParsedStack]) -> Iterator[Problem]:
    """Yield a hint for what works only if both clusters and the verification are in one Kubernetes cluster."""
    hidden = list(_unexposed_sources(found, stack, others))
    result = [
        Problem(
            f"{flow.where}.source.stack",
            f"mirror {flow.mirror.name}: the brokers of stack {flow.source} are reached only within their Kubernetes "
            f"cluster (listener {listener.name} is of type {listener.type}). If the mirror runs in another one, set "
            f"cluster.expose in Pulumi.{flow.source}.yaml.",
        )
        for flow, listener in hidden
    ]
    settings = found.verification
    if not found.mirrors or settings is None or settings.run.in_cluster or settings.when == "never":
        yield from result
        return
    sides = [stack or "this stack"] if _hidden(found.reference_cluster) else []
    sides += [str(flow.source) for flow in flows(stack or "", found) if _hides(others.get(flow.source or ""))]
    if sides:
        files = " and ".join(f"Pulumi.{name}.yaml" for name in dict.fromkeys(sides))
        result.append(
            Problem(
                "verification.run.how",
                f"verification: it runs beside Pulumi, and the brokers of {' and '.join(dict.fromkeys(sides))} are "
                f"reached only within Kubernetes. Set cluster.expose in {files}, or run the verification there: "
                "run.how job.",
            )
        )
    yield from result


def _unexposed_sources(
    found: ParsedStack, stack: str | None, others: Mapping[str, ParsedStack]
) -> Iterator[tuple[TopicFlow, Listener]]:
    """Yield mirrors whose source no other Kubernetes cluster reaches, unless both clusters share a namespace."""
    for flow in flows(stack or "", found):
        there = others.get(flow.source or "")
        if flow.is_reverse or there is None or not flow.mirror.source.copy_secrets:
            continue
        listener = _hidden(there.reference_cluster)
        if listener is not None:
            yield flow, listener


def _hides(parsed: ParsedStack | None) -> bool:
    return parsed is not None and _hidden(parsed.reference_cluster) is not None


def _hidden(cluster: Cluster | None) -> Listener | None:
    """Return the listener by which others must connect if it is reached within Kubernetes only."""
    try:
        if cluster is None or cluster.is_reached_from_outside:
            return None
        return cluster.outside_listener
    except KeyError:  # reported where the cluster is checked
        return None
