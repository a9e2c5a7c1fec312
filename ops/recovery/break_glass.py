"""A failover's changes, made directly by the copy beside the mirror, and all that it needs where Pulumi is lost.

Pulumi's bucket or key may be lost with the source's region; where they are not, Pulumi takes the changes over at the
end. Owns how the copy is found and read, and `DirectChanges`, which writes what `pulumi up` would write for a mirror's
`state` and `active`. Does not own the copy's format (`contract/stack_outputs.py`) nor what it contains, which the
program renders.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from kubernetes import client

from contract.stack_outputs import (
    AUTHORITY_KEYS,
    KEY,
    BreakGlassCopy,
    ChangingObject,
    ClientsAtTarget,
    OutputsError,
    SecretReference,
    secret_name,
)
from contract.verification_request import Resource
from ops import verify
from ops.connection import PROJECT
from ops.errors import OpsError
from ops.pulumi import stack_file
from ops.pulumi.process import UnreachableError, in_folder
from ops.recovery import kubernetes_access, mirror_context
from ops.recovery.kubernetes_access import kubernetes, wait_until_ready
from ops.recovery.mirror_context import MirrorContext
from settings import SettingsError
from settings.files import contexts
from settings.files import load as load_settings
from settings.users import ACTIVE_LABEL, secret_values

DEPLOYMENT = "Deployment"
UNSEEN = "--break-glass: without Pulumi no preview can be made; nothing but the failover's own changes is carried out"
BreakGlass = Annotated[
    bool, typer.Option("--break-glass", help="Pulumi's state is lost: use the copy beside the mirror, see the runbook.")
]
Log = Callable[[str], None]


def reconcile_command(stack: str, folder: Path = PROJECT) -> str:
    """Return the command with which Pulumi takes over what was changed without it, in the folder of its project."""
    return f"pulumi up --refresh -s {stack}{in_folder(folder)}"


@dataclass(frozen=True, kw_only=True)
class BreakGlassSecret:
    """The Secret with the copy of a mirror, by a context of the kubeconfig."""

    namespace: str
    mirror: str
    context: str | None
    environment: Mapping[str, str] = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the Secret."""
        return secret_name(self.mirror)

    def read(self, api: client.ApiClient) -> tuple[BreakGlassCopy, kubernetes_access.Object]:
        """Return the copy and the Secret; raises OpsError if there is none, or none of this release."""
        found = kubernetes_access.secret(api, self.namespace, self.name)
        remedy = "An `up` of the mirror's stack writes it, which needs Pulumi's state."
        if found is None:
            raise OpsError(f"Secret {self.namespace}/{self.name}: must exist for --break-glass (got none). {remedy}")
        try:
            return BreakGlassCopy.read(_decoded((found.get("data") or {}).get(KEY, ""))), found
        except OutputsError as error:
            raise OpsError(f"Secret {self.namespace}/{self.name}: {KEY} {error}. {remedy}") from None

    def outputs(self) -> dict[str, Any]:
        """Return the stack's outputs of this mirror with the values of credentials, as Pulumi returns them."""
        with kubernetes(self.environment, self.context) as api:
            copy, _ = self.read(api)
            secrets = _Secrets(api)
            return copy.with_environment(
                {
                    mirror: {variable: secrets.value(reference) for variable, reference in variables.items()}
                    for mirror, variables in copy.references.items()
                }
            )


@dataclass(frozen=True)
class _Secrets:
    """Values of Secrets; each Secret is read once."""

    api: client.ApiClient
    known: dict[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)

    def value(self, of: SecretReference) -> str:
        """Return the value of a key; raises OpsError, which names it, if it is not there."""
        place = of.namespace, of.secret_name
        if place not in self.known:
            self.known[place] = (kubernetes_access.secret(self.api, *place) or {}).get("data") or {}
        if of.key not in self.known[place]:
            raise OpsError(
                f"Secret {of.namespace}/{of.secret_name}: must have the key {of.key}, to which the break-glass copy "
                "refers (got none). Restore it from a backup of the cluster."
            )
        return _decoded(self.known[place][of.key])


