"""The workflows as actionlint reads them: syntax, expressions, contexts, the inputs of the actions."""

import subprocess
from pathlib import Path

from sandbox.toolchain import optional_tools
from sandbox.toolchain.paths import here
from tests.support.waiting import at_most

ROOT = Path(__file__).parents[3]
# Its own checks alone: what shellcheck and pyflakes would add depends on the machine.
ALONE = ("-shellcheck=", "-pyflakes=", "-no-color")


def lint(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [optional_tools.actionlint_program(here()), *ALONE, *map(str, files)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=at_most(60), check=False)


def test_the_linter_finds_nothing() -> None:
    result = lint()
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_linter_finds_what_is_wrong(tmp_path: Path) -> None:
    deploy = (ROOT / ".github" / "workflows" / "deploy.yml").read_text(encoding="utf-8")
    broken = tmp_path / "broken.yml"
    broken.write_text(deploy.replace("needs: dev", "needs: nobody").replace("${{ vars.", "${{ varz."), encoding="utf-8")
    result = lint(broken)
    assert result.returncode == 1
    assert 'needs job "nobody" which does not exist' in result.stdout
    assert 'undefined variable "varz"' in result.stdout
