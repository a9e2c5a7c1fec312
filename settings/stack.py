"""All settings of one stack: parsed, defaulted and validated, every problem at once."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from settings import acl_sets
from settings.cluster import Cluster
from settings.errors import Problem, SettingsError
from settings.fence import Fence, mirror_users
from settings.mirrors import Mirror
from settings.model import STAYS, WITHIN, Model
from settings.monitoring import Monitoring
from settings.parsing import KEYS, ParsedStack, parse_settings
from settings.platform import Operator, Platform
from settings.rules import active, kafka_resources, operation
from settings.rules import cluster as cluster_rules
from settings.rules import hints as hint_rules
from settings.rules import mirrors as mirror_rules
from settings.rules import siblings as sibling_rules
from settings.topics import DemoClients, Topic
from settings.users import Acl, User
from settings.verification import Verification


class Stack(Model):
    """The settings of one stack, as its stack file says."""

    platform: Annotated[Platform, WITHIN]
    """Which operator's resources are written."""
    operator: Annotated[Operator, WITHIN]
    """How the operator gets there."""
    cluster: Annotated[Cluster, WITHIN]
    """The Kafka cluster."""
    users: Annotated[tuple[User, ...], STAYS] = ()
    """A list of users."""
    topics: Annotated[tuple[Topic, ...], WITHIN] = ()
    """A list of topics."""
    mirrors: Annotated[tuple[Mirror, ...], WITHIN] = ()
    """A list of mirrors into this stack's cluster."""
    verification: Annotated[Verification, WITHIN]
    """The proof that a mirror is complete."""
    monitoring: Annotated[Monitoring | None, STAYS] = None
    """What watches the stack, and where alerts are sent."""
    demo_clients: Annotated[DemoClients | None, STAYS] = None
    """Pods that produce and consume for a trial."""
    fence: Annotated[Fence | None, STAYS] = None
    """Topics that applications may not write, because another side is active. Written by `python -m ops failover`."""

    def user(self, name: str) -> User:
        """Return a declared user; raises KeyError."""
        return {user.name: user for user in self.users}[name]

    @property
    def kafka_version(self) -> str:
        """Version of Kafka that the managed cluster runs, and that mirrors have unless they set their own."""
        return self.cluster.version or self.platform.kafka_version

    def mirror_version(self, mirror: Mirror) -> str:
        """Version of Kafka that a mirror's workers run."""
        return mirror.version or self.kafka_version

    def verification_namespace(self, mirror: Mirror) -> str:
        """Namespace of the pods that verify a mirror."""
        return self.verification.run.home(mirror.home(self.cluster.namespace))

    def acls(self, user: User) -> tuple[Acl, ...]:
        """All rights of a user, its ready-made sets expanded; those of a failback only while the stack is fenced."""
        mirrors = {mirror.name: mirror for mirror in self.mirrors}
        return acl_sets.acls(user, mirrors, self.kafka_version, fenced=self.fence is not None)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Namespaces that the stack makes: of its cluster, mirrors, pods and operator.

        With `createNamespaces` of the operator also those that it watches. That of the cluster is among them only with
        its `createNamespace`.
        """
        home = self.cluster.namespace
        own = self.operator.home(home) if self.operator.install != "none" else home
        names = [home, own, *(mirror.home(home) for mirror in self.mirrors)]
        names += self.operator.watched_namespaces if self.operator.create_namespaces else ()
        if self.verification.run.in_cluster or self.verification.audit is not None:
            names += [self.verification_namespace(mirror) for mirror in self.mirrors]
        return tuple(name for name in dict.fromkeys(names) if name != home or self.cluster.create_namespace)


def parse(
    values: Mapping[str, Any],
    stack: str | None = None,
    siblings: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    require_siblings: bool = False,
    contexts: Mapping[str, str] | None = None,
) -> Stack:
    """Return the settings that raw values (by key, without the namespace) describe.

    A setting that cannot be parsed is left out of the rules that compare settings, so one mistake is reported once.

    Args:
        values: Raw values by key, without the namespace.
        stack: Name of the stack, if known.
        siblings: Raw values of the other stacks of the project, as far as they are known. Mirrors are checked against
            them; their own mistakes are not reported.
        require_siblings: Whether the source stack of a mirror must be among them.
        contexts: Kubernetes context of each stack that is known.

    Raises:
        SettingsError: With all problems.
    """
    found = parse_settings(values)
    ruled = [problem for problem in _rules(found, stack) if problem.key not in found.redacted]
    problems = [*found.problems, *ruled]
    others = {name: parse_settings(raw) for name, raw in (siblings or {}).items() if name != stack}
    if siblings is not None:
        problems += sibling_rules.siblings(found, stack, others, require_siblings)
        problems += sibling_rules.connectivity(found, stack, others, contexts or {})
    platform, operator, cluster, verification = found.platform, found.operator, found.cluster, found.verification
    if problems or platform is None or operator is None or cluster is None or verification is None:
        raise SettingsError(in_order(problems))
    return Stack(
        platform=platform,
        operator=operator,
        cluster=cluster,
        users=tuple(found.users.values()),
        topics=tuple(found.topics.values()),
        mirrors=tuple(found.mirrors.values()),
        verification=verification,
        monitoring=found.monitoring,
        demo_clients=found.demo_clients,
        fence=found.fence,
    )


def exported_users(settings: Stack, stack: str, siblings: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """Return the users whose credentials a stack exports: what another stack, or a command, logs in with.

    These are the users of mirrors, those that a mirror gives to applications, and those with `exported`.

    Args:
        settings: Those of the stack.
        stack: Its name.
        siblings: Raw values of the other stacks of the project, as `parse` takes them.
    """
    named = {user.name for user in settings.users if user.exported} | mirror_users(settings)
    for mirror in settings.mirrors:
        if mirror.clients is not None and (at_target := mirror.clients.user_of("target")) is not None:
            named.add(at_target)
    for raw in (raw for name, raw in siblings.items() if name != stack):
        for mirror in parse_settings(raw).mirrors.values():
            named |= set(mirror.source_users.values()) if mirror.source.stack == stack else set()
    return frozenset(named & {user.name for user in settings.users})


def hints(
    values: Mapping[str, Any], stack: str | None, siblings: Mapping[str, Mapping[str, Any]]
) -> tuple[Problem, ...]:
    """What is allowed and seldom meant, in a file that `parse` accepts beside these siblings."""
    others = {name: parse_settings(raw) for name, raw in siblings.items() if name != stack}
    return tuple(in_order(hint_rules.hints(parse_settings(values), stack, others)))


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Problems in the order of the settings, a list's entries by their position; each once."""

    def place(problem: Problem) -> tuple[int, int]:
        begin = re.match(r"(\w+)(?:\[(\d+)\])?", problem.key)
        key = begin[1] if begin else ""
        return (KEYS.index(key) if key in KEYS else -1, int(begin[2] or -1) if begin else -1)

    return sorted(dict.fromkeys(problems), key=place)


