"""Programs built from the Go module beside this file, all that are missing with one command: they share packages."""

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import found, pins, provider_source
from .cache import Entry, key_of
from .commands import Commands, Counted
from .place import GO_MODULE, Place
from .steps import Part, Step

STEP = "go-programs"
ON_PATH_STEP = "pulumi-on-path"
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
# No debug information, which -s -w would remove anyway, and no garbage collection before 512 MiB: a fifth less time.
COMPILE = "all=-dwarf=false -d=gcstart=512"
# Whatever the user has set, the module is built as it is committed; the C compiler is not needed.
ENVIRONMENT = {"GOWORK": "off", "GOFLAGS": "-mod=readonly -buildvcs=false", "CGO_ENABLED": "0"}
COMPILED = Counted(re.compile(r"[^\s:]+"), "packages compiled")  # the lines of `go build -v`
PULUMI_SDK_MODULE = "github.com/pulumi/pulumi/sdk/v3"
# Shell scripts that belong beside the CLI: they start policy packs and dynamic providers written in Python. A release
# from 3.221 on has no longer the first one: its engine lets the language host start policy packs.
PULUMI_LAUNCHERS = ("pulumi-analyzer-policy-python", "pulumi-resource-pulumi-python")
SUMS = (GO_MODULE / "go.mod", GO_MODULE / "go.sum")


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of the module; its file is called like its cache entry and like the last part of its package."""

    entry: Entry
    title: str
    package: str
    disk_mib: int
    find: Callable[[], Path | None] = lambda: None
    """The machine's own, to be used instead, if it has one that will do."""
    prepare: Callable[[Path, Commands], None] = lambda _module, _commands: None
    """Complete the copy of the Go module, the first argument, that is going to be built."""
    accompany: Callable[[Path, Path, Commands], None] = lambda _module, _folder, _commands: None
    """Put other files beside the program: the copy of the Go module, the entry's folder."""


def controlplane(place: Place) -> Entry:
    """etcd, kube-apiserver and three controllers in one program."""
    return place.entry("controlplane", f"{pins.KUBERNETES}-{key_of(*SUMS, GO_MODULE / 'controlplane')}")


def kubectl(place: Place) -> Entry:
    """kubectl, the machine's own if it is recent."""
    return place.entry("kubectl", f"{pins.KUBERNETES}-{key_of(*SUMS)}")


def pulumi(place: Place) -> Entry:
    """The Pulumi CLI: the machine's own if the set-up found one that serves, else the one that is built."""
    on_path = _pulumi_on_path(place)
    return on_path if on_path.is_complete() else _built_pulumi(place)


def preferred_pulumi(place: Place) -> Path | None:
    """The machine's own Pulumi CLI if the set-up has to take it over: it is new, or a built one is used so far."""
    on_path = _pulumi_on_path(place)
    for tool in found.pulumis(place.environ, place.cache):
        if on_path.is_complete() and on_path.tool("pulumi") == tool:
            return None
        if found.serves(tool, place.environ):
            return tool
    return None


def _pulumi_on_path(place: Place) -> Entry:
    return place.entry("pulumi", "on-path")


def _built_pulumi(place: Place) -> Entry:
    return place.entry("pulumi", f"{pins.PULUMI}-{key_of(*SUMS, *PULUMI_LAUNCHERS)}")


def kubernetes_provider(place: Place) -> Entry:
    """Pulumi's Kubernetes provider."""
    key = key_of(*SUMS, GO_MODULE / provider_source.MAIN, *provider_source.LEFT_OUT)
    return place.entry(provider_source.MAIN, f"{pins.PULUMI_KUBERNETES}-{key}")


def random_provider(place: Place) -> Entry:
    """Pulumi's random provider."""
    parts = [GO_MODULE / name for name in ("pulumi-resource-random", "randominfo", "bridgeshim")]
    return place.entry("pulumi-resource-random", f"{pins.PULUMI_RANDOM}-{key_of(*SUMS, *parts)}")


def steps(place: Place) -> list[Step]:
    """Download the modules, then build what is missing."""
    modules = place.entry("go-modules", key_of(*SUMS))
    programs = _programs(place)
    return [
        Step(
            name=ON_PATH_STEP,
            title="Pulumi CLI on PATH, if there is one that serves",
            is_done=lambda: preferred_pulumi(place) is None,
            run=lambda _commands: _prefer_pulumi(place),
        ),
        Step(
            name="go-modules",
            title="Go modules",
            is_done=modules.is_complete,
            run=lambda commands: _download(modules, commands),
            lane="go",
            tool="go",
        ),
        Step(
            name=STEP,
            title="API server, kubectl, Pulumi CLI and providers",
            is_done=lambda: all(program.entry.is_complete() for program in _programs(place)),
            run=lambda commands: _build(place, _programs(place), commands),
            needs=("go-modules", ON_PATH_STEP),
            lane="go",
            tool="go",
            disk_mib=sum(program.disk_mib for program in programs if not program.entry.is_complete()),
            parts=tuple(Part(program.entry.name, program.title, program.entry.is_complete) for program in programs),
        ),
    ]


