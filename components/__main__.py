"""`python -m components render --stack STACK --out DIR [--folder DIR]`: a stack's plain manifests, one file an object.

They are for GitOps tools, and need neither an engine nor a cluster: the program itself runs against a recorder in the
engine's place, so that what is rendered is what `pulumi up` would create. Owns what the recorder answers: addresses
that the settings give away, no secret value. Exit 0, or 2 with the problems.

`--placeholders` renders what is compared and never applied: an address that only the running cluster knows becomes
`<listener>.<cluster>.invalid`. `--resources FILE` also writes what the policy pack judges, see `policies.judging`.
"""

import argparse
import asyncio
import base64
import gc
import json
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    gc.disable()  # it ends in seconds, and would spend a sixth of them on collecting garbage while it imports

import pulumi
import yaml
from pulumi.runtime import mocks, rpc
from pulumi.runtime.settings import get_root_resource

from components.kafka.break_glass import LABEL as BREAK_GLASS_LABEL
from components.verification_run import whole_numbers
from contract.files import NewFile, replace_files, replace_text
from settings import NAMESPACE, SettingsError, Stack
from settings.cluster import listener_address
from settings.files import load, read_config
from settings.platform import CLUSTER_KINDS

PROGRAM = Path(__file__).resolve().parent.parent / "__main__.py"
KEYS_ANNOTATION = f"{NAMESPACE}/keys"
_PLACEHOLDER = "not-rendered"
_ENCODED = base64.b64encode(_PLACEHOLDER.encode()).decode()
_SECRET_FIELDS = ("data", "stringData")
_SECRET_SIGNATURE = "4dabf18193072939515e22adb298388d"  # noqa: S105  # marks a Pulumi secret on the wire
Manifest = dict[str, Any]
Resource = dict[str, Any]
HEADER = "# Rendered from the stack's settings; a change here is lost at the next rendering.\n"


class RenderError(Exception):
    """The stack cannot be rendered; the message says what to set."""


@dataclass
class _Recorder(mocks.Mocks):
    """Stands in for the engine: keeps what is registered, answers what a running cluster would."""

    settings: Stack
    others: Mapping[str, Mapping[str, Any]]
    placeholders: bool = False
    registered: list[Manifest] = field(default_factory=list)
    declared: list[Resource] = field(default_factory=list)

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        if args.typ == "pulumi:pulumi:StackReference":
            outputs = self.others[args.inputs["name"].rsplit("/", 1)[-1]]
            return args.name, {**args.inputs, "outputs": outputs, "secretOutputNames": []}
        if args.typ == "kubernetes:core/v1:Secret" and args.resource_id:
            return args.resource_id, {"data": dict.fromkeys(_secret_keys(self.settings), _ENCODED)}
        outputs = dict(args.inputs)
        if args.typ.startswith("kubernetes:"):
            self.registered.append(args.inputs)
            if args.inputs.get("kind") in CLUSTER_KINDS.values():
                outputs["status"] = _status(self.settings, placeholders=self.placeholders)
        if args.typ.startswith("random:"):
            outputs["result"] = _PLACEHOLDER
        if args.typ.startswith("pulumi-python:dynamic"):
            found = {"passed": True, "verdict": _PLACEHOLDER, "message": "", "checks": [], "report": ""}
            outputs = {**args.inputs, **found, "finished_at": None, "records_compared": None}
        return f"{args.name}-id", outputs

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Answer for the outputs of a stack; this one exported nothing yet."""
        return {"outputs": self.others.get(str(args.args["name"]).rsplit("/", 1)[-1], {})}, []


class _Monitor(mocks.MockMonitor):
    """Keeps what the engine would send to a policy pack, which the recorder is not given: a resource's protection."""

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__(recorder)
        self._declared = recorder.declared

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802  # the base class names it so
        answer = super().RegisterResource(request)  # type: ignore[no-untyped-call]  # the SDK's
        if request.type.startswith("kubernetes:"):
            props = rpc.deserialize_properties(request.object)
            self._declared.append({"type": request.type, "urn": answer.urn, "props": props, "protect": request.protect})
        return answer


