"""Rules that hold a stack file's mirrors against the stack files beside it.

Problems are told in the file that is checked only; a sibling's own mistakes are told when it is checked.
"""

from collections.abc import Mapping

from settings.draft import Draft
from settings.errors import Problem
from settings.flows import Flow, Landscape, flows, plain_names, returns
from settings.patterns import copied, matches, may_overlap
from settings.rules.common import refusing_listener
from settings.rules.sharing import sharing
from settings.wording import alike, listed

_NO_AUTHENTICATION = "none"


def siblings(found: Draft, stack: str | None, others: Mapping[str, Draft], insist: bool) -> list[Problem]:
    """All rules between a file and its siblings; with `insist` a source's file must be among them."""
    name = stack or ""
    around = Landscape({**others, name: found})
    problems = []
    for flow in flows(name, found):
        subject = f"mirror {flow.mirror.name}"
        if flow.is_reverse:
            problems += _reverse_factor(subject, flow, around)
        else:
            problems += _source(subject, flow, others, insist) + _aliases(subject, flow, around)
        problems += sharing(subject, flow, around)
        problems += _topics(subject, flow, around) + _loop(subject, flow, around) + _return(subject, flow, around)
    for flow in returns(name, found):
        problems += sharing(f"mirror {flow.mirror.name}", flow, around)
    return problems


def _source(subject: str, flow: Flow, others: Mapping[str, Draft], insist: bool) -> list[Problem]:
    """The source stack has a file, and the mirror's user there, and that of applications, can log in."""
    source = flow.source
    if source is None or source == flow.file:
        return []
    there = others.get(source)
    if there is None:
        if not insist:
            return []
        return [
            Problem(
                f"{flow.where}.source.stack",
                f"{subject}: source.stack must have its file beside this one (got {source}, allowed "
                f"{listed(others)}).{alike(source, others)} Write Pulumi.{source}.yaml, or correct the name.",
            )
        ]
    return [
        problem
        for field, user in flow.mirror.source_users.items()
        for problem in _user(subject, flow, there, field, user)
    ]


def _user(subject: str, flow: Flow, there: Draft, field: str, wanted: str) -> list[Problem]:
    """A user of the source stack is declared there, and can log in as its listener demands."""
    source, known = flow.source, there.users_by_name()
    if wanted not in known:
        if "users" not in there.whole:
            return []
        return [
            Problem(
                f"{flow.where}.{field}",
                f"{subject}: {field} must be a user of stack {source} (got {wanted}, allowed {listed(known)})."
                f"{alike(wanted, known)} Declare it in Pulumi.{source}.yaml, or correct the name.",
            )
        ]
    user = known[wanted]
    listener = refusing_listener(there.against, user)
    if user is None or listener is None:
        return []
    fix = "Change the user, or cluster.listener, there."
    if listener.authentication == _NO_AUTHENTICATION:
        fix = "Mirrors log in: choose a listener with authentication as cluster.listener there."
    return [
        Problem(
            f"{flow.where}.{field}",
            f"{subject}: {field} must log in as listener {listener.name} of stack {source} demands (got "
            f"{wanted} with {user.authentication}, allowed {listener.authentication}). {fix}",
        )
    ]


def _aliases(subject: str, flow: Flow, around: Landscape) -> list[Problem]:
    """An alias that the source's file uses names the same cluster here."""
    if flow.source is None:
        return []

    def meanings(each: Flow) -> dict[str, tuple[str, str]]:
        external = each.mirror.source.external
        other = f"external cluster {external.name}" if external else f"the cluster of stack {each.source}"
        return {
            "source": (each.mirror.source.alias, other),
            "target": (each.mirror.target.alias, f"the cluster of stack {each.target}"),
        }

    problems = []
    theirs = [each for each in around.all_flows if each.file == flow.source != flow.file and not each.is_reverse]
    for end, (alias, cluster) in meanings(flow).items():
        for each in theirs:
            problems += [
                Problem(
                    f"{flow.where}.{end}.alias",
                    f"{subject}: {end}.alias must name one cluster in all stack files (got {alias} for {cluster}, and "
                    f"for {known} in Pulumi.{each.file}.yaml). Rename one.",
                )
                for other_alias, known in meanings(each).values()
                if other_alias == alias and known != cluster
            ]
    return list(dict.fromkeys(problems))


