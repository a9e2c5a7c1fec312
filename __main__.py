"""The stack: reads its settings, builds the components, exports what people and other stacks need to know."""

from pathlib import Path
from typing import Any

import pulumi

import components as parts
from components import after
from settings import NAMESPACE, SettingsError, Stack, beside, hints, parse


def read_settings() -> Stack:
    """Return the stack's settings; raises RunError with every problem before anything is created."""
    config = pulumi.Config(NAMESPACE)

    def value(key: str) -> Any:
        try:
            return config.get_object(key)
        except pulumi.ConfigTypeError:
            return config.get(key)

    prefix = f"{NAMESPACE}:"
    given = [key.removeprefix(prefix) for key in pulumi.runtime.config.CONFIG.get() if key.startswith(prefix)]
    values, stack = {key: value(key) for key in given}, pulumi.get_stack()
    others = beside(Path(pulumi.get_root_directory()), stack)
    try:
        found = parse(values, stack, others)
    except SettingsError as error:
        raise pulumi.RunError(f"{len(error.problems)} problems in the stack file, nothing was done:\n{error}") from None
    for hint in hints(values, stack, others):
        pulumi.log.warn(str(hint))
    return found


settings = read_settings()
sources = parts.sources(settings)
parts.refuse_accidents(settings.mirrors)
namespaces = parts.Namespaces("namespaces", parts.NamespacesArgs(settings=settings))
operator = parts.install_operator(settings, after(namespaces))
kafka = parts.KafkaCluster("cluster", parts.KafkaClusterArgs(settings=settings), after(namespaces, operator))
users = parts.KafkaUsers("users", parts.KafkaUsersArgs(settings=settings), after(kafka))
topics = parts.KafkaTopics("topics", parts.KafkaTopicsArgs(settings=settings, topics=settings.topics), after(kafka))
own = parts.KafkaTopicsArgs(settings=settings, topics=parts.internal_topics(settings))
internal = parts.KafkaTopics("internal-topics", own, after(kafka))
flows = parts.flows(settings, sources, kafka, users)
secrets = parts.CopiedSecrets("secrets", parts.CopiedSecretsArgs(settings=settings, flows=flows), after(namespaces))
mirrors, verifications = {}, {}
for flow in flows:
    name, args = flow.mirror.name, parts.MirrorMaker2Args(settings=settings, flow=flow)
    mirrors[name] = parts.MirrorMaker2(name, args, after(users, topics, internal, secrets))
    parts.write_clients(flow, after(mirrors[name]))
    proof = parts.VerificationArgs(settings=settings, flow=flow, deployed=mirrors[name])
    verifications[name] = parts.Verification(f"{name}-verification", proof, after(mirrors[name]))
watching = parts.watch(settings, after(operator, kafka, *mirrors.values()))
parts.install_demo_clients(settings, kafka, after(users, topics, *mirrors.values()))
for key, output in parts.outputs(kafka, users, topics, mirrors, verifications, watching).items():
    pulumi.export(key, output)