def manifests(folder: Path, stack: str) -> list[Manifest]:
    """Return the Kubernetes objects of a stack whose file lies in the folder, beside those of its sources.

    Secrets come without values; an annotation names the keys that something else must fill. Raises SettingsError for
    mistakes of a stack file and RenderError if an address cannot be known ahead. Copies of what Pulumi knows are left
    out: without Pulumi there is nothing to copy.
    """
    return _manifests(_recorded(folder, stack, ())[0])


def _manifests(recorder: _Recorder) -> list[Manifest]:
    return [_plain(inputs) for inputs in recorder.registered if not _is_of_pulumi(inputs)]


def _recorded(
    folder: Path, stack: str, asking: tuple[str, ...], *, placeholders: bool = False
) -> tuple[_Recorder, dict[str, Any]]:
    path = folder / f"Pulumi.{stack}.yaml"
    settings = load(path)
    sources = {str(mirror.source.stack) for mirror in settings.mirrors if mirror.source.stack is not None}
    # Two sites that mirror each other need no more than each other's cluster and users.
    others = {
        source: _recorded(folder, source, (*asking, stack), placeholders=placeholders)[1]
        for source in sorted(sources - set(asking))
    } | {source: _described(folder, source, placeholders=placeholders) for source in sorted(sources & set(asking))}
    recorder = _Recorder(settings, others, placeholders)
    return recorder, _program(folder, stack, path, recorder)


def _described(folder: Path, stack: str, *, placeholders: bool = False) -> dict[str, Any]:
    """Outputs of a stack without its mirrors and without the rights that its users have by them."""
    path = folder / f"Pulumi.{stack}.yaml"
    settings = load(path).model_copy(update={"mirrors": ()})
    return _program(folder, stack, path, _Recorder(settings, {}, placeholders), with_mirrors=False)


def _program(folder: Path, stack: str, path: Path, recorder: _Recorder, *, with_mirrors: bool = True) -> dict[str, Any]:
    """Run the program as the stack and return its outputs."""
    values = {**read_config(path)}
    if not with_mirrors:
        values.pop(f"{NAMESPACE}:mirrors", None)
        for user in values.get(f"{NAMESPACE}:users") or []:
            user.pop("aclSets", None)
    config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    monitor = _Monitor(recorder)
    mocks.set_mocks(recorder, NAMESPACE, stack, preview=False, monitor=monitor, organization="organization")
    pulumi.runtime.set_all_config(config)
    pulumi.runtime.settings.SETTINGS.root_directory = str(folder.resolve())
    pulumi.runtime.settings.SETTINGS.rpc_manager.clear()
    pulumi.runtime.settings.SETTINGS.outputs.clear()
    # One process runs several programs; the SDK does not expect it.
    pulumi.runtime.settings.set_root_resource(None)  # type: ignore[arg-type]  # typed for the first program only

    def program() -> None:
        runpy.run_path(str(PROGRAM), run_name="__main__")

    async def run() -> dict[str, Any]:
        await pulumi.runtime.run_in_stack(program)
        root: Any = get_root_resource()
        outputs = {name: pulumi.Output.from_input(value) for name, value in root.outputs.items()}
        return {name: await output.future() for name, output in outputs.items()}

    try:
        return loop.run_until_complete(run())
    finally:
        loop.close()


def _status(settings: Stack, *, placeholders: bool) -> dict[str, Any]:
    cluster = settings.cluster
    found = []
    for listener in {each.name: each for each in (cluster.client_listener, cluster.outside_listener)}.values():
        servers = listener_address(cluster, listener)
        if servers is None and placeholders:
            servers = f"{listener.name}.{cluster.name}.invalid:{listener.port}"
        if servers is None:
            fix = "cluster.expose.host" if cluster.expose else "its host, or name another listener in cluster.listener"
            raise RenderError(
                f"cluster {cluster.name}: listener {listener.name} must have a host (got nothing; only the running "
                f"cluster knows the address of a {listener.type}). Set {fix}."
            )
        found.append({"name": listener.name, "bootstrapServers": servers, "certificates": [_PLACEHOLDER]})
    return {"listeners": found}


def _secret_keys(settings: Stack) -> Iterator[str]:
    """Every key under which the settings look for something in a Secret."""
    externals = [mirror.source.external for mirror in settings.mirrors if mirror.source.external]
    for secret in [*(user.secret for user in settings.users), *(each.secret for each in externals)]:
        if secret is not None:
            yield from (secret.password_key, secret.certificate_key, secret.private_key_key)
    yield from ("password", "user.crt", "user.key")
    for pair in [settings.cluster.ca_secret, *(each.ca_secret for each in externals)]:
        if pair is not None:
            yield pair[1]


