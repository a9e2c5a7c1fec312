"""Models of what a stack exports, and of the break-glass copy of a mirror: written by `components`, read by `ops`.

A reader accepts the outputs of an older or newer release: it ignores unknown keys, and a key that is missing has a
default or is reported with the remedy.

The break-glass copy is what a failover needs when Pulumi's state is out of reach. `components` writes it into a Secret
beside the mirror with every `up`, `ops` reads and updates it. No credential is in it: each is a reference to the Secret
that holds it. Certificates of authorities, which are public, are keys of the same Secret: their text must be the one
that Pulumi knows.
"""

import json
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

SECRET = "[secret]"  # noqa: S105 - what Pulumi shows in place of a secret output
_Shown = BeforeValidator(lambda value: {} if value is None or value == SECRET else value)


class OutputsError(ValueError):
    """The outputs of a stack lack a key, or a value has another type; the message has no value in it."""


class Outputs(BaseModel):
    """A part of the outputs. Python code constructs it by field names, its JSON has camelCase keys."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,
    )

    def document(self) -> dict[str, Any]:
        """Return the JSON that a stack exports: the given fields, in the order of the model."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class SecretKey(Outputs):
    """A key of a Kubernetes Secret in the namespace of the cluster."""

    name: str
    key: str


class ClusterOutputs(Outputs):
    """How clients reach the cluster of a stack, and where its custom resource is."""

    name: str | None = None
    namespace: str | None = None
    context: str | None = None
    bootstrap_servers: str | None = None
    internal_bootstrap_servers: str | None = None
    security_protocol: str | None = None
    sasl_mechanism: str | None = None
    ca_secret: SecretKey | None = None


class LoginOutputs(Outputs):
    """How a user logs in, and the Secret that has its credentials; nothing secret is in it.

    `application` says whether applications log in as this user, and no mirror does. Older releases do not say it.
    `exported` is false for a user whose credentials are no output of the stack. Older releases export all.
    `password_generation` is that of a generated password, if it was rotated.
    """

    secret_name: str
    key: str
    authentication: str
    username: str
    certificate_key: str
    private_key_key: str
    application: bool | None = None
    exported: bool | None = None
    password_generation: int | None = None


class MirrorIdentity(Outputs):
    """What the source offsets and remote topics of a mirror depend on."""

    source_stack: str | None = None
    source_external: str | None = None
    source_alias: str | None = None
    target_alias: str | None = None
    naming: str | None = None
    separator: str | None = None
    group_id: str | None = None
    offset_storage_topic: str | None = None


class FailedOverOutputs(Outputs):
    """Topics that were failed over by themselves, and the groups that read them; `pending` are still on their way."""

    topics: tuple[str, ...]
    groups: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()


class MirrorOutputs(MirrorIdentity):
    """How a mirror is declared. `active` is None for the reverse direction of another mirror.

    `failed_over` are topics that applications use at the target although the source is active for the others.
    `exactly_once`: records are copied in transactions, whose markers take offsets of the target.
    """

    state: str = "running"
    active: str | None = "source"
    clients_secret: str | None = None
    restart_clients: bool = False
    failback: str | None = None
    failed_over: FailedOverOutputs | None = None
    workers_set_by: str | None = None
    rest_state: str = "stopped"
    alters_offsets: bool | None = None
    exactly_once: bool = False
    namespace: str | None = None
    version: str | None = None
    source_cluster: str | None = None
    target_cluster: str | None = None
    topics: tuple[str, ...] = ()
    topics_exclude: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    connect_url: str | None = None

    @property
    def is_running(self) -> bool:
        """Whether the mirror is declared to copy records."""
        return self.state == "running"


class StackOutputs(Outputs):
    """All outputs of a stack. Secret ones are empty where they were read without their values."""

    cluster: Annotated[ClusterOutputs, _Shown] = ClusterOutputs()
    cluster_ca_certificate: str | None = Field(default=None, repr=False)
    users: Annotated[Mapping[str, Any], _Shown] = {}
    user_passwords: Annotated[Mapping[str, str | None], _Shown] = Field(default={}, repr=False)
    user_credentials: Annotated[Mapping[str, Annotated[Mapping[str, str | None], _Shown]], _Shown] = Field(
        default={}, repr=False
    )
    topics: Annotated[tuple[str, ...], BeforeValidator(lambda value: value or ())] = ()
    mirrors: Annotated[Mapping[str, MirrorOutputs], _Shown] = {}
    verification_requests: Annotated[Mapping[str, Mapping[str, Any]], _Shown] = {}
    verification_environment: Annotated[Mapping[str, Annotated[Mapping[str, str], _Shown]], _Shown] = Field(
        default={}, repr=False
    )
    verifications: Annotated[Mapping[str, Mapping[str, Any] | None], _Shown] = {}
    monitoring: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, stack: str, outputs: Mapping[str, Any], *needed: str) -> Self:
        """Return the outputs of a stack.

        Args:
            stack: its name, for the message.
            outputs: what Pulumi reports, by its keys.
            needed: keys that must exist.

        Raises:
            OutputsError: if a needed key is missing or a value has another type; the message has the remedy.
        """
        remedy = f"Run `pulumi up -s {stack}`."
        for key in needed:
            if key not in outputs:
                got = ", ".join(sorted(outputs)) or "none"
                raise OutputsError(f"stack {stack}: output {key} must exist (got {got}). {remedy}")
        try:
            return cls.model_validate(outputs)
        except ValidationError as error:
            wrong = sorted({".".join(map(str, one["loc"])) for one in error.errors(include_input=False)})
            got = f"other types of {', '.join(wrong)}"
            raise OutputsError(f"stack {stack}: outputs must be those of this release (got {got}). {remedy}") from None


