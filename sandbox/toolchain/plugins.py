"""What Pulumi finds its parts in: the folder for PATH, and a PULUMI_HOME with the providers installed.

Beside the CLI lie the Python language host, which runs with the project's virtual environment, so that the folder is
made for one project, and the launchers of policy packs and dynamic providers. A CLI found on the machine brings all of
them itself.
"""

import os
import shlex
import shutil
from pathlib import Path

from . import go, pins
from .commands import Commands
from .paths import Entry, ToolchainPaths, key_of
from .steps import Part, Step

SERVE = """\
from sandbox.toolchain.language_host.sdk import without_the_rest
without_the_rest()
from sandbox.toolchain.language_host.host import main
main()"""
HOST = f"""#!/bin/sh
exec {{python}} -P -u -c 'import sys; sys.path.insert(0, sys.argv.pop(1))
{SERVE}' {{project}} "$@"
"""


def home(paths: ToolchainPaths) -> Entry:
    """The PULUMI_HOME with the two providers."""
    key = key_of(go.kubernetes_provider(paths).key, go.random_provider(paths).key)
    return paths.entry("pulumi-home", key)


def folder_for_path(paths: ToolchainPaths) -> Entry:
    """The folder to put first on PATH."""
    cli = go.pulumi(paths)
    found = [str(cli.tool("pulumi"))] if cli.is_found() else []
    return paths.entry("bin", key_of(str(paths.project), cli.key, go.kubectl(paths).key, HOST, *found))


def steps(paths: ToolchainPaths) -> list[Step]:
    """Install the providers and make the folder for PATH."""
    return [
        Step(
            name="pulumi-home",
            title="Pulumi providers installed",
            is_done=home(paths).is_complete,
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
    with home(paths).build() as folder:
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