def _is_of_pulumi(inputs: Manifest) -> bool:
    labels = inputs["metadata"].get("labels") or {}
    return any(labels.get(key) == value for key, value in BREAK_GLASS_LABEL.items())


def _plain(inputs: Manifest) -> Manifest:
    """An object as a person would write it: without what only Pulumi reads, and without secret values."""
    found: Manifest = whole_numbers(_revealed(inputs))
    metadata = dict(found["metadata"])
    annotations = {
        key: value for key, value in metadata.pop("annotations", {}).items() if not key.startswith("pulumi.com/")
    }
    if found["kind"] == "Secret":
        keys = sorted(key for name in _SECRET_FIELDS for key in found.pop(name, None) or {})
        annotations[KEYS_ANNOTATION] = ",".join(keys)
    if annotations:
        metadata["annotations"] = annotations
    rest = {key: found[key] for key in sorted(found) if key not in ("status", "metadata") and found[key] is not None}
    head = {"apiVersion": rest.pop("apiVersion"), "kind": rest.pop("kind"), "metadata": metadata}
    return head | rest


def _revealed(value: Any) -> Any:
    if isinstance(value, Mapping):
        if _SECRET_SIGNATURE in value:
            return _revealed(value.get("value"))
        return {key: _revealed(item) for key, item in value.items()}
    return [_revealed(item) for item in value] if isinstance(value, list | tuple) else value


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as people do, line by line."""


def _lines(dumper: yaml.SafeDumper, text_: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text_, style="|" if "\n" in text_ else None)


_Dumper.add_representer(str, _lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Render a stack; return 0 if its files are written, 2 if nothing was."""
    parser = argparse.ArgumentParser(prog="python -m components", description="What the stacks consist of.")
    commands = parser.add_subparsers(dest="command", required=True)
    render = commands.add_parser("render", help="write a stack's manifests, one file an object, no secret values")
    render.add_argument("--stack", required=True, help="name of the stack, for example stg")
    render.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder for the manifests")
    render.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help="folder of the stack files")
    render.add_argument("--placeholders", action="store_true", help="stand-ins for addresses that are not known ahead")
    render.add_argument("--resources", type=Path, metavar="FILE", help="JSON file of what the policy pack judges")
    given = parser.parse_args(arguments)
    try:
        recorder, _ = _recorded(given.folder, given.stack, (), placeholders=given.placeholders)
        found = _manifests(recorder)
    except (SettingsError, RenderError, pulumi.RunError) as error:
        sys.stderr.write(f"stack {given.stack}: cannot be rendered:\n{error}\n")
        return 2
    try:
        write(given.out, found)
        if given.resources is not None:
            replace_text(given.resources, json.dumps(recorder.declared), new_mode=0o600)
    except OSError as error:
        sys.stderr.write(f"folder {given.out}: must be writable (got {error.strerror}).\n")
        return 2
    sys.stdout.write(f"{given.out}: {len(found)} manifests of stack {given.stack}\n")
    return 0


def write(folder: Path, found: Sequence[dict[str, Any]]) -> None:
    """Write one file an object and remove files of an earlier rendering whose object is gone."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {file_name(manifest): HEADER + text(manifest) for manifest in found}
    replace_files([NewFile(path=folder / name, parts=[content], mode=None) for name, content in files.items()])
    for path in folder.glob("*.yaml"):
        if path.name not in files and path.read_text(encoding="utf-8").startswith(HEADER):
            path.unlink()


def file_name(manifest: dict[str, Any]) -> str:
    """Return `<kind>-<namespace>-<name>.yaml`, in lower case."""
    metadata = manifest["metadata"]
    parts = [manifest["kind"].lower(), metadata.get("namespace"), metadata["name"]]
    return "-".join(part for part in parts if part) + ".yaml"


def text(manifest: dict[str, Any]) -> str:
    """Return a manifest as YAML: its head first, everything below in order of the keys."""
    parts = [yaml.dump({key: value}, Dumper=_Dumper, width=120, allow_unicode=True) for key, value in manifest.items()]
    return "".join(parts)


if __name__ == "__main__":
    sys.exit(main())
