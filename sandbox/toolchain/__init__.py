"""The set-up: everything the sandbox is made of, at pinned versions, in one cache folder.

Standard library only, because it runs before anything is installed. The package owns the cache folder and `venv/`; it
does not start any of what it installs. This module has all steps and the paths of the tools that they install, the step
of `venv/`, and those of the two folders in which Pulumi looks.

The folder for PATH has the CLI and, beside it, the Python language host, which runs with the project's virtual
environment, so that the folder is made for one project, and the launchers of policy packs and dynamic providers. A CLI
found on the machine brings all of these itself. PULUMI_HOME has the providers installed.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.toolchain import api_versions, crds, go, image_parts, java, maven, optional_tools, pins
from sandbox.toolchain.commands import Commands, ToolchainError
from sandbox.toolchain.paths import Entry, ToolchainPaths, here, key_of
from sandbox.toolchain.steps import Part, Step

__all__ = ["ToolchainError", "Tools", "all_steps", "locate"]

SERVE = """\
from sandbox.toolchain.language_host import without_the_rest
without_the_rest()
from sandbox.toolchain.language_host.service import main
main()"""
HOST = f"""#!/bin/sh
exec {{python}} -P -u -c 'import sys; sys.path.insert(0, sys.argv.pop(1))
{SERVE}' {{project}} "$@"
"""


def pulumi_home(paths: ToolchainPaths) -> Entry:
    """The PULUMI_HOME with the two providers."""
    key = key_of(go.kubernetes_provider(paths).key, go.random_provider(paths).key)
    return paths.entry("pulumi-home", key)


def folder_for_path(paths: ToolchainPaths) -> Entry:
    """The folder to put first on PATH."""
    cli = go.pulumi(paths)
    found = [str(cli.tool("pulumi"))] if cli.is_found() else []
    return paths.entry("bin", key_of(str(paths.project), cli.key, go.kubectl(paths).key, HOST, *found))


def pulumi_steps(paths: ToolchainPaths) -> list[Step]:
    """Install the providers and make the folder for PATH."""
    return [
        Step(
            name="pulumi-home",
            title="Pulumi providers installed",
            is_done=pulumi_home(paths).is_complete,
            run=lambda commands: _install(paths, commands),
            needs=(go.STEP,),
            disk_mib=160,
        ),
        Step(
            name="bin",
            title="Folder for PATH",
            # Only the set-up runs the machine's own Pulumi to check it: that takes time.
            is_done=lambda: go.preferred_pulumi(paths) is None and _bin_is_done(paths),
            run=lambda _commands: _link(paths),
            needs=(go.STEP, go.ON_PATH_STEP),
            parts=(Part("bin", "Folder for PATH", lambda: _bin_is_done(paths)),),
        ),
    ]


def _install(paths: ToolchainPaths, commands: Commands) -> None:
    cli = go.pulumi(paths).tool("pulumi")
    providers = [
        ("kubernetes", pins.PULUMI_KUBERNETES, go.kubernetes_provider(paths)),
        ("random", pins.PULUMI_RANDOM, go.random_provider(paths)),
    ]
    with pulumi_home(paths).build() as folder:
        env = {"PULUMI_HOME": str(folder), "PULUMI_SKIP_UPDATE_CHECK": "true"}
        for name, version, entry in providers:
            install: list[str | Path] = [
                cli,
                "plugin",
                "install",
                "resource",
                name,
                f"v{version}",
                "--file",
                entry.tool(entry.name),
            ]
            commands.run(install, cwd=folder, env=env)


def _bin_is_done(paths: ToolchainPaths) -> bool:
    return folder_for_path(paths).is_complete() and all(
        (folder_for_path(paths).path / name).exists() for name in ("pulumi", "kubectl")
    )


def _link(paths: ToolchainPaths) -> None:
    with folder_for_path(paths).build() as folder:
        cli = go.pulumi(paths)
        _put(cli.tool("pulumi"), folder / "pulumi", found=cli.is_found())
        _put(go.kubectl(paths).tool("kubectl"), folder / "kubectl", found=go.kubectl(paths).is_found())
        if not cli.is_found():
            python, project = shlex.quote(str(paths.venv_python)), shlex.quote(str(paths.project))
            host = folder / "pulumi-language-python"
            host.write_text(HOST.format(python=python, project=project), encoding="utf-8")
            host.chmod(0o755)
            for name in go.PULUMI_LAUNCHERS:
                shutil.copy2(cli.tool(name), folder / name)


def _put(tool: Path, link: Path, *, found: bool) -> None:
    """Link a tool. Pulumi expects its parts beside its real file, so a built one must not be a symbolic link."""
    if found:
        link.symlink_to(tool)
        return
    try:
        os.link(tool, link)
    except OSError:
        shutil.copy2(tool, link)


NOT_TOOLS = {
    "venv",
    "go-modules",
    "chromium",
    "prometheus",
    "actionlint",
    "toxiproxy",
    "pulumi-on-path",
}


@dataclass(frozen=True)
class Tools:
    """Absolute paths of everything the sandbox runs."""

    pulumi: Path
    """The Pulumi CLI."""
    controlplane: Path
    """etcd, kube-apiserver and three controllers in one program."""
    kubectl: Path
    """The Kubernetes command line."""
    java: Path
    """A `java` that runs Kafka and Spark."""
    kafka_libs: Path
    """Folder of the jars of Kafka, its tools, Connect and MirrorMaker 2."""
    kafka_versions: Mapping[str, Path]
    """Kafka version → folder of jars that run a Connect worker of it; that of 3.9 may be absent."""
    kafka_classes: Path
    """Folder of the class archives that Kafka's processes start from; it and they are made when first needed."""
    spark_jars: Path
    """Folder of the jars of Spark's Kafka connector."""
    spark_classes: Path
    """Archive of classes that Spark's JVM starts from; it may be absent."""
    jmx_exporter: Path
    """The JMX exporter's agent jar."""
    metrics_reporter: Path
    """Folder of the jars of Strimzi's Metrics Reporter for Kafka's clients."""
    prometheus: Path
    """Prometheus; it and the next three may be absent."""
    promtool: Path
    """The checker of Prometheus' configuration and rules."""
    alertmanager: Path
    """Alertmanager."""
    amtool: Path
    """The checker of Alertmanager's configuration."""
    toxiproxy: Path
    """The proxy that makes a network between sites; it may be absent."""
    strimzi_crds: Path
    """Folder of Strimzi's definitions (v1), a YAML file each."""
    strimzi_v1beta2_crds: Path
    """Folder of Strimzi's definitions of a release before 1.0 (v1beta2), a YAML file each."""
    event_streams_crds: Path
    """Folder of IBM Event Streams' definitions (v1beta2), a YAML file each."""
    served_crds: Path
    """Folder of what the API server serves of Strimzi (v1 and v1beta2) and Event Streams, a file each."""
    olm_crds: Path
    """Folder of OLM's definitions, a YAML file each."""
    monitoring_crds: Path
    """Folder of the Prometheus Operator's and KEDA's definitions that the product uses, a YAML file each."""
    pulumi_home: Path
    """PULUMI_HOME with the kubernetes and random providers installed."""
    bin: Path
    """Folder to put first on PATH: pulumi, its Python language host and dynamic provider, kubectl."""

    @property
    def spark_environment(self) -> dict[str, str]:
        """Variables that a verification job needs to run on this machine."""
        return {
            "JAVA_HOME": str(java.home_of(self.java)),
            "RT_INVENTORY_SPARK_JARS": str(self.spark_jars),
            "RT_INVENTORY_SPARK_CLASSES": str(self.spark_classes),
        }


