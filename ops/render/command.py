"""`python -m ops render`: writes mirrors and monitoring for places without an operator.

Owns the command, and its notes for people beside the files. Writes no secret and reads none.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer
from rich.console import Console

from contract.files import replace_text
from ops.connection import PROJECT
from ops.console import ProjectFolder, escape
from ops.errors import OpsError
from ops.pulumi.stack import stack_outputs
from ops.render import client_endpoints, dedicated, prometheus
from ops.render.client_endpoints import FOLDER, ClientEndpoint, End, Kind, Outputs, Secrets, StackDescription
from settings import SettingsError, Stack
from settings.files import load
from settings.mirrors import Mirror
from settings.topics import internal_topics_of
from settings.users import properties_text

EXIT_UNUSABLE = 2
DEFAULT_STACK = "stg"
_SERVICE = re.compile(r"\.svc(\.cluster\.local)?:")
ReadOutputs = Callable[[str, Path], Outputs]


class Form(StrEnum):
    """What can be written: a mirror's properties, a pod that runs them, or what Prometheus and Alertmanager read."""

    PROPERTIES = "properties"
    DEPLOYMENT = "deployment"
    PROMETHEUS = "prometheus"


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """The file's text, and lines for the people who will run it. Neither contains a secret."""

    text: str
    notes: tuple[str, ...]


def command(
    form: Annotated[
        Form,
        typer.Option("--as", help="What to write: mm2.properties of connect-mirror-maker.sh, or what watches a stack."),
    ],
    stack: Annotated[
        list[str] | None,
        typer.Option("--stack", "-s", help="Stack that declares the mirror; several for prometheus. [default: stg]"),
    ] = None,
    stack_file: Annotated[
        Path | None,
        typer.Option("--stack-file", help="Its file, instead of --stack; sources are searched beside it."),
    ] = None,
    mirror: Annotated[str | None, typer.Option("--mirror", help="Mirror; not needed if the stack has one.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write, for prometheus the folder. [default: stdout]")
    ] = None,
    secrets: Annotated[
        Kind,
        typer.Option("--secrets", help="Where the process will find its secrets: variables, or files of a folder."),
    ] = Kind.ENV,
    secrets_dir: Annotated[
        str, typer.Option("--secrets-dir", help="That folder, on the machine that runs the mirror.")
    ] = str(FOLDER),
    image: Annotated[
        str | None, typer.Option("--image", help="Deployment: the image of images/mirror, with a tag or digest.")
    ] = None,
    secret: Annotated[
        str | None, typer.Option("--secret", help="Deployment: Secret with the files. [default: MIRROR-dedicated]")
    ] = None,
    listener: Annotated[
        str | None, typer.Option("--listener", help="Address of the internal REST interface, http://HOST:PORT.")
    ] = None,
    targets: Annotated[
        Path | None, typer.Option("--targets", help="Prometheus: YAML file of addresses, where no pods are discovered.")
    ] = None,
    exporter: Annotated[
        list[str] | None,
        typer.Option("--exporter", help="Prometheus: HOST:PORT of `ops metrics` and the like; may be repeated."),
    ] = None,
    alertmanager: Annotated[
        str, typer.Option("--alertmanager", help="Prometheus: HOST:PORT of Alertmanager.")
    ] = prometheus.ALERTMANAGER,
    slack_url_folder: Annotated[
        str | None,
        typer.Option(
            "--slack-url-folder",
            help="Prometheus: folder on Alertmanager's machine with a file for each key of Slack's Secret, which has "
            f"a webhook's address. [default: {prometheus.SECRETS}/SECRET]",
        ),
    ] = None,
    project: ProjectFolder = PROJECT,
) -> None:
    """Write a mirror as mm2.properties or a Deployment, or what watches a stack as files of its monitoring.

    Example: [bold]python -m ops render --as properties --stack stg --out mm2.properties[/bold]
    Example: [bold]python -m ops render --as deployment --stack stg --image IMAGE --out mm2.yaml[/bold]
    Example: [bold]python -m ops render --as prometheus --stack dev --stack stg --out prometheus[/bold]

    properties: addresses come from running stacks, else from the stack files. Secrets are references to a config
    provider; stderr names the variables or files, and where their values are.

    deployment: the same properties in a ConfigMap, and a Deployment that mounts it and a Secret. stderr names the
    keys of the Secret.

    prometheus: everything comes from the stack files. The folder gets prometheus.yml, rules/, alertmanager.yml with
    templates/ if a stack notifies Slack, and dashboards/. Exit 2 if something is wrong or not known.
    """
    console = Console(stderr=True, soft_wrap=True)
    try:
        chosen = _files(stack or [], stack_file, project)
        if form is Form.PROMETHEUS:
            if any(each is not None for each in (mirror, listener, image, secret)):
                raise OpsError(
                    "render: --mirror, --listener, --image and --secret must not be given with --as prometheus. Leave "
                    "them out."
                )
            options = prometheus.Options(
                targets=targets,
                exporters=tuple(exporter or ()),
                alertmanager=alertmanager,
                slack_url_folder=slack_url_folder,
            )
            _write_monitoring(chosen, out, options, console)
            return
        if len(chosen) != 1 or targets is not None:
            raise OpsError(f"render: one --stack and no --targets must be given with --as {form}. Leave out others.")
        if form is Form.DEPLOYMENT:
            if listener is not None:
                raise OpsError("render: --listener must not be given with --as deployment. It runs one process.")
            rendered = as_deployment(
                chosen[0], mirror, image, secret, folder=PurePosixPath(secrets_dir), read_outputs=_outputs
            )
        else:
            if image is not None or secret is not None:
                raise OpsError("render: --image and --secret must be given with --as deployment only. Leave them out.")
            provider = Secrets(kind=secrets, folder=PurePosixPath(secrets_dir))
            rendered = render(chosen[0], mirror, provider, read_outputs=_outputs, rest=listener)
        if out is not None:
            replace_text(out, rendered.text)
    except (OpsError, SettingsError, OSError) as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", highlight=False)
        raise typer.Exit(EXIT_UNUSABLE) from error
    if out is None:
        sys.stdout.write(rendered.text)
    for note in rendered.notes:
        console.print(escape(note), highlight=False)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("render")(command)


