"""Programs built from the Go module beside this file, all that are missing with one command: they share packages.

Pulumi's Kubernetes provider is built from a copy of its module without what no stack here uses.
"""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.toolchain import installed_tools, pins
from sandbox.toolchain.commands import Commands, Counted, ToolchainError
from sandbox.toolchain.paths import GO_MODULE, Entry, ToolchainPaths, key_of
from sandbox.toolchain.steps import Part, Step

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


def controlplane(paths: ToolchainPaths) -> Entry:
    """etcd, kube-apiserver and three controllers in one program."""
    return paths.entry("controlplane", f"{pins.KUBERNETES}-{key_of(*SUMS, GO_MODULE / 'controlplane')}")


def kubectl(paths: ToolchainPaths) -> Entry:
    """kubectl, the machine's own if it is recent."""
    return paths.entry("kubectl", f"{pins.KUBERNETES}-{key_of(*SUMS)}")


def pulumi(paths: ToolchainPaths) -> Entry:
    """The Pulumi CLI: the machine's own if the set-up found one that serves, else the one that is built."""
    on_path = _pulumi_on_path(paths)
    return on_path if on_path.is_complete() else _built_pulumi(paths)


def preferred_pulumi(paths: ToolchainPaths) -> Path | None:
    """The machine's own Pulumi CLI if the set-up has to take it over: it is new, or a built one is used so far."""
    on_path = _pulumi_on_path(paths)
    for tool in installed_tools.pulumis(paths.environ, paths.cache):
        if on_path.is_complete() and on_path.tool("pulumi") == tool:
            return None
        if installed_tools.is_supported(tool, paths.environ):
            return tool
    return None


def _pulumi_on_path(paths: ToolchainPaths) -> Entry:
    return paths.entry("pulumi", "on-path")


def _built_pulumi(paths: ToolchainPaths) -> Entry:
    return paths.entry("pulumi", f"{pins.PULUMI}-{key_of(*SUMS, *PULUMI_LAUNCHERS)}")


def kubernetes_provider(paths: ToolchainPaths) -> Entry:
    """Pulumi's Kubernetes provider."""
    key = key_of(*SUMS, GO_MODULE / PROVIDER_MAIN, *PROVIDER_LEFT_OUT)
    return paths.entry(PROVIDER_MAIN, f"{pins.PULUMI_KUBERNETES}-{key}")


def random_provider(paths: ToolchainPaths) -> Entry:
    """Pulumi's random provider."""
    parts = [GO_MODULE / name for name in ("pulumi-resource-random", "randominfo", "bridgeshim")]
    return paths.entry("pulumi-resource-random", f"{pins.PULUMI_RANDOM}-{key_of(*SUMS, *parts)}")


def steps(paths: ToolchainPaths) -> list[Step]:
    """Download the modules, then build what is missing."""
    modules = paths.entry("go-modules", key_of(*SUMS))
    programs = _programs(paths)
    return [
        Step(
            name=ON_PATH_STEP,
            title="Pulumi CLI on PATH, if there is one that serves",
            is_done=lambda: preferred_pulumi(paths) is None,
            run=lambda _commands: _prefer_pulumi(paths),
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
            is_done=lambda: all(program.entry.is_complete() for program in _programs(paths)),
            run=lambda commands: _build(paths, _programs(paths), commands),
            needs=("go-modules", ON_PATH_STEP),
            lane="go",
            tool="go",
            disk_mib=sum(program.disk_mib for program in programs if not program.entry.is_complete()),
            parts=tuple(Part(program.entry.name, program.title, program.entry.is_complete) for program in programs),
        ),
    ]