def locate(paths: ToolchainPaths | None = None) -> Tools:
    """The installed tools; raises ToolchainError naming what is missing. Runs no command and takes milliseconds."""
    paths = paths or here()
    tools = [step for step in all_steps(paths) if step.name not in NOT_TOOLS and not step.is_deferred]
    missing = [part.title for step in tools for part in step.results if not part.is_done()]
    if missing:
        raise ToolchainError(f"tools: not installed in {paths.cache}: {', '.join(missing)}. Run `make setup`.")
    folder = folder_for_path(paths).path
    agent = f"jmx_prometheus_javaagent-{pins.JMX_EXPORTER}.jar"
    return Tools(
        pulumi=folder / "pulumi",
        controlplane=go.controlplane(paths).path / "controlplane",
        kubectl=folder / "kubectl",
        java=java.running_java(paths) or java.fetched_java(paths),
        kafka_libs=maven.kafka(paths).path / maven.LIBS,
        kafka_versions={
            pins.KAFKA: maven.kafka(paths).path / maven.LIBS,
            pins.KAFKA_BEFORE: maven.kafka_before(paths).path / maven.LIBS,
            pins.KAFKA_3: maven.kafka_with_zookeeper(paths, pins.KAFKA_3).path / maven.LIBS,
        },
        kafka_classes=paths.cache / "kafka-classes",
        spark_jars=maven.spark(paths).path / maven.LIBS,
        spark_classes=java.spark_classes_archive(paths),
        jmx_exporter=maven.jmx_exporter(paths).path / maven.LIBS / agent,
        metrics_reporter=maven.metrics_reporter(paths).path / maven.LIBS,
        prometheus=optional_tools.prometheus_program(paths, "prometheus"),
        promtool=optional_tools.prometheus_program(paths, "promtool"),
        alertmanager=optional_tools.prometheus_program(paths, "alertmanager"),
        amtool=optional_tools.prometheus_program(paths, "amtool"),
        toxiproxy=optional_tools.TOXIPROXY.path(paths),
        strimzi_crds=crds.strimzi(paths).path,
        strimzi_v1beta2_crds=api_versions.strimzi_v1beta2(paths),
        event_streams_crds=api_versions.of_event_streams(paths),
        served_crds=api_versions.served_folder(paths),
        olm_crds=crds.olm(paths).path,
        monitoring_crds=crds.monitoring(paths).path,
        pulumi_home=pulumi_home(paths).path,
        bin=folder,
    )