def _programs(place: Place) -> list[Program]:
    return [
        Program(
            entry=controlplane(place),
            title=f"Kubernetes API server {pins.KUBERNETES}",
            package="./controlplane",
            disk_mib=110,
        ),
        Program(
            entry=kubectl(place),
            title=f"kubectl {pins.KUBERNETES}",
            package="k8s.io/kubernetes/cmd/kubectl",
            find=lambda: found.kubectl(place.environ),
            disk_mib=60,
        ),
        Program(
            entry=pulumi(place),
            title=f"Pulumi CLI {pins.PULUMI}",
            package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
            accompany=_copy_launchers,
            disk_mib=80,
        ),
        Program(
            entry=kubernetes_provider(place),
            title=f"Pulumi Kubernetes provider {pins.PULUMI_KUBERNETES}",
            package=f"./{provider_source.MAIN}",
            find=lambda: found.provider(place.environ, "kubernetes", pins.PULUMI_KUBERNETES),
            prepare=_replace_provider,
            disk_mib=100,
        ),
        Program(
            entry=random_provider(place),
            title=f"Pulumi random provider {pins.PULUMI_RANDOM}",
            package="./pulumi-resource-random",
            find=lambda: found.provider(place.environ, "random", pins.PULUMI_RANDOM),
            disk_mib=60,
        ),
    ]


def _prefer_pulumi(place: Place) -> None:
    if tool := preferred_pulumi(place):
        _pulumi_on_path(place).stand_for(tool)


def _download(entry: Entry, commands: Commands) -> None:
    with entry.build() as folder:
        module = shutil.copytree(GO_MODULE, folder / "module")
        commands.run(["go", "mod", "download"], cwd=module, env=ENVIRONMENT)
        shutil.rmtree(module)


def _build(place: Place, programs: Sequence[Program], commands: Commands) -> None:
    """Build what is missing and not found on the machine. What Go has compiled is kept if it is interrupted."""
    missing = []
    for program in programs:
        if program.entry.is_complete():
            continue
        if tool := program.find():
            program.entry.stand_for(tool)
        else:
            missing.append(program)
    if not missing:
        return
    with place.workspace(STEP) as folder:
        module, built = shutil.copytree(GO_MODULE, folder / "module"), folder / "built"
        built.mkdir()
        for program in missing:
            program.prepare(module, commands)
        build: list[str | Path] = ["go", "build", "-v", "-trimpath", f"-gcflags={COMPILE}", "-ldflags", LINK]
        packages = [program.package for program in missing]
        commands.run([*build, "-o", f"{built}/", *packages], cwd=module, env=ENVIRONMENT, counted=COMPILED)
        for program in missing:
            with program.entry.build() as entry:
                program.accompany(module, entry, commands)
                (built / program.entry.name).rename(entry / program.entry.name)


def _source_of(dependency: str, module: Path, commands: Commands) -> Path:
    """The folder of a downloaded module."""
    where = commands.output(["go", "list", "-m", "-f", "{{.Dir}}", dependency], cwd=module, env=ENVIRONMENT)
    return Path(where.strip())


def _copy_launchers(module: Path, folder: Path, commands: Commands) -> None:
    """Put the SDK's launchers beside the CLI."""
    source = _source_of(PULUMI_SDK_MODULE, module, commands) / "python" / "dist"
    for name in PULUMI_LAUNCHERS:
        (folder / name).write_bytes((source / name).read_bytes())
        (folder / name).chmod(0o755)


def _replace_provider(module: Path, commands: Commands) -> None:
    """Let the module use a copy of the provider's module without what is left out of it."""
    source = _source_of(provider_source.MODULE, module, commands)
    copy, main = module / "kubernetes-provider", module / provider_source.MAIN
    provider_source.copy_module(source, copy, main)
    provider_source.copy_schema(source, main)
    replacement = f"-replace={provider_source.MODULE}=./{copy.name}"
    commands.run(["go", "mod", "edit", replacement], cwd=module, env=ENVIRONMENT)