def find(stack: str, mirror: str | None, environment: Mapping[str, str], project: Path = PROJECT) -> BreakGlassSecret:
    """Return the Secret of a mirror of a stack, or of its only one, by the stack file; raises OpsError."""
    label = verify.label_of(stack)
    try:
        settings = load_settings(project / f"Pulumi.{label}.yaml")
    except SettingsError as error:
        raise OpsError(f"stack {stack}: --break-glass needs its stack file. {error}") from None
    homes = {each.name: each.home(settings.cluster.namespace) for each in settings.mirrors}
    name = next(iter(homes)) if mirror is None and len(homes) == 1 else mirror
    if name not in homes:
        raise OpsError(
            f"stack {stack}: --mirror must be one of the stack file's (got {mirror or 'none'}, allowed "
            f"{', '.join(sorted(homes)) or 'none'})."
        )
    return BreakGlassSecret(
        namespace=homes[name], mirror=name, context=contexts(project).get(label), environment=environment
    )


def load(stack: str, mirror: str | None, environment: Mapping[str, str], project: Path = PROJECT) -> MirrorContext:
    """Return a mirror by its break-glass copy, in place of `mirror_context.load`; Pulumi is not asked."""
    place = find(stack, mirror, environment, project)
    with kubernetes(environment, place.context) as api:
        copy, _ = place.read(api)
    known = mirror_context.of_outputs(stack, place.outputs(), place.mirror, environment, project)
    return replace(known, source_cluster=copy.source_cluster)


def loader(without_pulumi: bool) -> Callable[..., MirrorContext]:
    """Return what finds a mirror: its break-glass copy, or Pulumi."""
    return load if without_pulumi else _load_by_pulumi


def _load_by_pulumi(*arguments: Any) -> MirrorContext:
    try:
        return mirror_context.load(*arguments)
    except UnreachableError as error:
        raise OpsError(f"{error} If the bucket or its key is lost: --break-glass.") from None


def active_side(pair: MirrorContext, environment: Mapping[str, str]) -> str | None:
    """Return the active side by what is there, which Pulumi may not know; None if there is nothing that names it.

    Raises OpsError if it cannot be read.
    """
    resource = pair.request.mirror.resource
    if resource is None:
        return None
    with kubernetes(environment, resource.context) as api:
        found = kubernetes_access.secret(api, resource.namespace, secret_name(pair.mirror))
    labels = ((found or {}).get("metadata") or {}).get("labels") or {}
    return labels.get(ACTIVE_LABEL)


def why_outdated(changes: "DirectChanges", pair: MirrorContext) -> str | None:
    """Return why a mirror's copy is not that of Pulumi's outputs, None if it is: apart from what a failover changes."""
    try:
        found = mirror_context.of_outputs(pair.stack, changes.outputs(), pair.mirror, changes.environment, pair.project)
    except OpsError as error:
        return str(error).splitlines()[0]
    if _lasting(found) != _lasting(pair):
        return f"Secret {changes.secret.namespace}/{changes.secret.name} is not of the last `up`"
    return None


def _lasting(pair: MirrorContext) -> tuple[Any, Any]:
    """The outputs and the verification request of a mirror without what a failover changes."""
    mirror = {key: value for key, value in pair.plan.request["mirror"].items() if key != "active"}
    outputs = pair.outputs.model_copy(update={"state": "running", "active": "source", "clients_secret": None})
    return outputs, {**pair.plan.request, "mirror": mirror}


def direct_changes(
    mirror: str,
    *,
    folder: Path,
    name: str,
    environment: Mapping[str, str],
    require_permission: Callable[[], None] = lambda: None,
) -> "DirectChanges":
    """Return what makes the changes of a mirror of a stack; raises OpsError if the stack file does not have it."""
    return DirectChanges(
        folder=folder,
        name=name,
        environment=environment,
        secret=find(name, mirror, environment, folder),
        require_permission=require_permission,
    )


