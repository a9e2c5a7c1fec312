"""Models of what a stack exports: `components` writes them, `ops` and other stacks read them.

A reader accepts the outputs of an older or newer release: it ignores unknown keys, and a key that is missing has a
default or is reported with the remedy.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Self

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
    """How a user logs in, and the Secret that has its credentials; nothing secret is in it."""

    secret_name: str
    key: str
    authentication: str
    username: str
    certificate_key: str
    private_key_key: str


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


class MirrorOutputs(MirrorIdentity):
    """How a mirror is declared. `active` is None for the reverse direction of another mirror."""

    state: str = "running"
    active: str | None = "source"
    clients_secret: str | None = None
    failback: str | None = None
    workers_set_by: str | None = None
    rest_state: str = "stopped"
    alters_offsets: bool | None = None
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
