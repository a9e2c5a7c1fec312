"""Programs built from the Go module beside this file."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from . import found, pins
from .cache import Entry, key_of
from .commands import Commands
from .place import GO_MODULE, Place
from .steps import Step

COMPONENT_BASE = "k8s.io/component-base/version"
LINK = " ".join(
    [
        "-s -w",
        f"-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v{pins.PULUMI}",
        f"-X {COMPONENT_BASE}.gitVersion=v{pins.KUBERNETES}",
        f"-X {COMPONENT_BASE}.gitMajor={pins.KUBERNETES.split('.')[0]}",
        f"-X {COMPONENT_BASE}.gitMinor={pins.KUBERNETES.split('.')[1]}",
        f"-X rt-inventory/tools/randominfo.Version={pins.PULUMI_RANDOM}",
        f"-X main.version={pins.PULUMI_KUBERNETES}",
    ]
)
# Whatever the user has set, the module is built as it is committed; the C compiler is not needed.
ENVIRONMENT = {"GOWORK": "off", "GOFLAGS": "-mod=readonly -buildvcs=false"}
PULUMI_SDK_MODULE = "github.com/pulumi/pulumi/sdk/v3"
# Shell scripts that belong beside the CLI: they start policy packs and dynamic providers written in Python.
PULUMI_LAUNCHERS = ("pulumi-analyzer-policy-python", "pulumi-resource-pulumi-python")
KUBERNETES_PROVIDER_MODULE = "github.com/pulumi/pulumi-kubernetes/provider/v4"
SUMS = (GO_MODULE / "go.mod", GO_MODULE / "go.sum")


def controlplane(place: Place) -> Entry:
    """etcd, kube-apiserver and three controllers in one program."""
    return place.entry("controlplane", f"{pins.KUBERNETES}-{key_of(*SUMS, GO_MODULE / 'controlplane')}")


def kubectl(place: Place) -> Entry:
    """kubectl, the machine's own if it is recent."""
    return place.entry("kubectl", f"{pins.KUBERNETES}-{key_of(*SUMS)}")


def pulumi(place: Place) -> Entry:
    """The Pulumi CLI, the machine's own if it is of the pinned version."""
    return place.entry("pulumi", f"{pins.PULUMI}-{key_of(*SUMS, *PULUMI_LAUNCHERS)}")


def kubernetes_provider(place: Place) -> Entry:
    """Pulumi's Kubernetes provider."""
    key = key_of(*SUMS, GO_MODULE / "pulumi-resource-kubernetes")
    return place.entry("pulumi-resource-kubernetes", f"{pins.PULUMI_KUBERNETES}-{key}")


def random_provider(place: Place) -> Entry:
    """Pulumi's random provider."""
    parts = [GO_MODULE / name for name in ("pulumi-resource-random", "randominfo", "randomschema", "bridgeshim")]
    return place.entry("pulumi-resource-random", f"{pins.PULUMI_RANDOM}-{key_of(*SUMS, *parts)}")


def steps(place: Place) -> list[Step]:
    """One step a program, one after the other: a build uses all processors, and two would compile the same twice."""
    modules = place.entry("go-modules", key_of(*SUMS))
    return [
        Step(
            name="go-modules",
            title="Go modules",
            is_done=modules.is_complete,
            run=lambda commands: _download(modules, commands),
            lane="go",
            tool="go",
        ),
        _step(controlplane(place), f"Kubernetes API server {pins.KUBERNETES}", "./controlplane", disk_mib=110),
        _step(
            kubectl(place),
            f"kubectl {pins.KUBERNETES}",
            "k8s.io/kubernetes/cmd/kubectl",
            find=lambda: found.kubectl(place.environ),
            disk_mib=60,
        ),
        _step(
            pulumi(place),
            f"Pulumi CLI {pins.PULUMI}",
            "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
            find=lambda: found.pulumi(place.environ),
            prepare=_pulumi_launchers,
            disk_mib=80,
        ),
        _step(
            kubernetes_provider(place),
            f"Pulumi Kubernetes provider {pins.PULUMI_KUBERNETES}",
            "./pulumi-resource-kubernetes",
            find=lambda: found.provider(place.environ, "kubernetes", pins.PULUMI_KUBERNETES),
            prepare=_kubernetes_schema,
            disk_mib=310,
        ),
        _step(
            random_provider(place),
            f"Pulumi random provider {pins.PULUMI_RANDOM}",
            "./pulumi-resource-random",
            find=lambda: found.provider(place.environ, "random", pins.PULUMI_RANDOM),
            prepare=_random_schema,
            disk_mib=60,
        ),
    ]


def _download(entry: Entry, commands: Commands) -> None:
    with entry.build() as folder:
        module = shutil.copytree(GO_MODULE, folder / "module")
        commands.run(["go", "mod", "download"], cwd=module, env=ENVIRONMENT)
        shutil.rmtree(module)


def _step(
    entry: Entry,
    title: str,
    package: str,
    *,
    disk_mib: int,
    find: Callable[[], Path | None] = lambda: None,
    prepare: Callable[[Path, Path, Commands], None] = lambda _module, _folder, _commands: None,
) -> Step:
    def run(commands: Commands) -> None:
        if tool := find():
            entry.stand_for(tool)
            return
        with entry.build() as folder:
            module = shutil.copytree(GO_MODULE, folder / "module")
            prepare(module, folder, commands)
            build: list[str | Path] = ["go", "build", "-trimpath", "-ldflags", LINK, "-o", folder / entry.name, package]
            commands.run(build, cwd=module, env=ENVIRONMENT)
            shutil.rmtree(module)

    return Step(
        name=entry.name,
        title=title,
        is_done=entry.is_complete,
        run=run,
        needs=("go-modules",),
        lane="go",
        tool="go",
        disk_mib=disk_mib,
    )


def _source_of(dependency: str, module: Path, commands: Commands) -> Path:
    """The folder of a downloaded module."""
    where = commands.output(["go", "list", "-m", "-f", "{{.Dir}}", dependency], cwd=module, env=ENVIRONMENT)
    return Path(where.strip())


def _pulumi_launchers(module: Path, folder: Path, commands: Commands) -> None:
    """Put the SDK's launchers beside the CLI."""
    source = _source_of(PULUMI_SDK_MODULE, module, commands) / "python" / "dist"
    for name in PULUMI_LAUNCHERS:
        (folder / name).write_bytes((source / name).read_bytes())
        (folder / name).chmod(0o755)


def _kubernetes_schema(module: Path, _folder: Path, commands: Commands) -> None:
    """Put the schema, with its version, and the mapping out of the provider's module beside the main package."""
    source = _source_of(KUBERNETES_PROVIDER_MODULE, module, commands) / "cmd" / "pulumi-resource-kubernetes"
    target = module / "pulumi-resource-kubernetes"
    schema = json.loads((source / "schema.json").read_text(encoding="utf-8"))
    schema["version"] = pins.PULUMI_KUBERNETES
    (target / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    (target / "terraform-mapping.json").write_bytes((source / "terraform-mapping.json").read_bytes())


def _random_schema(module: Path, _folder: Path, commands: Commands) -> None:
    """Let the bridge write the schema beside the main package."""
    generate = ["go", "run", "-trimpath", "-ldflags", LINK, "./randomschema", "schema"]
    where = ["--out", "pulumi-resource-random", "--skip-docs", "--skip-examples"]
    commands.run([*generate, *where], cwd=module, env=ENVIRONMENT)
