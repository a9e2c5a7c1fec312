"""Who may write topics of a cluster, by its ACLs.

Owns reading them, the judgement as Kafka's StandardAuthorizer makes it (deny comes before allow), and the ACLs that
deny principals to write, which it creates and deletes. Brokers show nobody their `super.users`, who may do everything,
nor `allow.everyone.if.no.acl.found`, which decides where no ACL names a topic: DescribeConfigs hides the values of
settings that Kafka's own definition lacks. ACLs for single hosts count as if they were for all of them where they
allow, and not at all where they deny. Does not own who should be able to write.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.errors import DENIED, ClusterError, code_of, text_of

EVERYBODY = "User:*"
DENIED_OPERATIONS = (AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER)
_WRITES = (AclOperation.WRITE, AclOperation.ALL)
_OPERATORS = re.compile(
    r"User:CN=[^,]+-(kafka|cluster-operator|entity-(topic|user)-operator|cruise-control|kafka-exporter),.*O=io\.strimzi"
)
_EVERY_TOPIC = "*"
_NAMED = 5
_REFUSED = (KafkaError.CLUSTER_AUTHORIZATION_FAILED, *DENIED)


@dataclass(frozen=True, kw_only=True)
class BrokerRights:
    """What a cluster's brokers report of rights.

    `rules` are the ACLs of topics, None if they are not known; `unknown` has the reason. `everybody`: there is no
    authorizer, so nobody is refused anything.
    """

    rules: tuple[AclBinding, ...] | None = ()
    everybody: bool = False
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TopicWriters:
    """Principals that may write, each with why (`a rule for topic items`); `unknown`: why there may be others."""

    principals: Mapping[str, str]
    unknown: tuple[str, ...] = ()

    def without(self, is_left_out: Callable[[str], bool]) -> "TopicWriters":
        """Return the same without some principals."""
        kept = {principal: why for principal, why in self.principals.items() if not is_left_out(principal)}
        return TopicWriters(principals=kept, unknown=self.unknown)


def read_rights(cluster: Cluster) -> BrokerRights:
    """Return the ACLs of topics; what the cluster refuses to show is unknown.

    The user needs Describe on the cluster. Raises ClusterError if the cluster does not answer.
    """
    unknown: list[str] = []
    rules = _rules(cluster, unknown)
    if rules is None and not unknown:
        return BrokerRights(everybody=True)
    return BrokerRights(rules=rules, unknown=tuple(unknown))


def writers(rights: BrokerRights, topics: Iterable[str]) -> TopicWriters:
    """Return who may write at least one of the topics. Super users are not among them: nobody is shown who they are."""
    found: dict[str, str] = {EVERYBODY: "the cluster has no authorizer"} if rights.everybody else {}
    unnamed: list[str] = []
    of_name, of_prefix = _by_name(rights.rules or ())
    for topic in topics if rights.rules is not None and not rights.everybody else ():
        begins = (rule for rule in of_prefix if topic.startswith(str(rule.name)))
        rules = [*of_name.get(topic, ()), *of_name.get(_EVERY_TOPIC, ()), *begins]
        if not rules:
            unnamed.append(topic)
        denied = {rule.principal for rule in rules if _denies(rule)}
        if EVERYBODY in denied:
            continue
        for rule in rules:
            allows = rule.permission_type == AclPermissionType.ALLOW and rule.operation in _WRITES
            if allows and rule.principal not in denied:
                found.setdefault(rule.principal, f"a rule for topic {rule.name}")
    more = f" and {len(unnamed) - _NAMED} more topics" if len(unnamed) > _NAMED else ""
    open_ = f"no rule names {', '.join(unnamed[:_NAMED])}{more}: whether everybody may write then is shown by no broker"
    return TopicWriters(principals=found, unknown=(*rights.unknown, *([open_] if unnamed else [])))


def deny(cluster: Cluster, principals: Iterable[str], topics: Iterable[str]) -> str | None:
    """Deny principals to write topics; return why the cluster refused it as a whole, None if it was done.

    The user needs Alter on the cluster. Raises ClusterError if some of the rules may be there: no answer came, or one
    of them was not accepted.
    """
    topics = tuple(topics)
    rules = [rule for principal in principals for topic in topics for rule in _denials(principal, topic, AclBinding)]
    error = _first_error(cluster.admin.create_acls(rules, request_timeout=CALL_DEADLINE_S)) if rules else None
    if error is not None and code_of(error) not in _REFUSED:
        cluster.refusals.call("deny principals to write", error, None)
    return None if error is None else text_of(error)


def remove_denials(cluster: Cluster, principals: Iterable[str], topics: Iterable[str]) -> str | None:
    """Delete the ACLs of `deny`; return why it could not be done, None if it was done."""
    topics = tuple(topics)
    rules = [rule for one in principals for topic in topics for rule in _denials(one, topic, AclBindingFilter)]
    error = _first_error(cluster.admin.delete_acls(rules, request_timeout=CALL_DEADLINE_S)) if rules else None
    return None if error is None else text_of(error)


def _denials(principal: str, topic: str, made: Any) -> list[Any]:
    of = ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, principal, "*"
    return [made(*of, operation, AclPermissionType.DENY) for operation in DENIED_OPERATIONS]


def _first_error(futures: Mapping[Any, Any]) -> KafkaException | None:
    for future in futures.values():
        try:
            future.result()
        except KafkaException as error:
            return error
    return None


def is_operators(principal: str) -> bool:
    """Whether a principal is a broker, or a part of Strimzi's operator: their certificates are super users' always."""
    return _OPERATORS.match(principal) is not None


def topic_rules(cluster: Cluster, pattern: ResourcePatternType) -> list[AclBinding] | None:
    """Return the ACLs of topics by a kind of pattern; None if the user has no Describe on the cluster.

    Raises KafkaException, and ClusterError if the brokers report no rights (KIP-430).
    """
    anything: Any = None  # the package's types do not know that None matches every name
    every = AclBindingFilter(
        ResourceType.TOPIC, anything, pattern, anything, anything, AclOperation.ANY, AclPermissionType.ANY
    )
    admin = cluster.admin
    # librdkafka takes a refusal of DescribeAcls for an empty answer, so what the user may do is asked first.
    allowed = admin.describe_cluster(include_authorized_operations=True, request_timeout=CALL_DEADLINE_S).result()
    if not cluster.reports_rights:
        raise ClusterError(
            cluster.refusals.message(
                f"it is not known whether user {cluster.side.user} is shown ACLs: brokers before Kafka 2.3 report no "
                "rights",
                "List the ACLs there with kafka-acls.sh.",
            )
        )
    if AclOperation.DESCRIBE not in (allowed.authorized_operations or []):
        return None
    found: list[AclBinding] = admin.describe_acls(every, request_timeout=CALL_DEADLINE_S).result()
    return found


def _rules(cluster: Cluster, unknown: list[str]) -> tuple[AclBinding, ...] | None:
    try:
        found = topic_rules(cluster, ResourcePatternType.ANY)
    except KafkaException as error:
        if code_of(error) == KafkaError.SECURITY_DISABLED:
            return None
        if code_of(error) not in _REFUSED:
            cluster.refusals.call("describe the ACLs", error, None)
        found = None
    except ClusterError as error:
        unknown.append(str(error))
        return None
    if found is None:
        unknown.append(cluster.refusals.denial([("Describe", "cluster")]))
        return None
    return tuple(found)


def _by_name(rules: Iterable[AclBinding]) -> tuple[dict[str, list[AclBinding]], list[AclBinding]]:
    """Return the rules for names, by them, and those for prefixes: a cluster may have thousands of topics and rules."""
    of_name, of_prefix = dict[str, list[AclBinding]](), list[AclBinding]()
    for rule in rules:
        if rule.resource_pattern_type == ResourcePatternType.PREFIXED:
            of_prefix.append(rule)
        else:
            of_name.setdefault(str(rule.name), []).append(rule)
    return of_name, of_prefix


def _denies(rule: AclBinding) -> bool:
    is_denial = rule.permission_type == AclPermissionType.DENY and rule.operation in _WRITES
    return is_denial and rule.host == "*"
