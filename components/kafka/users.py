"""Kafka users: their credentials, and on a managed cluster the KafkaUser that the operator reads.

Owns generated passwords, which are Pulumi secrets from birth. Does not own Secrets that the operator writes or that
existed before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_random import RandomPassword

from components import endpoint
from components.custom_resource import READY, CustomResource, Wait
from components.dialects import Login, Manifest, Spec, dialect, read_again
from components.dialects import user as user_spec
from components.kubernetes_objects import OwnedSecret
from settings import fence
from settings.client_properties import PASSWORD
from settings.stack import Stack
from settings.users import PASSWORD_KEY, User


@dataclass(frozen=True, kw_only=True)
class KafkaUsersArgs:
    """The settings with the users and the cluster that they belong to.

    `shared_logins` are the clusters of other stacks, by user, whose password for that user is set here too.
    """

    settings: Stack
    shared_logins: Mapping[str, endpoint.ClusterEndpoint] = field(default_factory=dict)


class KafkaUsers(pulumi.ComponentResource):
    """Users that can log in."""

    logins: dict[str, Login]
    """How each user logs in, and the Secret that clients mount."""
    credentials: dict[str, pulumi.Output[endpoint.Values]]
    """Password, or certificate and private key, of each user; secrets."""
    facts: dict[str, dict[str, Any]]
    """What others need to find each user's Secret."""

    def __init__(self, name: str, args: KafkaUsersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create each user and wait until the cluster knows it; look up what exists already."""
        super().__init__("rt-inventory:kafka:KafkaUsers", name, None, opts)
        managed = args.settings.cluster.external is None
        self._shared = args.shared_logins
        self.logins = {user.name: endpoint.login(user, managed=managed) for user in args.settings.users}
        self.credentials = {user.name: self._credentials(name, args.settings, user) for user in args.settings.users}
        applications = {user.name for user in fence.application_users(args.settings)}
        self.facts = {
            user: endpoint.login_outputs(login, application=user in applications) for user, login in self.logins.items()
        }
        self.register_outputs({"credentials": pulumi.Output.secret(self.credentials)})

    def _credentials(self, name: str, settings: Stack, user: User) -> pulumi.Output[endpoint.Values]:
        namespace, login, read = settings.cluster.namespace, self.logins[user.name], f"{name}-{user.name}-login"
        if settings.cluster.external is not None:
            return endpoint.existing_credentials(read, login, namespace, self)
        if user.authentication == "tls" or user.generated_by == "operator":
            return endpoint.existing_credentials(read, login, namespace, self, self._user(name, settings, user, []))
        if user.secret is not None:
            self._user(name, settings, user, [])
            return endpoint.existing_credentials(read, endpoint.login(user, managed=False), namespace, self)
        password = self._password(name, settings, user)
        secret = OwnedSecret(
            f"{name}-{user.name}-credentials",
            metadata={"name": user.credentials_secret, "namespace": namespace},
            stringData={PASSWORD_KEY: password},
            opts=pulumi.ResourceOptions(parent=self, protect=settings.cluster.protect),
        )
        made = self._user(name, settings, user, [secret])
        # The cluster refuses a new password until the operator has set it: whoever logs in with it comes after that.
        known = pulumi.Output.all(password, made.id).apply(lambda found: {PASSWORD: found[0]})
        return pulumi.Output.secret(known)

    def _password(self, name: str, settings: Stack, user: User) -> pulumi.Output[str]:
        if user.name in self._shared:
            return self._shared[user.name].credentials.apply(lambda found: found[PASSWORD])
        # Without keepers for the first generation, so that passwords made before rotation was known stay as they are.
        generation = user.password_generation
        password = RandomPassword(
            f"{name}-{user.name}-password",
            length=user.password_length,
            special=False,  # safe inside JAAS, properties files and URLs
            keepers={"generation": str(generation)} if generation > 1 else None,
            # A rotation replaces it, so it is not protected; another length takes effect at the next rotation only.
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=["length"]),
        )
        return password.result

    def _user(self, name: str, settings: Stack, user: User, needs: list[pulumi.Resource]) -> CustomResource:
        platform, cluster = settings.platform, settings.cluster
        manifest = Manifest(
            kind="KafkaUser",
            name=user.name,
            labels={dialect(platform).LABEL: cluster.name},
            annotations=user.annotations,
            spec=spec_of(user, settings) | self._read_again(user),
        )
        return CustomResource(
            f"{name}-{user.name}",
            api_version=platform.api,
            manifest=manifest,
            namespace=cluster.namespace,
            wait=Wait(for_=READY, words=f"KafkaUser {user.name}: Ready", seconds=user.ready_seconds),
            opts=pulumi.ResourceOptions(parent=self, depends_on=needs, protect=cluster.protect),
        )

    def _read_again(self, user: User) -> Spec:
        """What makes the operator read a password again that another stack has rotated, or that is shared from now."""
        shared = self._shared.get(user.name)
        return read_again(f"{shared.stack}-{shared.login.password_generation}") if shared is not None else {}


def spec_of(user: User, settings: Stack) -> Spec:
    """Return the spec of a user's KafkaUser: its own rights, then what the fence denies."""
    return user_spec(user, fence.rules_of(user, settings), settings.platform)


def passwords(credentials: Mapping[str, pulumi.Output[endpoint.Values]]) -> dict[str, pulumi.Output[str | None]]:
    """Return the password of each user, None for users with a certificate."""
    return {user: values.apply(lambda found: found.get(PASSWORD)) for user, values in credentials.items()}
