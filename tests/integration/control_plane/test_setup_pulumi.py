"""The installed Pulumi runs Python programs and dynamic providers, without a warning."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.toolchain import locate
from tests.support.waiting import at_most

from ...support.running_sandbox import environment_beside

ROOT = Path(__file__).parents[3]
Pulumi = Callable[..., subprocess.CompletedProcess[str]]
PROGRAM = """
import pulumi, pulumi_random
from pulumi.dynamic import CreateResult, Resource, ResourceProvider
from beside import shout

class Provider(ResourceProvider):
    def create(self, props):
        return CreateResult("one", {"value": shout(props["value"])})

class Shout(Resource):
    value: pulumi.Output[str]
    def __init__(self, name, value):
        super().__init__(Provider(), name, {"value": value})

pulumi.export("password", pulumi_random.RandomPassword("password", length=20).result)
pulumi.export("shouted", Shout("shout", "hello").value)
"""


@pytest.fixture
def pulumi(tmp_path: Path) -> Pulumi:
    """The CLI in a project of its own with a stack `dev` and a file backend; answers with what it wrote."""
    (tmp_path / "state").mkdir()
    project = {"name": "try", "runtime": {"name": "python", "options": {"virtualenv": str(ROOT / "venv")}}}
    (tmp_path / "Pulumi.yaml").write_text(json.dumps(project), encoding="utf-8")
    (tmp_path / "beside.py").write_text("def shout(text):\n    return text.upper()\n", encoding="utf-8")
    env = environment_beside(tmp_path)

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "__main__.py").write_text(program, encoding="utf-8")
        command = [str(locate().pulumi), *arguments, "--non-interactive"]
        return subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=at_most(120), check=False
        )

    assert run("", "stack", "init", "dev").returncode == 0
    return run


def test_a_program_with_a_provider_and_a_dynamic_resource_comes_up_and_goes_without_a_warning(pulumi: Pulumi) -> None:
    for arguments in (["preview"], ["up", "--yes", "--skip-preview"]):
        result = pulumi(PROGRAM, *arguments)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "warning" not in (result.stdout + result.stderr).lower()
    outputs = json.loads(pulumi(PROGRAM, "stack", "output", "--json").stdout)
    assert outputs == {"password": "[secret]", "shouted": "HELLO"}
    again = pulumi(PROGRAM, "up", "--yes", "--skip-preview")
    assert "3 unchanged" in again.stdout
    gone = pulumi(PROGRAM, "destroy", "--yes", "--skip-preview")
    assert "3 deleted" in gone.stdout


def test_an_error_of_the_program_is_reported_with_its_own_traceback_and_ends_the_update(pulumi: Pulumi) -> None:
    result = pulumi("def build():\n    raise ValueError('bad')\nbuild()\n", "preview")
    assert result.returncode != 0
    assert "ValueError: bad" in result.stdout
    assert "run_program.py" not in result.stdout