def _rules(found: ParsedStack, stack: str | None) -> list[Problem]:
    """Return the problems between the settings of one file."""
    problems: list[Problem] = []
    if found.platform is not None:
        problems += operation.platform(found.platform, has_mirrors=bool(found.mirrors))
    if found.operator is not None:
        problems += operation.operator(found.operator, found.cluster, found.mirrors)
    if found.cluster is not None:
        problems += cluster_rules.cluster(found.cluster, found.platform)
    problems += kafka_resources.users(found.users, found.reference_cluster, found.mirrors)
    problems += kafka_resources.topics(found.topics, found.reference_cluster)
    context = mirror_rules.RuleContext(
        stack=stack, platform=found.platform, cluster=found.reference_cluster, users=found.users_by_name()
    )
    problems += mirror_rules.mirrors(found.mirrors, context)
    if found.verification is not None:
        problems += operation.verification(found.verification, found.mirrors, found.reference_cluster)
    if found.monitoring is not None:
        problems += operation.monitoring(found.monitoring, found.mirrors)
    if found.demo_clients is not None:
        names = (found.topics, found.mirrors) if {"topics", "mirrors"} <= found.complete_lists else None
        problems += kafka_resources.demo_clients(
            found.demo_clients, found.reference_cluster, found.users_by_name(), names
        )
    if found.fence is not None:
        problems += active.fence(found.fence, found.reference_cluster, found.users_by_name())
    return problems