def is_of_empty_pair(records_compared: object, unknown: Collection[str]) -> bool:
    """Whether a verification proved nothing of the records, for there was none: what its `unknown` checks were."""
    return not records_compared and "records_complete" in unknown


KEY = "outputs.json"
"""Key of the break-glass copy in its Secret."""
AUTHORITY_KEYS = {"source": "source.ca.crt", "target": "target.ca.crt"}
_ENVIRONMENT, _REQUESTS = "verificationEnvironment", "verificationRequests"


def secret_name(mirror: str) -> str:
    """Return the name of the Secret with the copy of a mirror, which lies in the mirror's namespace."""
    return f"{mirror}-break-glass"


class SecretReference(Outputs):
    """A key of a Secret in the Kubernetes cluster of the target."""

    namespace: str
    secret_name: str
    key: str


class ChangingObject(Outputs):
    """A custom resource of which `up` writes other fields after a failover, by the setting on which they depend.

    `specs` are those fields of its `spec`, whole, by the value of the setting.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    depends_on: Literal["state", "active"]
    specs: Mapping[str, Mapping[str, Any]]


class ClientsAtTarget(Outputs):
    """The Secret that applications read, as it is while the target is active; there may be none before."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    type: str
    authentication: Literal["scram-sha-512", "scram-sha-256", "tls", "plain", "none"]
    username: str
    bootstrap_servers: str
    tls: bool
    credentials: Mapping[str, SecretReference]


class BreakGlassCopy(Outputs):
    """What a failover needs of one mirror.

    `outputs` are those of the stack that declares it, reduced to this mirror, with a `SecretReference` in place of each
    value of `verificationEnvironment`. `source_cluster` is the output `cluster` of the source's stack.
    """

    outputs: Mapping[str, Any]
    source_cluster: ClusterOutputs | None = None
    objects: tuple[ChangingObject, ...] = ()
    clients: ClientsAtTarget | None = None

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the copy of a text that `text` returned; raises OutputsError, whose message has no value in it."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            wrong = sorted({".".join(map(str, one["loc"])) for one in error.errors(include_input=False)})
            raise OutputsError(f"must be one of this release (got other types of {', '.join(wrong)})") from None

    def text(self) -> str:
        """Return it as JSON; equal copies have equal texts."""
        return json.dumps(self.document(), indent=1, sort_keys=True)

    @property
    def references(self) -> Mapping[str, Mapping[str, SecretReference]]:
        """Where the values of `verificationEnvironment` are, by mirror and variable."""
        found: Mapping[str, Mapping[str, Any]] = self.outputs.get(_ENVIRONMENT) or {}
        return {
            mirror: {variable: SecretReference.model_validate(one) for variable, one in variables.items()}
            for mirror, variables in found.items()
        }

    def with_environment(self, values: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
        """Return the outputs with the values of `verificationEnvironment`, as Pulumi returns them."""
        return {**self.outputs, _ENVIRONMENT: values}

    def switched(self, mirror: str, state: str, active: str) -> Self:
        """Return the copy that an `up` with these settings of the mirror would write."""
        mirrors, requests = self.outputs["mirrors"], self.outputs[_REQUESTS]
        asked = requests[mirror]
        if "active" in asked["mirror"]:  # older releases do not say it
            asked = {**asked, "mirror": {**asked["mirror"], "active": active}}
        secret = {"clientsSecret": self.clients.name} if active == "target" and self.clients else {}
        left = {key: value for key, value in mirrors[mirror].items() if active != "target" or key != "failedOver"}
        changed = {**mirrors, mirror: {**left, "state": state, "active": active, **secret}}
        outputs = {**self.outputs, "mirrors": changed, _REQUESTS: {**requests, mirror: asked}}
        return self.model_copy(update={"outputs": outputs})
