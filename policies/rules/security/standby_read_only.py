"""The stack: nobody but the mirror may write the topics that a running mirror brings to a cluster of the stack.

That cluster is a standby. What an application writes there the mirror never sees, and a failover takes for a record
that was lost or doubled. A mirror at rest brings nothing: its target is the active side. Whether a name is mirrored
is tried with the stack's topics, with names that the mirror's pattern and the user's rights spell out or begin with.
Rights by hand and superusers are not seen here: the verification's check of the same name asks the cluster.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pulumi_policy import EnforcementLevel, Severity

from policies.support.clusters import belongs
from policies.support.connections import hosts, leads_to, principal_of_login, principal_of_user, secret_of_login
from policies.support.java_patterns import samples
from policies.support.mirror_makers import ReplicationFlow, declared_topics, is_running, topic_flows
from policies.support.policy_builder import Config, Finding, Resource, stack_policy
from policies.support.resources import (
    CLUSTER,
    MIRROR,
    TOPIC,
    USER,
    Props,
    each,
    mapping,
    name,
    namespace,
    sequence,
    within,
)

_WRITES = ("Write", "All")
_ENDINGS = ("", "x")
# The group of a mirror that carries over what was left on a source while its target is active: it has none.
_NO_GROUP = "nothing/yet"


@dataclass(frozen=True)
class _Right:
    """A rule of a KafkaUser about writing topics."""

    allows: bool
    name: str
    is_prefix: bool

    def __str__(self) -> str:
        return f"{'prefix' if self.is_prefix else 'topic'} {self.name or 'with an empty prefix'}"

    def is_for(self, topic: str) -> bool:
        """Whether it is about a topic."""
        return topic.startswith(self.name) if self.is_prefix else self.name in ("*", topic)


def violations(resources: Sequence[Resource], _config: Config) -> Iterator[Finding]:
    """A finding for each user that may write a topic which a running mirror brings to the user's cluster."""
    clusters = [one for one in resources if one.type_ in CLUSTER]
    users = [one for one in resources if one.type_ in USER]
    topics = declared_topics(resources)
    running = [(mirror, flow) for mirror, flow in topic_flows(resources) if _runs(mirror, flow)]

    def check(user: Resource) -> Iterator[Finding]:
        cluster = next((one for one in clusters if belongs(user.props, one.props)), None)
        if cluster is None or any(_is_login(user, mirror, flow) for mirror, flow in running):
            return
        rights = [*_rights(user.props)]
        for mirror, flow in running:
            if not _is_target(cluster, mirror, flow):
                continue
            found = _writable(flow, rights, topics)
            if found is not None:
                topic, right = found
                yield Finding(
                    f"user {name(user.props)}: authorization.acls must not allow Write on {topic} while mirror "
                    f"{name(mirror.props)} brings it (got it by {right}). The mirror never sees what an application "
                    "writes on a standby: deny it until a failover.",
                    user,
                )
                return

    return each(users, check)


def _runs(mirror: Resource, flow: ReplicationFlow) -> bool:
    def runs(one: ReplicationFlow) -> list[bool]:
        return [is_running(mirror.props, one) and one.naming is not None and one.groups.include != _NO_GROUP]

    return any(each([flow], runs))


def _is_target(cluster: Resource, mirror: Resource, flow: ReplicationFlow) -> bool:
    reached = hosts(flow.target.get("bootstrapServers"))
    return any(leads_to(host, namespace(mirror.props), cluster.type_, cluster.props) for host in reached)


def _is_login(user: Resource, mirror: Resource, flow: ReplicationFlow) -> bool:
    """Whether the mirror logs in at its target as the user: by the user's name, or by the Secret of its certificate."""
    login = mapping(flow.target)
    if secret_of_login(login) == name(user.props) and namespace(user.props) == namespace(mirror.props):
        return True
    return principal_of_login(login) == principal_of_user(user.props)


def _rights(props: Props) -> Iterator[_Right]:
    """The user's rules about writing topics."""
    for acl in sequence(within(props, "spec", "authorization", "acls")):
        operations = [*sequence(within(acl, "operations")), within(acl, "operation")]
        resource = mapping(within(acl, "resource"))
        if resource.get("type") == "topic" and any(operation in _WRITES for operation in operations):
            yield _Right(
                allows=within(acl, "type") in (None, "allow"),
                name=str(resource.get("name") or ""),
                is_prefix=resource.get("patternType") == "prefix",
            )


def _writable(flow: ReplicationFlow, rights: Sequence[_Right], topics: Sequence[str]) -> tuple[str, _Right] | None:
    """A remote topic of the mirror that the rights let their user write, and the right; None if none was found."""
    prefix, selection = flow.naming or "", flow.topics
    spelled = [right.name + end for right in rights for end in _ENDINGS if right.name not in ("", "*")]
    candidates = [
        *(topic.removeprefix(prefix) for topic in [*topics, *spelled] if topic.startswith(prefix)),
        *samples([selection.include]),
    ]
    for topic in dict.fromkeys(filter(None, candidates)):
        remote = prefix + topic
        about = [right for right in rights if right.is_for(remote)]
        if selection.selects(topic) and about and all(right.allows for right in about):
            return remote, about[0]
    return None


POLICY = stack_policy(
    name="standby-read-only",
    description="Nobody but the mirror may write the topics that a running mirror brings to a cluster of the stack.",
    types=MIRROR | CLUSTER | USER | TOPIC,
    violations=violations,
    severity=Severity.HIGH,
    enforcement_level=EnforcementLevel.ADVISORY,
    remediation_steps="Deny the user Write, Delete and Alter on the topics, or give it the rights at a failover only.",
)