def render(
    file: Path, name: str | None, secrets: Secrets, *, read_outputs: ReadOutputs, rest: str | None = None
) -> Rendered:
    """Return the properties of a mirror for a dedicated MirrorMaker.

    Args:
        file: the stack file that declares the mirror.
        name: name of the mirror; None if the file has only one.
        secrets: where the properties refer to for secrets.
        read_outputs: returns a stack's outputs by its name and the folder of its project; raises OpsError if it is not
            up.
        rest: address of the internal REST interface, if it is to have another than the default.

    Raises:
        SettingsError, OpsError: everything that must change in the stack file or the arguments.
    """
    flow = _flow(file, name, read_outputs)
    sections = dedicated.sections(flow.mirror, flow.version, flow.source, flow.target, secrets, rest)
    notes = [*_inside_only(flow.source, flow.target), *_secret_notes(secrets, flow.source, flow.target)]
    notes += [*_rights(flow.mirror, flow.version), *_left_out(flow.mirror)]
    return Rendered(text=properties_text(sections), notes=(*flow.notes, *notes))


def as_deployment(
    file: Path,
    name: str | None,
    image: str | None,
    secret: str | None,
    *,
    folder: PurePosixPath,
    read_outputs: ReadOutputs,
) -> Rendered:
    """Return a mirror as ConfigMap and Deployment; raises what `render` raises, and OpsError without an image.

    Args:
        file: the stack file that declares the mirror.
        name: name of the mirror; None if the file has only one.
        image: container image of the pods.
        secret: name of the Secret whose keys are mounted.
        folder: the path in the pods where the Secret is mounted.
        read_outputs: see `render`.
    """
    if not image:
        raise OpsError("render: --image must be given with --as deployment (got nothing). Build it: images/mirror.")
    flow = _flow(file, name, read_outputs)
    secrets = Secrets(kind=Kind.DIRECTORY, folder=folder)
    one = flow.mirror.model_copy(update={"replicas": 1})
    sections = dedicated.sections(one, flow.version, flow.source, flow.target, secrets)
    sides: dict[End, ClientEndpoint] = {"source": flow.source, "target": flow.target}
    origins = {
        PurePosixPath(secrets.place(end, part)).name: f"{side.alias}: {words}"
        for end, side in sides.items()
        for part, words in side.origins.items()
    }
    made = dedicated.Deployment(
        mirror=one,
        namespace=flow.namespace,
        image=image,
        secret=secret or dedicated.deployment_name(one),
        secret_keys=tuple(origins),
        secrets=secrets,
        properties=properties_text(sections),
    )
    width = max(map(len, origins), default=0)
    notes = [f"Secret {made.secret} in namespace {made.namespace} needs these keys, passwords without a line end:"]
    notes += [f"  {key:<{width}}  {words}" for key, words in origins.items()]
    notes = notes if origins else ["The process needs no secret."]
    notes += [*_rights(one, flow.version), *_left_out(one, pod=True)]
    if flow.mirror.replicas > 1:
        notes.append(f"One process runs all tasks (replicas {flow.mirror.replicas} is the operator's).")
    return Rendered(text=dedicated.manifests_yaml(made.manifests()), notes=(*flow.notes, *notes))


@dataclass(frozen=True, kw_only=True)
class _Flow:
    """A mirror as a stack file declares it, and both its clusters. `notes` are about what could not be read."""

    mirror: Mirror
    namespace: str
    version: str
    source: ClientEndpoint
    target: ClientEndpoint
    notes: tuple[str, ...]


