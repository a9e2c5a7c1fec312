"""The stack: reads its settings, builds the components, exports what people and other stacks need to know."""

from typing import Any

import pulumi

import components as parts
from settings import SettingsError, Stack, parse


def read_settings() -> Stack:
    """Return the stack's settings; raises RunError with every problem before anything is created."""
    config = pulumi.Config()

    def value(key: str) -> Any:
        try:
            return config.get_object(key)
        except pulumi.ConfigTypeError:
            return config.get(key)

    prefix = f"{config.name}:"
    given = [key.removeprefix(prefix) for key in pulumi.runtime.config.CONFIG.get() if key.startswith(prefix)]
    try:
        return parse({key: value(key) for key in given}, pulumi.get_stack())
    except SettingsError as error:
        raise pulumi.RunError(f"{len(error.problems)} problems in the stack file, nothing was done:\n{error}") from None


def after(*others: pulumi.Resource) -> pulumi.ResourceOptions:
    """Return options of a component that needs others to be ready."""
    return pulumi.ResourceOptions(depends_on=list(others))


settings = read_settings()
sources = {mirror.name: parts.source_cluster(mirror) for mirror in settings.mirrors}
on, cluster, mirrors, verifications = settings.platform, settings.cluster, {}, {}
namespaces = parts.Namespaces("namespaces", parts.NamespacesArgs(names=(cluster.namespace,), protect=cluster.protect))
subscribed = parts.OperatorSubscriptionArgs(operator=settings.operator, namespace=cluster.namespace)
operator = parts.OperatorSubscription("operator", subscribed, after(namespaces))
kafka = parts.KafkaCluster("cluster", parts.KafkaClusterArgs(platform=on, cluster=cluster), after(namespaces, operator))
user_args = parts.KafkaUsersArgs(platform=on, cluster=cluster, users=settings.users)
users = parts.KafkaUsers("users", user_args, after(kafka))
topic_args = parts.KafkaTopicsArgs(platform=on, cluster=cluster, topics=settings.topics)
topics = parts.KafkaTopics("topics", topic_args, after(kafka))
for mirror in settings.mirrors:
    ends = parts.Ends(source=sources[mirror.name], target=kafka, target_password=users.passwords[mirror.target.user])
    made = parts.MirrorMaker2Args(platform=on, cluster=cluster, mirror=mirror, ends=ends)
    mirrors[mirror.name] = parts.MirrorMaker2(mirror.name, made, after(users, topics))
    proof = parts.VerificationArgs(settings=settings, mirror=mirror, ends=ends, deployed=mirrors[mirror.name])
    verifications[mirror.name] = parts.Verification(f"{mirror.name}-verification", proof, after(mirrors[mirror.name]))

pulumi.export("cluster", kafka.connection)
pulumi.export("clusterCaCertificate", kafka.ca_certificate)
pulumi.export("users", users.secrets)
pulumi.export("userPasswords", pulumi.Output.secret(users.passwords))
pulumi.export("topics", topics.names)
pulumi.export("mirrors", {name: mirror.facts for name, mirror in mirrors.items()})
pulumi.export("verificationRequests", {name: run.request for name, run in verifications.items()})
pulumi.export("verificationEnvironment", {name: run.environment for name, run in verifications.items()})
pulumi.export("verifications", {name: run.outcome for name, run in verifications.items()})
