"""The break-glass copy of a mirror: what a failover needs when Pulumi's state is out of reach.

`components` writes it into a Secret beside the mirror with every `up`, `ops` reads and updates it. No credential is in
it: each is a reference to the Secret that holds it. Certificates of authorities, which are public, are keys of the same
Secret: their text must be the one that Pulumi knows.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import ValidationError

from contract.stack_outputs import ClusterOutputs, Outputs, OutputsError

KEY = "outputs.json"
AUTHORITY_KEYS = {"source": "source.ca.crt", "target": "target.ca.crt"}
_ENVIRONMENT = "verificationEnvironment"


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
        mirrors = self.outputs["mirrors"]
        secret = {"clientsSecret": self.clients.name} if active == "target" and self.clients else {}
        changed = {**mirrors, mirror: {**mirrors[mirror], "state": state, "active": active, **secret}}
        return self.model_copy(update={"outputs": {**self.outputs, "mirrors": changed}})