@dataclass(frozen=True, kw_only=True)
class DirectChanges:
    """What a failover changes of a stack, without Pulumi; its methods are those of `PulumiStack`.

    Args:
        folder: Folder of the stack files.
        name: Name of the stack.
        secret: The break-glass copy of the mirror.
        environment: Environment of the command.
        require_permission: Called before each change; raises to forbid it.
    """

    folder: Path
    name: str
    secret: BreakGlassSecret
    environment: Mapping[str, str] = field(repr=False)
    require_permission: Callable[[], None] = lambda: None

    @property
    def file(self) -> Path:
        """The stack file."""
        return self.folder / f"Pulumi.{verify.label_of(self.name)}.yaml"

    def outputs(self) -> dict[str, Any]:
        """Return the stack's outputs of the mirror, as `up` last wrote them."""
        return self.secret.outputs()

    def set_mirror(self, mirror: str, values: Mapping[str, str | None]) -> None:
        """Write settings of a mirror into the stack file, so that Pulumi's next `up` agrees."""
        self.require_permission()
        stack_file.mirror_entry(self.file, mirror)  # raises unless it is there once
        stack_file.change_mirror(self.file, mirror, values)

    def require_as_deployed(self, mirror: str, deployed: Mapping[str, str]) -> None:
        """Raise OpsError if the stack file has other settings of a mirror than are deployed: it is not the newest."""
        stack_file.require_as_deployed(self.file, self.name, mirror, deployed)

    def up(self, mirror: str | None, log: Log) -> None:
        """Write what `up` would write for the mirror's `state`, and for its `active` if `mirror` names it.

        Everything else in the stack file is left alone. The copy is written last. Raises OpsError.
        """
        name, place = self.secret.mirror, self.secret
        entry = stack_file.mirror_entry(self.file, name)
        with kubernetes(self.environment, place.context) as api:
            copy, found = place.read(api)
            before = copy.outputs["mirrors"][name]
            state = str(entry.get("state", "running"))
            active = str(entry.get("active", "source")) if mirror is not None else str(before["active"])
            now = {"state": state, "active": active}
            changing = [one for one in copy.objects if one.depends_on != "active" or mirror is not None]
            applied = [self._apply(api, one, now[one.depends_on], log) for one in changing]
            for resource in applied:
                if resource.kind != DEPLOYMENT:  # whoever stops it sees to the end of its pod
                    wait_until_ready(resource, self.environment, log)
            if active == "target" and copy.clients is not None:
                self._write_clients(api, copy.clients, found, log)
            data = {**found["data"], KEY: _encoded(copy.switched(name, state, active).text())}
            self.require_permission()
            kubernetes_access.apply_secret(
                api, place.namespace, place.name, found["type"], {ACTIVE_LABEL: active}, data
            )

    def _apply(self, api: client.ApiClient, of: ChangingObject, value: str, log: Log) -> Resource:
        if value not in of.specs:
            raise OpsError(
                f"{of.kind} {of.namespace}/{of.name}: {of.depends_on} must be one of those that the break-glass copy "
                f"knows (got {value}, allowed {', '.join(of.specs)})."
            )
        log(f"  {of.kind} {of.namespace}/{of.name}: {of.depends_on} {value}")

        def wanted(_: Mapping[str, Any]) -> Mapping[str, Any]:
            self.require_permission()
            return of.specs[value]

        kubernetes_access.change_spec(api, of.api_version, of.kind, of.namespace, of.name, wanted)
        return Resource(
            api_version=of.api_version, kind=of.kind, namespace=of.namespace, name=of.name, context=self.secret.context
        )

    def _write_clients(
        self, api: client.ApiClient, of: ClientsAtTarget, copy: kubernetes_access.Object, log: Log
    ) -> None:
        """Write the Secret that applications read, with the target's properties."""
        secrets = _Secrets(api)
        credentials = {part: secrets.value(reference) for part, reference in of.credentials.items()}
        authority = copy["data"].get(AUTHORITY_KEYS["target"])
        values = secret_values(
            of.authentication,
            of.username,
            of.bootstrap_servers,
            None if authority is None else _decoded(authority),
            credentials,
            tls=of.tls,
        )
        data = {key: _encoded(value) for key, value in values.items()}
        log(f"  Secret {of.namespace}/{of.name}: the target's properties")
        self.require_permission()
        kubernetes_access.apply_secret(api, of.namespace, of.name, of.type, of.labels, data)


def _decoded(value: str) -> str:
    return base64.b64decode(value).decode()


def _encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()