def _programs(paths: ToolchainPaths) -> list[Program]:
    return [
        Program(
            entry=controlplane(paths),
            title=f"Kubernetes API server {pins.KUBERNETES}",
            package="./controlplane",
            disk_mib=110,
        ),
        Program(
            entry=kubectl(paths),
            title=f"kubectl {pins.KUBERNETES}",
            package="k8s.io/kubernetes/cmd/kubectl",
            find=lambda: installed_tools.kubectl(paths.environ),
            disk_mib=60,
        ),
        Program(
            entry=pulumi(paths),
            title=f"Pulumi CLI {pins.PULUMI}",
            package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
            accompany=_copy_launchers,
            disk_mib=80,
        ),
        Program(
            entry=kubernetes_provider(paths),
            title=f"Pulumi Kubernetes provider {pins.PULUMI_KUBERNETES}",
            package=f"./{PROVIDER_MAIN}",
            find=lambda: installed_tools.provider(paths.environ, "kubernetes", pins.PULUMI_KUBERNETES),
            prepare=_replace_provider,
            disk_mib=100,
        ),
        Program(
            entry=random_provider(paths),
            title=f"Pulumi random provider {pins.PULUMI_RANDOM}",
            package="./pulumi-resource-random",
            find=lambda: installed_tools.provider(paths.environ, "random", pins.PULUMI_RANDOM),
            disk_mib=60,
        ),
    ]


def _prefer_pulumi(paths: ToolchainPaths) -> None:
    if tool := preferred_pulumi(paths):
        _pulumi_on_path(paths).stand_for(tool)


def _download(entry: Entry, commands: Commands) -> None:
    with entry.build() as folder:
        module = shutil.copytree(GO_MODULE, folder / "module")
        commands.run(["go", "mod", "download"], cwd=module, env=ENVIRONMENT)
        shutil.rmtree(module)


def _build(paths: ToolchainPaths, programs: Sequence[Program], commands: Commands) -> None:
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
    with paths.workspace(STEP) as folder:
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
    source = _source_of(PROVIDER_MODULE, module, commands)
    copy, main = module / "kubernetes-provider", module / PROVIDER_MAIN
    copy_module(source, copy, main)
    copy_schema(source, main)
    replacement = f"-replace={PROVIDER_MODULE}=./{copy.name}"
    commands.run(["go", "mod", "edit", replacement], cwd=module, env=ENVIRONMENT)


PROVIDER_MODULE = "github.com/pulumi/pulumi-kubernetes/provider/v4"
PROVIDER_MAIN = "pulumi-resource-kubernetes"
PROVIDER_PACKAGE = Path("pkg/provider")
# Files of the package that need what is left out, and the file, beside the main package, that stands in for them.
PROVIDER_LEFT_OUT = (
    "helm_release.go",
    "invoke_helm_template.go",
    "invoke_kustomize.go",
    "manifest_json.go",
    "provider_construct.go",
)
PROVIDER_STAND_IN = Path("_provider/unsupported.go")


def copy_module(source: Path, target: Path, main: Path) -> None:
    """Copy the provider's module without what is left out; raises ToolchainError if it is another version's.

    Args:
        source: the downloaded module
        target: folder to make
        main: folder of the main package, with the file that stands in for what is left out
    """
    for file in sorted((source / "pkg").rglob("*")):
        if file.is_file() and not file.name.endswith("_test.go"):
            copied = target / file.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)  # not with the source's rights: Go's cache is read-only
            shutil.copyfile(file, copied)
    shutil.copyfile(source / "go.mod", target / "go.mod")
    package = target / PROVIDER_PACKAGE
    missing = [name for name in PROVIDER_LEFT_OUT if not (package / name).is_file()]
    if missing:
        raise ToolchainError(
            f"  {PROVIDER_MODULE}: {PROVIDER_PACKAGE} must have the files that are left out "
            f"(missing: {', '.join(missing)}). Adapt PROVIDER_LEFT_OUT and {PROVIDER_STAND_IN} to the new version."
        )
    for name in PROVIDER_LEFT_OUT:
        (package / name).unlink()
    shutil.copyfile(main / PROVIDER_STAND_IN, package / PROVIDER_STAND_IN.name)


def copy_schema(source: Path, main: Path) -> None:
    """Put the schema, with its version, and the mapping out of the provider's module beside the main package."""
    published = source / "cmd" / PROVIDER_MAIN
    schema = json.loads((published / "schema.json").read_text(encoding="utf-8"))
    schema["version"] = pins.PULUMI_KUBERNETES
    (main / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    shutil.copyfile(published / "terraform-mapping.json", main / "terraform-mapping.json")