def all_steps(paths: ToolchainPaths) -> list[Step]:
    """The steps in the order in which they are started when none has to wait."""
    return [
        venv_step(paths),
        *go.steps(paths),
        *maven.steps(paths),
        java.step(paths),
        optional_tools.chromium_step(paths),
        optional_tools.prometheus_step(paths),
        java.spark_classes_step(paths),
        image_parts.step(paths),
        *crds.steps(paths),
        api_versions.step(paths),
        *pulumi_steps(paths),
        optional_tools.ACTIONLINT.step(paths),
        optional_tools.TOXIPROXY.step(paths),
    ]


STAMP = ".rt-inventory"
LOCK = "requirements.lock"
_BUILDS = re.compile(r"^setuptools==(?:.*\\\n)*.*\n", re.MULTILINE)
# PySpark comes as source alone, and pip makes a wheel of it: 400 MB of jars that are compressed already.
UNCOMPRESSED = "[bdist_wheel]\ncompression = stored\n"


def venv_step(paths: ToolchainPaths) -> Step:
    """Makes or completes `venv/`; runs again when the lock or pyproject.toml changed. pip checks the hash of each file.

    pip compiles all modules: where the environment forbids bytecode, each process would compile what it imports again.
    """
    venv = paths.project / "venv"

    def is_done() -> bool:
        return _stamp(venv) == _venv_inputs(paths) and paths.venv_python.exists()

    def run(commands: Commands) -> None:
        if venv.is_symlink():  # another project's environment, which must not be cleared
            venv.unlink()
        moved = _stamp(venv).get("folder", str(paths.project)) != str(paths.project)
        (venv / STAMP).unlink(missing_ok=True)
        if moved or not _is_usable(paths.venv_python):  # its programs name their Python by the whole path
            commands.run([sys.executable, "-m", "venv", "--clear", venv], cwd=paths.project)
        pip: list[str | Path] = [paths.venv_python, "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
        with paths.workspace("venv") as folder:
            settings = folder / "setup.cfg"
            settings.write_text(UNCOMPRESSED, encoding="utf-8")
            env = {"DIST_EXTRA_CONFIG": str(settings)}
            build, lock = folder / "build.txt", (paths.project / LOCK).read_text(encoding="utf-8")
            build.write_text("".join(_BUILDS.findall(lock)), encoding="utf-8")
            # Without isolation: what pip would fetch to build a package in an environment of its own has no hash.
            for file, options in ((build, []), (LOCK, ["--no-build-isolation", "--use-pep517"])):
                commands.run([*pip, "--require-hashes", *options, "-r", file], cwd=paths.project, env=env)
        if (paths.project / "pyproject.toml").exists():  # in place, by the setuptools that is there
            commands.run([*pip, "--no-deps", "--no-build-isolation", "-e", "."], cwd=paths.project)
        (venv / STAMP).write_text(json.dumps(_venv_inputs(paths)), encoding="utf-8")

    return Step(name="venv", title="Python packages", is_done=is_done, run=run, disk_mib=1800)


def _venv_inputs(paths: ToolchainPaths) -> dict[str, str]:
    files = [paths.project / name for name in (LOCK, "pyproject.toml")]
    return {"requirements": key_of(*(file for file in files if file.exists())), "folder": str(paths.project)}


def _stamp(venv: Path) -> dict[str, str]:
    try:
        stamp: dict[str, str] = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp


def _is_usable(python: Path) -> bool:
    """Whether an environment's Python starts, is new enough and has pip."""
    code = f"import sys, pip; sys.exit(sys.version_info < {pins.PYTHON_MIN})"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False
