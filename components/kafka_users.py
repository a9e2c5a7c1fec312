"""Kafka users: a generated password each, the Secret that holds it, and the KafkaUser that refers to the Secret.

Owns the passwords, which are Pulumi secrets from birth. Does not own the Secret `<user>` that the operator writes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import Secret
from pulumi_random import RandomPassword

from components.custom_resource import READY, CustomResource, Wait
from components.dialects import strimzi_v1
from settings.cluster import Cluster
from settings.platform import Platform
from settings.users import User


@dataclass(frozen=True, kw_only=True)
class KafkaUsersArgs:
    """The users and the cluster that they belong to."""

    platform: Platform
    cluster: Cluster
    users: Sequence[User]


class KafkaUsers(pulumi.ComponentResource):
    """Users that can log in."""

    passwords: dict[str, pulumi.Output[str]]
    """Password of each user; secrets."""
    secrets: dict[str, dict[str, str]]
    """Per user the Secret that the operator writes for clients, and the key of the password in it."""

    def __init__(self, name: str, args: KafkaUsersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create each user and wait until the cluster knows it."""
        super().__init__("rt-inventory:kafka:KafkaUsers", name, None, opts)
        self.passwords = {user.name: self._password(name, args, user) for user in args.users}
        self.secrets = {user.name: {"secretName": user.name, "key": strimzi_v1.PASSWORD_KEY} for user in args.users}
        for user in args.users:
            self._user(name, args, user)
        self.register_outputs({"passwords": pulumi.Output.secret(self.passwords)})

    def _password(self, name: str, args: KafkaUsersArgs, user: User) -> pulumi.Output[str]:
        password = RandomPassword(
            f"{name}-{user.name}-password",
            length=user.password_length,
            special=False,  # safe inside JAAS, properties files and URLs
            opts=pulumi.ResourceOptions(parent=self, protect=args.cluster.protect),
        )
        return password.result

    def _user(self, name: str, args: KafkaUsersArgs, user: User) -> None:
        namespace = args.cluster.namespace
        secret = Secret(
            f"{name}-{user.name}-credentials",
            metadata={"name": user.credentials_secret, "namespace": namespace},
            string_data={strimzi_v1.PASSWORD_KEY: self.passwords[user.name]},
            opts=pulumi.ResourceOptions(parent=self),
        )
        CustomResource(
            f"{name}-{user.name}",
            api_version=args.platform.api_version,
            kind="KafkaUser",
            metadata={
                "name": user.name,
                "namespace": namespace,
                "labels": {strimzi_v1.CLUSTER_LABEL: args.cluster.name},
            },
            spec=strimzi_v1.user(user),
            wait=Wait(for_=READY, words=f"KafkaUser {user.name}: Ready", seconds=user.ready_seconds),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[secret], protect=args.cluster.protect),
        )
