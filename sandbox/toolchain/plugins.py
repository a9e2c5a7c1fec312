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
from .cache import Entry, key_of
from .commands import Commands
from .place import Place
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


def home(place: Place) -> Entry:
    """The PULUMI_HOME with the two providers."""
    key = key_of(go.kubernetes_provider(place).key, go.random_provider(place).key)
    return place.entry("pulumi-home", key)


def folder_for_path(place: Place) -> Entry:
    """The folder to put first on PATH."""
    cli = go.pulumi(place)
    found = [str(cli.tool("pulumi"))] if cli.is_found() else []
    return place.entry("bin", key_of(str(place.project), cli.key, go.kubectl(place).key, HOST, *found))


def steps(place: Place) -> list[Step]:
    """Install the providers and make the folder for PATH."""
    return [
        Step(
            name="pulumi-home",
            title="Pulumi providers installed",
            is_done=home(place).is_complete,
            run=lambda commands: _install(place, commands),
            needs=(go.STEP,),
            disk_mib=160,
        ),
        Step(
            name="bin",
            title="Folder for PATH",
            # The set-up looks at the machine's own Pulumi, which takes time; whoever looks for tools does not.
            is_done=lambda: go.preferred_pulumi(place) is None and _bin_is_done(place),
            run=lambda _commands: _link(place),
            needs=(go.STEP, go.ON_PATH_STEP),
            parts=(Part("bin", "Folder for PATH", lambda: _bin_is_done(place)),),
        ),
    ]


def _install(place: Place, commands: Commands) -> None:
    cli = go.pulumi(place).tool("pulumi")
    providers = [
        ("kubernetes", pins.PULUMI_KUBERNETES, go.kubernetes_provider(place)),
        ("random", pins.PULUMI_RANDOM, go.random_provider(place)),
    ]
    with home(place).build() as folder:
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


def _bin_is_done(place: Place) -> bool:
    return folder_for_path(place).is_complete() and all(
        (folder_for_path(place).path / name).exists() for name in ("pulumi", "kubectl")
    )


def _link(place: Place) -> None:
    with folder_for_path(place).build() as folder:
        cli = go.pulumi(place)
        _put(cli.tool("pulumi"), folder / "pulumi", found=cli.is_found())
        _put(go.kubectl(place).tool("kubectl"), folder / "kubectl", found=go.kubectl(place).is_found())
        if not cli.is_found():
            python, project = shlex.quote(str(place.venv_python)), shlex.quote(str(place.project))
            host = folder / "pulumi-language-python"
            host.write_text(HOST.format(python=python, project=project), encoding="utf-8")
            host.chmod(0o755)
            for name in go.PULUMI_LAUNCHERS:
                shutil.copy2(cli.tool(name), folder / name)


def _put(tool: Path, link: Path, *, found: bool) -> None:
    """Link a tool. Pulumi looks for its parts beside its real file, so a built one must not be a symbolic link."""
    if found:
        link.symlink_to(tool)
        return
    try:
        os.link(tool, link)
    except OSError:
        shutil.copy2(tool, link)
