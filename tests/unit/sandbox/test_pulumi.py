"""Pulumi's environment and files, with a script in the engine's place."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox.pulumi import Pulumi, PulumiError, named_stack
from sandbox.state import PROJECT, SandboxState
from sandbox.toolchain import Tools

from .conftest import script

INIT = """
import os, pathlib, sys
if sys.argv[1:3] == ["stack", "init"]:
    name = sys.argv[3]
    file = pathlib.Path(f"Pulumi.{name}.yaml")
    if not file.exists():  # Pulumi keeps a salt that is there
        file.write_text(f"encryptionsalt: v1:salt-of-{name}\\n")
    project = pathlib.Path("Pulumi.yaml").read_text().split()[1]
    folder = pathlib.Path(os.environ["PULUMI_BACKEND_URL"].removeprefix("file://"), ".pulumi", "stacks", project)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text("{}")
    sys.exit()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: p\n")
    (folder / "Pulumi.dev.yaml").write_text("# mine\nconfig:\n  p:x: 1")
    return folder


@pytest.fixture
def pulumi(state: SandboxState, tools: Tools, project: Path) -> Pulumi:
    script(tools.pulumi, INIT + "print(' '.join(sys.argv[1:])); print('to stderr', file=sys.stderr)")
    return Pulumi(state, tools, project)


def test_all_stacks_of_a_sandbox_have_the_salt_of_the_first(pulumi: Pulumi, project: Path) -> None:
    (project / "Pulumi.stg.yaml").write_text("config: {}\n")
    assert pulumi.stack_file("dev").read_text().endswith("\nencryptionsalt: v1:salt-of-dev\n")
    assert pulumi.stack_file("stg").read_text() == "config: {}\nencryptionsalt: v1:salt-of-dev\n"


def test_the_salt_goes_into_a_copy_and_the_work_tree_stays(pulumi: Pulumi, state: SandboxState, project: Path) -> None:
    copy = pulumi.stack_file("dev")
    assert copy == state.pulumi / "config" / "p" / "Pulumi.dev.yaml"
    assert copy.read_text() == "# mine\nconfig:\n  p:x: 1\nencryptionsalt: v1:salt-of-dev\n"
    assert sorted(path.name for path in project.iterdir()) == ["Pulumi.dev.yaml", "Pulumi.yaml"]
    assert "salt" not in (project / "Pulumi.dev.yaml").read_text()


@pytest.mark.parametrize("words", [["select", "dev", "--create"], ["select", "-c", "--stack", "dev"], ["init", "dev"]])
def test_a_stack_that_a_user_makes_leaves_no_salt_in_the_work_tree(
    pulumi: Pulumi, project: Path, capfd: pytest.CaptureFixture[str], words: list[str]
) -> None:
    before = (project / "Pulumi.dev.yaml").read_text()
    assert pulumi.pass_through(["stack", *words], project) == 0
    assert (project / "Pulumi.dev.yaml").read_text() == before
    assert capfd.readouterr().out.strip() in ("stack select dev", "stack select --stack dev")
    assert pulumi.stack_file("dev").read_text().endswith("salt-of-dev\n")


def test_the_projects_own_stack_files_hold_no_salt() -> None:
    files = [*PROJECT.glob("Pulumi.*.yaml"), *PROJECT.glob("examples/*/Pulumi.*.yaml")]
    assert len(files) > 2
    assert not [file.name for file in files if "encryptionsalt" in file.read_text("utf-8")]


def test_the_copy_follows_the_stack_file_and_keeps_its_salt(pulumi: Pulumi, project: Path) -> None:
    pulumi.stack_file("dev")
    (project / "Pulumi.dev.yaml").write_text("config: {}\nencryptionsalt: v1:left-by-a-plain-pulumi\n")
    assert pulumi.stack_file("dev").read_text() == "config: {}\nencryptionsalt: v1:salt-of-dev\n"


def test_a_key_of_the_cloud_is_not_asked_for_in_a_sandbox(pulumi: Pulumi, project: Path) -> None:
    key = "secretsprovider: awskms://alias/state?region=eu-central-1\nencryptedkey: abc==\n"
    (project / "Pulumi.dev.yaml").write_text(f"{key}config: {{}}\n")
    assert pulumi.stack_file("dev").read_text() == "config: {}\nencryptionsalt: v1:salt-of-dev\n"


def test_a_stack_file_with_values_encrypted_by_its_own_salt_keeps_it(pulumi: Pulumi, project: Path) -> None:
    text = "config:\n  p:token:\n    secure: v1:abc\nencryptionsalt: v1:its-own\n"
    (project / "Pulumi.dev.yaml").write_text(text)
    assert pulumi.stack_file("dev").read_text() == text


def test_only_commands_that_read_it_get_the_stack_file(pulumi: Pulumi) -> None:
    assert "--config-file" in pulumi.run("dev", "up", "--yes", timeout_s=10).stdout
    assert "--config-file" not in pulumi.run("dev", "stack", "output", timeout_s=10).stdout