def _topics(subject: str, flow: Flow, around: Landscape) -> list[Problem]:
    """Every pattern stands for a topic that the source has."""
    names, problems = around.topics(flow.source), []
    if names is None:
        return []
    for index, pattern in enumerate(flow.mirror.topics):
        matched = sorted(name for name in names if matches(pattern, name))
        if not matched:
            rule = (
                f"must match a topic of stack {flow.source} (got '{pattern}', allowed {listed(names)})."
                f"{alike(pattern, names)} Correct it, or declare the topic there."
            )
        elif not any(copied(name, [pattern], flow.mirror.topics_exclude) for name in matched):
            rule = (
                f"must leave something to copy (got '{pattern}', and topicsExclude takes away all that it matches on "
                f"stack {flow.source}: {listed(matched)}). Change one of the two."
            )
        else:
            continue
        problems.append(Problem(f"{flow.where}.topics[{index}]", f"{subject}: topics {rule}"))
    return problems


def _loop(subject: str, flow: Flow, around: Landscape) -> list[Problem]:
    """No record comes back under its own name."""
    if not flow.is_identity or flow.source in (None, flow.target) or flow.is_reverse or flow.mirror.reverse is not None:
        return []  # a mirror with a reverse of its own is judged without siblings
    names = {*(around.topics(flow.source) or ()), *(around.topics(flow.target) or ()), *plain_names(around.all_flows)}
    ways = {name: way for name in sorted(names) if flow.copies(name) and (way := around.way_round(flow, name))}
    back = next(iter(ways.values()), [])
    topics = list(ways)
    if not topics:
        for other in around.all_flows:
            if (other.source, other.target) == (flow.target, flow.source) and other.is_identity and not names:
                topics, back = may_overlap(flow.mirror.topics, other.mirror.topics), [other]
    if not topics:
        return []
    by = " and ".join(f"{other.mirror.name} of stack {other.file}" for other in reversed(back))
    return [
        Problem(
            f"{flow.where}.naming",
            f"{subject}: naming must be prefixed, in both directions, where topics come back (got identity, and "
            f"{listed(topics)} would come back by mirror {by}). Under the same name a record would be copied again, "
            "without end. Use prefixed, or other topics.",
        )
    ]


def _return(subject: str, flow: Flow, around: Landscape) -> list[Problem]:
    """A prefixed mirror knows its own records by the alias of its target: the other direction must use the same."""
    if flow.is_identity or flow.source is None or flow.is_reverse:
        return []
    mine = flow.mirror.target.alias
    for other in around.all_flows:
        theirs = other.mirror.source.alias
        if (other.source, other.target) != (flow.target, flow.source) or other.is_identity or theirs == mine:
            continue
        names = {*(around.topics(flow.target) or ()), *plain_names([other])}
        back = sorted(copy for name in names if other.copies(name) and flow.copies(copy := other.copy_of(name)))
        if back:
            return [
                Problem(
                    f"{flow.where}.target.alias",
                    f"{subject}: target.alias must be the alias that mirror {other.mirror.name} of stack {other.file} "
                    f"gives this cluster (got {mine}, allowed {theirs}). By it MirrorMaker knows what came from here; "
                    f"{listed(back)} would be copied again, without end.",
                )
            ]
    return []


def _reverse_factor(subject: str, flow: Flow, around: Landscape) -> list[Problem]:
    """What the reverse direction creates fits the cluster that it writes to."""
    there = around.drafts.get(flow.target or "")
    factor = flow.mirror.replication_factor
    if there is None or there.against is None or factor <= there.against.broker_count:
        return []
    return [
        Problem(
            f"{flow.where.removesuffix('.reverse')}.replicationFactor",
            f"{subject}: replicationFactor must be <= brokers of {there.against.name}, to which reverse writes (got "
            f"{factor}, allowed 1..{there.against.broker_count}). Lower it, or add brokers in "
            f"Pulumi.{flow.target}.yaml.",
        )
    ]
