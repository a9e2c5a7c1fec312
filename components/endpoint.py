"""The endpoints of mirrors: addresses, authorities and logins of the two clusters that each one connects.

Owns how an endpoint is built from this stack, another stack or an external cluster. Makes no resource but reads Secrets
that exist.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pulumi
from pulumi_kubernetes.core.v1 import Secret

from components.dialects import Login, MirrorClusterSpec
from contract.stack_outputs import LoginOutputs
from settings.mirror_parts import ExternalSource
from settings.users import CERTIFICATE, PASSWORD, PRIVATE_KEY, AnyAuthentication, ExistingSecret, User

Values = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ClusterEndpoint:
    """One cluster as a mirror connects to it. Names are known while the program runs; values are Pulumi secrets.

    `home` is the namespace that holds its Secrets already, None if none does within this stack's reach. `owner` says
    whose cluster it is: two clusters may have the same name. `bootstrap_servers` is its address for what runs in the
    mirror's Kubernetes cluster, `outside_servers` for what runs elsewhere. `stack` and `namespace` say where
    the cluster is declared, None if no stack of this project declares it. `outputs` is the output `cluster` of another
    stack.
    """

    name: str
    owner: str
    home: str | None
    tls: bool
    bootstrap_servers: pulumi.Output[str]
    outside_servers: pulumi.Output[str]
    ca_secret: tuple[str, str] | None
    ca_certificate: pulumi.Output[str | None]
    ca_from_file: bool = False
    login: Login
    credentials: pulumi.Output[Values]
    stack: str | None = None
    namespace: str | None = None
    outputs: pulumi.Output[Mapping[str, Any]] | None = None

    def mirror_cluster(self, alias: str, servers: str) -> MirrorClusterSpec:
        """Return what a dialect writes about this endpoint."""
        return MirrorClusterSpec(
            alias=alias, bootstrap_servers=servers, tls=self.tls, ca_secret=self.ca_secret, login=self.login
        )

    @property
    def secret_names(self) -> list[str]:
        """Secrets to which a mirror refers for this endpoint."""
        return [name for name in (self.login.secret, self.ca_secret[0] if self.ca_secret else "") if name]

    def secrets_for(self, namespace: str) -> dict[str, dict[str, pulumi.Input[str]]]:
        """Return the data of the Secrets that a mirror in the namespace needs and that are not there, by name."""
        data: dict[str, dict[str, pulumi.Input[str]]] = {}
        if self.home != namespace and self.login.secret:
            parts = secret_keys(self.login).items()
            data[self.login.secret] = {key: _part(self.credentials, part) for part, key in parts}
        if self.ca_secret is not None and (self.home != namespace or self.ca_from_file):
            name, key = self.ca_secret
            data.setdefault(name, {})[key] = self.ca_certificate.apply(lambda pem: pem or "")
        return data


def secret_keys(access: Login) -> dict[str, str]:
    """Return the keys of a login's Secret, by what they hold."""
    if access.authentication == "tls":
        return {CERTIFICATE: access.certificate_key, PRIVATE_KEY: access.private_key_key}
    if access.authentication == "none":
        return {}
    return {PASSWORD: access.password_key}


def _part(values: pulumi.Output[Values], part: str) -> pulumi.Output[str]:
    return values.apply(lambda found: found[part])


def login(user: User, *, managed: bool) -> Login:
    """Return how a user logs in: on a managed cluster by the Secret that the operator writes under the user's name."""
    keys = ExistingSecret(name=user.name) if managed or user.secret is None else user.secret
    return replace(_login(user.authentication, user.login, keys), password_generation=user.password_generation)


def _login(authentication: AnyAuthentication, username: str, keys: ExistingSecret | None) -> Login:
    if keys is None:
        return Login(
            authentication="none", username="", secret="", password_key="", certificate_key="", private_key_key=""
        )
    return Login(
        authentication=authentication,
        username=username,
        secret=keys.name,
        password_key=keys.password_key,
        certificate_key=keys.certificate_key,
        private_key_key=keys.private_key_key,
    )


