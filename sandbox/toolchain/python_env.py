"""The project's virtual environment: requirements.txt, constraints.txt, and the command `rt-inventory`."""

import json
import subprocess
import sys
from pathlib import Path

from . import pins
from .commands import Commands
from .paths import ToolchainPaths, key_of
from .steps import Step

STAMP = ".rt-inventory"
# PySpark comes as source alone, and pip makes a wheel of it: 400 MB of jars that are compressed already.
UNCOMPRESSED = "[bdist_wheel]\ncompression = stored\n"


def step(paths: ToolchainPaths) -> Step:
    """Makes or completes `venv/`; runs again when one of the two files or pyproject.toml changed.

    pip compiles all modules: where the environment forbids bytecode, each process would compile what it imports again.
    """
    venv = paths.project / "venv"

    def is_done() -> bool:
        return _stamp(venv) == _wanted(paths) and paths.venv_python.exists()

    def run(commands: Commands) -> None:
        if venv.is_symlink():  # another project's environment, which must not be cleared
            venv.unlink()
        moved = _stamp(venv).get("folder", str(paths.project)) != str(paths.project)
        (venv / STAMP).unlink(missing_ok=True)
        if moved or not _works(paths.venv_python):  # its programs name their Python by the whole path
            commands.run([sys.executable, "-m", "venv", "--clear", venv], cwd=paths.project)
        pip: list[str | Path] = [paths.venv_python, "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
        with paths.workspace("venv") as folder:
            settings = folder / "setup.cfg"
            settings.write_text(UNCOMPRESSED, encoding="utf-8")
            install = [*pip, "-r", "requirements.txt"]
            commands.run(install, cwd=paths.project, env={"DIST_EXTRA_CONFIG": str(settings)})
        if (paths.project / "pyproject.toml").exists():  # in place, by the setuptools that is there
            commands.run([*pip, "--no-deps", "--no-build-isolation", "-e", "."], cwd=paths.project)
        (venv / STAMP).write_text(json.dumps(_wanted(paths)), encoding="utf-8")

    return Step(name="venv", title="Python packages", is_done=is_done, run=run, disk_mib=1800)


def _wanted(paths: ToolchainPaths) -> dict[str, str]:
    files = [paths.project / name for name in ("requirements.txt", "constraints.txt", "pyproject.toml")]
    return {"requirements": key_of(*(file for file in files if file.exists())), "folder": str(paths.project)}


def _stamp(venv: Path) -> dict[str, str]:
    try:
        stamp: dict[str, str] = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp


def _works(python: Path) -> bool:
    """Whether an environment's Python starts, is new enough and has pip."""
    code = f"import sys, pip; sys.exit(sys.version_info < {pins.PYTHON_MIN})"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False
