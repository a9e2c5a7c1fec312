"""The project's virtual environment is its own: a link to another project's is replaced, not cleared through."""

import subprocess
from pathlib import Path

from sandbox.toolchain.place import Place
from sandbox.toolchain.python_env import step


class Recorded:
    """Runs nothing but what makes the folder."""

    def run(self, argv: list[str | Path], cwd: Path, env: dict[str, str] | None = None) -> None:
        if "--clear" in argv:
            subprocess.run(["mkdir", "-p", str(cwd / "venv")], check=True)


def test_a_link_to_another_projects_environment_is_left_behind_whole(tmp_path: Path) -> None:
    other, project = tmp_path / "other", tmp_path / "project"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "tool").write_text("x")
    project.mkdir()
    (project / "requirements.txt").write_text("")
    (project / "venv").symlink_to(other)
    step(Place(project, tmp_path / "cache", {})).run(Recorded())  # type: ignore[arg-type]  # as far as it is used
    assert (other / "bin" / "tool").exists()
    assert not (project / "venv").is_symlink()
