"""The project's virtual environment is its own: a link to another project's is replaced, not cleared through."""

import subprocess
from pathlib import Path

from sandbox.toolchain import venv_step
from sandbox.toolchain.paths import ToolchainPaths


class Recorded:
    """Runs nothing but what makes the folder."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def run(self, argv: list[str | Path], cwd: Path, env: dict[str, str] | None = None) -> None:
        self.lines.append(" ".join(map(str, argv)))
        if "--clear" in argv:
            subprocess.run(["mkdir", "-p", str(cwd / "venv")], check=True)


def test_a_link_to_another_projects_environment_is_left_behind_whole(tmp_path: Path) -> None:
    other, project = tmp_path / "other", tmp_path / "project"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "tool").write_text("x")
    project.mkdir()
    (project / "requirements.lock").touch()
    (project / "venv").symlink_to(other)
    venv_step(ToolchainPaths(project, tmp_path / "cache", {})).run(Recorded())  # type: ignore[arg-type]  # as far as it is used
    assert (other / "bin" / "tool").exists()
    assert not (project / "venv").is_symlink()


def test_the_command_is_installed_in_place_and_again_when_the_project_says_otherwise(tmp_path: Path) -> None:
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).write_text("", encoding="utf-8")
    paths, recorded = ToolchainPaths(tmp_path, tmp_path / "cache", {}), Recorded()
    venv_step(paths).run(recorded)  # type: ignore[arg-type]  # as far as it is used
    assert recorded.lines[-1].endswith("install --no-deps --no-build-isolation -e .")
    python = paths.venv_python
    python.parent.mkdir(parents=True)
    python.touch()
    assert venv_step(paths).is_done()
    (tmp_path / "pyproject.toml").write_text("[project]", encoding="utf-8")
    assert not venv_step(paths).is_done()
