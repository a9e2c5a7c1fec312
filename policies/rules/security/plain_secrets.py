"""No password, token or private key is in plain text where a reference to a Secret belongs.

Whoever may read the resource, its history or the state of Pulumi can read the value. Kafka's resources refer to
Secrets, workloads read them as variables or files, and configuration of Kafka has placeholders: `${secrets:...}`.
"""

import base64
from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.policy_builder import Config, matches, resource_policy, unreadable
from policies.support.resources import (
    ANY_KAFKA,
    CONFIG_MAP,
    SUBSCRIPTION,
    WORKLOADS,
    Props,
    Text,
    items,
    kind_of,
    name,
    texts,
)
from policies.support.secret_values import holds_secret, is_literal, secrets_within


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each place. It names the place, never the value."""
    subject = f"{kind_of(type_)} {name(props)}"
    yield from unreadable(subject, config, "ignoredKeys")
    for text in _texts(type_, props):
        if matches(config, "ignoredKeys", text.key):
            continue
        for place in _places(text, config):
            yield (
                f"{subject}: {place} must refer to a secret (got a value in plain text). "
                "Whoever may read the resource can read it. Move it into a Secret, and change it."
            )


def _texts(type_: str, props: Props) -> Iterator[Text]:
    if type_ not in CONFIG_MAP:
        yield from texts(props.get("spec"), "spec")
        return
    yield from texts(props.get("data"), "data")
    for key, value in items(props.get("binaryData")):
        try:
            yield Text(f"binaryData[{key}]", key, "", base64.b64decode(str(value)).decode())
        except ValueError:
            continue


def _places(text: Text, config: Config) -> Iterator[str]:
    # `passwordSecret.password` is the key within the Secret.
    if text.above != "passwordSecret" and holds_secret(text.key) and is_literal(text.key, text.value):
        yield text.place
        return
    for line, what in secrets_within(text.value, text.key):
        if not matches(config, "ignoredKeys", what):
            yield f"{text.place} line {line}, {what}," if "\n" in text.value.strip() else f"{text.place}, {what},"


POLICY = resource_policy(
    name="plain-secrets",
    description="No password, token or private key stands in plain text in Kafka resources, ConfigMaps and workloads.",
    types=ANY_KAFKA | CONFIG_MAP | WORKLOADS | SUBSCRIPTION,
    violations=violations,
    options={
        "ignoredKeys": {
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "keys that have no secret in spite of their name (regular expressions of the whole key)",
        }
    },
    severity=Severity.CRITICAL,
    remediation_steps="Put the value into a Secret and refer to it, by `valueFrom.secretKeyRef`, a field of the "
    "resource that names a Secret, or a placeholder of a config provider. Replace the secret that was in the open.",
)
