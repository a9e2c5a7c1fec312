"""The stack: reads its settings, builds the components, exports what people and other stacks need to know."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pulumi

from components.custom_resource import explain_waits
from components.guards import guard_against_deletion, refuse_unsafe_changes
from components.kafka.break_glass import BreakGlassArgs, active_sides, write_break_glass, write_clients
from components.kafka.cluster import (
    KafkaCluster,
    KafkaClusterArgs,
    KafkaTopics,
    KafkaTopicsArgs,
    KafkaUsers,
    KafkaUsersArgs,
    internal_topics,
    passwords,
)
from components.kafka.demo_clients import install_demo_clients
from components.kafka.follower import FollowerArgs, install_follower
from components.kafka.mirror_maker_2 import MirrorMaker2, MirrorMaker2Args
from components.kubernetes_objects import KubernetesAccess, Namespaces, NamespacesArgs, guard_secrets
from components.monitoring import install_monitoring
from components.operator import install_operator
from components.replication_flow import CopiedSecrets, CopiedSecretsArgs, flows, shared_logins, sources
from components.verification.verification import Verification, VerificationArgs
from settings import NAMESPACE, SettingsError, Stack, beside, exported_users, hints, kubernetes_clusters, parse


def after(*others: pulumi.Resource) -> pulumi.ResourceOptions:
    """Return options of a component that needs others to be ready."""
    return pulumi.ResourceOptions(depends_on=list(others))


def read_settings() -> tuple[Stack, frozenset[str]]:
    """Return the stack's settings, and the users whose credentials it exports.

    Raises RunError with every problem before anything is created.
    """
    config = pulumi.Config(NAMESPACE)

    def value(key: str) -> Any:
        try:
            return config.get_object(key)
        except pulumi.ConfigTypeError:
            return config.get(key)

    prefix = f"{NAMESPACE}:"
    given = [key.removeprefix(prefix) for key in pulumi.runtime.config.CONFIG.get() if key.startswith(prefix)]
    values, stack = {key: value(key) for key in given}, pulumi.get_stack()
    folder = Path(pulumi.get_root_directory())
    others = beside(folder, stack)
    try:
        found = parse(values, stack, others, contexts=kubernetes_clusters(folder, os.environ))
    except SettingsError as error:
        raise pulumi.RunError(f"{len(error.problems)} problems in the stack file, nothing was done:\n{error}") from None
    for hint in hints(values, stack, others):
        pulumi.log.warn(str(hint))
    return found, exported_users(found, stack, others)


settings, exported = read_settings()
provider = pulumi.Config("kubernetes")
context = provider.get("context")  # where this stack's resources are
access = KubernetesAccess(context=context, kubeconfig=provider.get("kubeconfig"))
explain_waits(access)
guard_secrets(access)
stack_references = sources(settings)
refuse_unsafe_changes(settings.mirrors, partial(active_sides, settings, access))
namespaces = Namespaces("namespaces", NamespacesArgs(settings=settings))
operator = install_operator(settings, after(namespaces))
kafka = KafkaCluster("cluster", KafkaClusterArgs(settings=settings, context=context), after(namespaces, operator))
shared = shared_logins(settings, stack_references)
logins = KafkaUsersArgs(settings=settings, exported=exported, shared_logins=shared)
users = KafkaUsers("users", logins, after(kafka))
topics = KafkaTopics("topics", KafkaTopicsArgs(settings=settings, topics=settings.topics), after(kafka))
own = KafkaTopicsArgs(settings=settings, topics=internal_topics(settings))
internal = KafkaTopics("internal-topics", own, after(kafka))
replication_flows = flows(settings, stack_references, kafka, users)
secrets = CopiedSecrets("secrets", CopiedSecretsArgs(settings=settings, flows=replication_flows), after(namespaces))
mirrors, verifications = {}, {}
beside_mirrors: list[pulumi.Resource | None] = []
for flow in replication_flows:
    name, args = flow.mirror.name, MirrorMaker2Args(settings=settings, flow=flow)
    mirrors[name] = MirrorMaker2(name, args, after(users, topics, internal, secrets))
    beside_mirrors.append(clients := write_clients(flow, after(mirrors[name])))
    proof = VerificationArgs(settings=settings, flow=flow, deployed=mirrors[name], context=context)
    verifications[name] = Verification(f"{name}-verification", proof, after(mirrors[name]))
    copied = BreakGlassArgs(
        settings=settings,
        flow=flow,
        cluster=kafka.connection,
        mirror_output=mirrors[name].stack_output,
        request=verifications[name].request,
    )
    followed = FollowerArgs(of=proof, environment=verifications[name].environment)
    beside_mirrors.append(install_follower(followed, after(mirrors[name])))
    beside_mirrors.append(write_break_glass(copied, after(mirrors[name], *([clients] if clients else []))))
monitoring = install_monitoring(settings, after(operator, kafka, *mirrors.values()))
demo = install_demo_clients(settings, kafka, users, after(users, topics, *mirrors.values()))
in_clusters = [namespaces, operator, kafka, users, topics, internal, secrets, *mirrors.values(), *beside_mirrors]
guard_against_deletion([*in_clusters, *verifications.values(), monitoring, demo], protect=settings.cluster.protect)
outputs: dict[str, pulumi.Input[Any]] = {
    "cluster": kafka.connection,
    "clusterCaCertificate": kafka.ca_certificate,
    "users": users.stack_output,
    "userPasswords": pulumi.Output.secret(passwords(users.exported_credentials)),
    "userCredentials": pulumi.Output.secret(users.exported_credentials),
    "topics": topics.names,
    "mirrors": {name: mirror.stack_output for name, mirror in mirrors.items()},
    "verificationRequests": {name: run.request for name, run in verifications.items()},
    "verificationEnvironment": {name: run.environment for name, run in verifications.items()},
    "verifications": {name: run.outcome for name, run in verifications.items()},
    "monitoring": monitoring.stack_output if monitoring else None,
}
for key, output in outputs.items():
    pulumi.export(key, output)