def test_a_missing_stack_file_is_named(pulumi: Pulumi) -> None:
    with pytest.raises(PulumiError, match=r"stack prod: its file must exist .*Pulumi\.prod\.yaml"):
        pulumi.run("prod", "up", timeout_s=10)


def test_a_failed_command_raises_with_its_last_lines(pulumi: Pulumi, tools: Tools) -> None:
    script(tools.pulumi, INIT + "print('the reason'); sys.exit(3)")
    with pytest.raises(PulumiError, match=r"(?s)got 3.*the reason"):
        pulumi.run("dev", "preview", timeout_s=10)
    assert pulumi.run("dev", "preview", timeout_s=10, check=False).returncode == 3


def test_output_with_secrets_is_not_in_the_error(pulumi: Pulumi, tools: Tools) -> None:
    script(tools.pulumi, INIT + "print('hunter2'); print('the reason', file=sys.stderr); sys.exit(1)")
    with pytest.raises(PulumiError, match="the reason") as caught:
        pulumi.outputs("dev", show_secrets=True)
    assert "hunter2" not in str(caught.value)


def test_a_command_that_lasts_too_long_is_interrupted_and_not_killed(pulumi: Pulumi, tools: Tools) -> None:
    body = "import time\ntry:\n time.sleep(60)\nexcept KeyboardInterrupt:\n print('state written'); sys.exit(1)"
    script(tools.pulumi, INIT + body)
    began = time.monotonic()
    with pytest.raises(PulumiError, match=r"(?s)must end within 5 s.*state written"):
        pulumi.run("dev", "up", timeout_s=5)
    assert time.monotonic() - began < 20


def test_output_is_shown_while_it_comes(pulumi: Pulumi, tools: Tools, capsys: pytest.CaptureFixture[str]) -> None:
    result = pulumi.run("dev", "up", timeout_s=10, stream=True)
    assert result.stdout.strip() in capsys.readouterr().err


def test_a_passphrase_of_the_caller_does_not_win_over_the_sandbox(
    pulumi: Pulumi, tools: Tools, state: SandboxState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "of another project")
    names = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE", "KUBECONFIG")
    script(tools.pulumi, INIT + f"print([os.environ.get(name) for name in {names!r}])")
    seen = pulumi.run("dev", "preview", timeout_s=10).stdout.strip()
    assert seen == str([None, str(state.passphrase), str(state.kubeconfig)])


def test_the_environment_puts_the_tools_first_on_path_once(pulumi: Pulumi, state: SandboxState, tools: Tools) -> None:
    path = pulumi.environment()["PATH"].split(os.pathsep)
    assert path[:2] == [str(state.path / "bin"), str(tools.bin)]
    assert len(path) == len(set(path[:2])) + len(path[2:])


@pytest.mark.parametrize(
    ("args", "stack"),
    [
        (["up", "-s", "dev"], "dev"),
        (["up", "--stack=stg", "--yes"], "stg"),
        (["up", "--yes"], None),
        (["up", "-s"], None),
    ],
)
def test_the_stack_is_read_from_the_command_line(args: list[str], stack: str | None) -> None:
    assert named_stack(args) == stack


def test_a_user_s_pulumi_gets_the_copy_and_another_project_s_does_not(
    pulumi: Pulumi, tools: Tools, project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert pulumi.pass_through(["up", "-s", "dev"], project) == 0
    assert "--config-file" in capfd.readouterr().out
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "Pulumi.yaml").write_text("name: other\n")
    assert pulumi.pass_through(["up", "-s", "dev"], tmp_path / "other") == 0
    assert capfd.readouterr().out.strip() == "up -s dev"


def test_removing_a_stack_leaves_its_file_in_the_work_tree(
    pulumi: Pulumi, tools: Tools, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert pulumi.pass_through(["stack", "rm", "dev", "--yes"], project) == 0
    assert capfd.readouterr().out.strip() == "stack rm dev --yes --preserve-config"


def test_a_stack_of_an_example_is_its_own_and_its_file_stays_too(
    pulumi: Pulumi, state: SandboxState, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    example = project / "examples" / "two-sites"
    example.mkdir(parents=True)
    (example / "Pulumi.yaml").write_text("name: two-sites\nmain: ../..\n")
    (example / "Pulumi.dev.yaml").write_text("config: {}\n")
    pulumi.stack_file("dev")
    for words in (["-C", "examples/two-sites", "up", "-s", "dev"], ["up", "-s", "dev", "--cwd=examples/two-sites"]):
        assert pulumi.pass_through(words, project) == 0
        copy = state.pulumi / "config" / "two-sites" / "Pulumi.dev.yaml"
        assert capfd.readouterr().out.strip() == f"up --config-file {copy} -s dev"
    assert (example / "Pulumi.dev.yaml").read_text() == "config: {}\n"
    assert (state.pulumi / "init" / "two-sites" / "Pulumi.dev.yaml").exists()


def test_what_each_pulumi_of_a_sandbox_starts_with_loads_no_http_client() -> None:
    program = "import sys; import sandbox.pulumi; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, check=True, capture_output=True, text=True)
    assert {"httpx", "rich", "kubernetes", "pydantic"}.isdisjoint(loaded.stdout.split())