def external_source(source: ExternalSource, mirror: str, namespace: str, parent: pulumi.Resource) -> ClusterEndpoint:
    """Return the endpoint of an external cluster whose Secrets are in the mirror's namespace."""
    access = _login(source.authentication, source.username or source.name, source.secret)
    authority = source.cluster.certificate_authority
    servers = pulumi.Output.from_input(",".join(source.cluster.bootstrap_servers))
    return ClusterEndpoint(
        name=source.name,
        owner=f"external cluster {source.name}",
        home=namespace,
        tls=source.cluster.tls,
        bootstrap_servers=servers,
        outside_servers=servers,
        ca_secret=source.ca_secret,
        ca_certificate=certificate(
            f"{mirror}-source-authority", source.ca_secret, authority.file if authority else None, namespace, parent
        ),
        ca_from_file=authority is not None and authority.file is not None,
        login=access,
        credentials=existing_credentials(f"{mirror}-source-login", access, namespace, parent),
    )


def existing_credentials(
    name: str, access: Login, namespace: str, parent: pulumi.Resource, made_by: pulumi.CustomResource | None = None
) -> pulumi.Output[Values]:
    """Return the values of a login's Secret; unknown until `made_by`, whose operator writes it, exists."""
    if access.authentication == "none":
        nothing: pulumi.Output[Values] = pulumi.Output.from_input({})
        return nothing
    data = read_secret(name, access.secret, namespace, parent, made_by)
    keys = secret_keys(access).items()
    return data.apply(lambda found: {part: _value(found, key, access.secret, namespace) for part, key in keys})


def certificate(
    name: str, secret: tuple[str, str] | None, file: str | None, namespace: str, parent: pulumi.Resource
) -> pulumi.Output[str | None]:
    """Return an authority's PEM text from a file or a Secret; None if there is none to trust specially."""
    if secret is None:
        return pulumi.Output.from_input(None)
    if file is not None:
        return pulumi.Output.secret(_file(file))
    return secret_value(name, secret[0], secret[1], namespace, parent)


def secret_value(name: str, secret: str, key: str, namespace: str, parent: pulumi.Resource) -> pulumi.Output[str]:
    """Return what an existing Secret holds under a key, as a secret."""
    data = read_secret(name, secret, namespace, parent, None)
    return data.apply(lambda found: _value(found, key, secret, namespace))


def read_secret(
    name: str, secret: str, namespace: str, parent: pulumi.Resource, made_by: pulumi.CustomResource | None
) -> pulumi.Output[dict[str, str]]:
    """Return the data of an existing Secret as Kubernetes holds it, in base64, as a secret."""
    place = f"{namespace}/{secret}"
    # An id that depends on the resource whose operator writes the Secret keeps a first preview from looking for it.
    found_by = made_by.id.apply(lambda _: place) if made_by is not None else place
    # `kubectl apply` repeats the values in an annotation, so the metadata is as secret as the data.
    opts = pulumi.ResourceOptions(parent=parent, additional_secret_outputs=["data", "stringData", "metadata"])
    found = Secret.get(name, found_by, opts=opts)
    return pulumi.Output.secret(found.data.apply(lambda data: dict(data or {})))


def _value(found: Mapping[str, str], key: str, secret: str, namespace: str) -> str:
    if not found.get(key):
        raise pulumi.RunError(
            f"Secret {secret}: must have the key {key} (got {', '.join(sorted(found)) or 'none'} in {namespace}). "
            "Add it, or name the key in the settings."
        )
    # Only this key: others, such as the operator's user.p12, hold no text.
    return base64.b64decode(found[key]).decode()


def _file(path: str) -> str:
    try:
        text = beside_the_stack_file(path).read_text(encoding="utf-8")
    except OSError as error:
        raise pulumi.RunError(
            f"certificateAuthority: file must be readable (got {path}: {error.strerror}). Correct the path."
        ) from None
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise pulumi.RunError(f"certificateAuthority: file must hold a PEM certificate (got {path}). Name another.")
    return text


def beside_the_stack_file(path: str) -> Path:
    """Return a path of the settings: a relative one begins where the stack file lies, not where the program does."""
    return Path(pulumi.get_root_directory() or "") / path


def login_outputs(access: Login, *, application: bool, exported: bool) -> dict[str, Any]:
    """Return what other stacks and people need to find a user's Secret; nothing secret is in it.

    `application` says whether applications log in as this user, and no mirror does; `exported`, whether its
    credentials are outputs of the stack.
    """
    outputs = LoginOutputs(
        secret_name=access.secret,
        key=access.password_key,
        authentication=access.authentication,
        username=access.username,
        certificate_key=access.certificate_key,
        private_key_key=access.private_key_key,
        application=application,
    )
    if not exported:
        outputs = outputs.model_copy(update={"exported": False})
    if access.password_generation > 1:
        outputs = outputs.model_copy(update={"password_generation": access.password_generation})
    return outputs.document()