def _flow(file: Path, name: str | None, read_outputs: ReadOutputs) -> _Flow:
    settings = load(file)
    mirror = _mirror(settings, file, name)
    notes: list[str] = []

    def known(stack: str, path: Path, declared: Stack | None) -> StackDescription:
        try:
            outputs = read_outputs(stack, path.parent)
        except OpsError as error:
            outputs = {}
            notes.append(f"stack {stack}: has no outputs to read, so the address is that of {path.name}. {error}")
        return StackDescription(name=stack, file=path, settings=declared, outputs=outputs)

    def other(stack: str) -> StackDescription:
        path = file.with_name(f"Pulumi.{stack}.yaml")
        return known(stack, path, load(path) if path.exists() else None)

    own = known(_stack_name(file), file, settings)
    source = client_endpoints.source(mirror, mirror.home(settings.cluster.namespace), other)
    target = client_endpoints.target(mirror, own)
    return _Flow(
        mirror=mirror,
        namespace=mirror.home(settings.cluster.namespace),
        version=settings.mirror_version(mirror),
        source=source,
        target=target,
        notes=tuple(notes),
    )


def _inside_only(*sides: ClientEndpoint) -> list[str]:
    return [
        f"{side.alias}: {side.bootstrap_servers} is reached from inside Kubernetes only. For a machine outside, set "
        f"cluster.expose of {side.cluster}, or name a listener of another type in cluster.listener."
        for side in sides
        if _SERVICE.search(side.bootstrap_servers)
    ]


def _secret_notes(secrets: Secrets, source: ClientEndpoint, target: ClientEndpoint) -> list[str]:
    sides: dict[End, ClientEndpoint] = {"source": source, "target": target}
    places = [
        (secrets.place(end, part), f"{side.alias}: {words}")
        for end, side in sides.items()
        for part, words in side.origins.items()
    ]
    width = max((len(place) for place, _ in places), default=0)
    what = "variables" if secrets.kind is Kind.ENV else "files, each without a line end after a password"
    head = f"The process needs these {what}:" if places else "The process needs no secret."
    return [head, *(f"  {place:<{width}}  {words}" for place, words in places)]


def _rights(mirror: Mirror, version: str) -> list[str]:
    """Names that rights, or topics created in advance, must cover: they are not those of the mirror in Kubernetes."""
    notes = []
    for flow in dedicated.directions(mirror):
        topics: dict[str, list[str]] = {}
        for topic in internal_topics_of(flow, version):
            alias = flow.source.alias if topic.location == "source" else flow.target.alias
            topics.setdefault(alias, []).append(topic.name)
        notes += [f"It keeps for itself at {alias}: topics {', '.join(names)}" for alias, names in topics.items()]
        notes.append(f"Its workers at {flow.target.alias} are the group {flow.connect_group}.")
    return notes


def _left_out(mirror: Mirror, *, pod: bool = False) -> list[str]:
    """Settings that only an operator applies, and the heap, a variable of Kafka's script. A `pod` has the latter."""
    heap = [f"-X{key}{value}" for key, value in (("ms", mirror.jvm.xms), ("mx", mirror.jvm.xmx)) if value]
    notes = [f"Heap: KAFKA_HEAP_OPTS='{' '.join(heap)}'."] if heap and not pod else []
    operators = {
        "state": mirror.state != "running",
        "autoRestart": mirror.auto_restart is not None,
        "resources": bool(mirror.resources.rendered()) and not pod,
        "rack": mirror.rack is not None,
        "metrics": mirror.metrics is not None,
        "logLevel": mirror.log_level is not None,
    }
    if left := [name for name, given in operators.items() if given]:
        notes.append(f"Not in the file, because only the operator does it: {', '.join(left)}.")
    return notes


def _mirror(settings: Stack, file: Path, name: str | None) -> Mirror:
    known: Mapping[str, Mirror] = {mirror.name: mirror for mirror in settings.mirrors}
    if not known:
        raise OpsError(
            f"file {file}: mirrors must have an entry (got none). Name the stack that declares the mirror, as a rule "
            "the target's: --stack stg."
        )
    if name is None and len(known) != 1:
        raise OpsError(f"file {file}: --mirror must be given (allowed {', '.join(sorted(known))}).")
    chosen = name if name is not None else next(iter(known))
    if chosen not in known:
        raise OpsError(
            f"file {file}: --mirror must be one of its mirrors (got {chosen}, allowed {', '.join(sorted(known))})."
        )
    return known[chosen]


def _write_monitoring(chosen: list[Path], folder: Path | None, options: prometheus.Options, console: Console) -> None:
    if folder is None:
        raise OpsError("render: --out must be given with --as prometheus (got nothing). Name the folder.")
    found = prometheus.files({_stack_name(file): load(file) for file in chosen}, options)
    prometheus.write(folder, found)
    sys.stdout.write(f"{folder}: {len(found.texts)} files of {', '.join(map(_stack_name, chosen))}\n")
    for note in found.notes:
        console.print(escape(note), highlight=False)


def _files(stacks: list[str], stack_file: Path | None, project: Path) -> list[Path]:
    if stacks and stack_file is not None:
        raise OpsError("render: --stack and --stack-file must not be given together. The file names the stack.")
    if stack_file is not None:
        return [stack_file]
    return [project / f"Pulumi.{stack}.yaml" for stack in dict.fromkeys(stacks or [DEFAULT_STACK])]


def _stack_name(file: Path) -> str:
    return file.stem.removeprefix("Pulumi.")


def _outputs(stack: str, project: Path) -> Outputs:
    return stack_outputs(stack, os.environ, project.resolve(), secrets=False)
