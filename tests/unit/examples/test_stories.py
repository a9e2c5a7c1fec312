"""The stories' scripts as files, what they share, and the copies that they are played with."""

import subprocess
from pathlib import Path

import pytest
import yaml

from examples.__main__ import Example, examples, main
from settings.__main__ import main as settings
from tests.support import page_commands as shown

ROOT = Path(__file__).parents[3]
STORIES = [pytest.param(each, id=each.name) for each in examples() if each.story.exists()]


def bash(*lines: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run lines as a story would."""
    (folder / "Pulumi.yaml").touch()
    script = folder / "example" / "story.sh"
    script.parent.mkdir(exist_ok=True)
    script.write_text("\n".join([f". {ROOT}/examples/story.sh", f"cd {folder}", *lines]), encoding="utf-8")
    command = ["bash", str(script), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def keys(folder: Path, name: str, *ids: str) -> None:
    """A file as --keys-out writes it."""
    lines = (f"0\t{offset}\t{each}\n" for offset, each in enumerate(ids))
    (folder / name).write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize("example", STORIES)
def test_the_readme_shows_how_to_play_it(example: Example) -> None:
    name = example.name
    readme = example.folder / "README.md"
    assert "\n## Play the story\n" in readme.read_text(encoding="utf-8")
    assert shown.in_blocks(readme) == [
        f"venv/bin/python -m examples copy {name} /tmp/{name} --small",
        f"examples/{name}/story.sh /tmp/{name}",
    ]


@pytest.mark.parametrize("example", STORIES)
def test_it_can_be_started_and_needs_no_sandbox(example: Example) -> None:
    assert example.story.stat().st_mode & 0o111
    for script in (example.story, ROOT / "examples" / "story.sh"):
        assert "sandbox" not in script.read_text(encoding="utf-8")


@pytest.mark.parametrize("example", STORIES)
def test_it_ends_with_what_it_promises(example: Example) -> None:
    lines = example.story.read_text(encoding="utf-8").splitlines()
    last = lines[lines.index('chapter "What came of it"') :]
    assert any(line.startswith("promise ") and "lost" in line and "-eq 0" in line for line in last)


@pytest.mark.parametrize("size", [[], ["--small"]], ids=["as it is", "small"])
@pytest.mark.parametrize("example", STORIES)
def test_its_copies_are_good(
    example: Example, size: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "copy"
    assert main(["copy", example.name, str(folder), *size]) == 0
    files = [folder / f"Pulumi.{stack}.yaml" for stack in example.stacks]
    assert capsys.readouterr().out.split() == [str(file) for file in files]
    assert settings(["check", *map(str, files)]) == 0, capsys.readouterr().err
    same = all(file.read_bytes() == (example.folder / file.name).read_bytes() for file in files)
    assert same is not bool(size)
    project = yaml.safe_load((folder / "Pulumi.yaml").read_text(encoding="utf-8"))
    assert (project["main"], project["name"]) == (str(ROOT), example.name)
    assert Path(project["runtime"]["options"]["virtualenv"]) == ROOT / "venv"


def test_a_copy_overwrites_nothing_and_is_small_only_to_be_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["copy", "us-europe-tight", str(tmp_path)]) == 2
    assert f"folder {tmp_path}: must not exist yet" in capsys.readouterr().err
    assert main(["copy", "cloud-to-strimzi", str(tmp_path / "new"), "--small"]) == 2
    assert "example cloud-to-strimzi: must have a story to be small" in capsys.readouterr().err


def test_a_story_without_its_copy_says_what_to_type(tmp_path: Path) -> None:
    for arguments, message in (
        ([], "python -m examples copy NAME FOLDER"),
        ([str(tmp_path)], "must hold a Pulumi project"),
    ):
        command = [str(ROOT / "examples" / "us-europe-tight" / "story.sh"), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 2
        assert message in result.stderr


def test_lost_and_repeated_records_are_counted_by_their_ids(tmp_path: Path) -> None:
    keys(tmp_path, "sent", "a", "b", "c", "d")
    keys(tmp_path, "here", "a", "b")
    keys(tmp_path, "there", "b", "c", "of-somebody-else")
    result = bash("lost sent here there", "again here there", "ids here there | wc -l", folder=tmp_path)
    assert result.stdout.split() == ["1", "1", "4"]


def test_a_promise_that_does_not_hold_ends_the_story(tmp_path: Path) -> None:
    result = bash("promise held 3 -le 3", "promise 'records lost' 2 -eq 0", "echo beyond", folder=tmp_path)
    assert result.returncode == 1
    assert result.stdout.split() == ["held", "3"]
    assert "records lost: must be exactly 0 (got 2). The story does not hold." in result.stderr


def test_a_command_that_fails_ends_the_story_and_what_is_in_the_background(tmp_path: Path) -> None:
    lines = 'begin sleep 300; echo "${running[0]}" > pid', "run false", "echo beyond"
    result = bash(*lines, folder=tmp_path)
    assert result.returncode == 1
    assert "beyond" not in result.stdout
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_what_is_in_the_background_ends_although_the_first_signal_is_lost(tmp_path: Path) -> None:
    deaf = """begin bash -c 'trap "trap - TERM" TERM; touch begun; while :; do sleep 0.1; done'"""
    lines = deaf, 'echo "${running[0]}" > pid', "until [ -f begun ]; do sleep 0.1; done", "run false"
    assert bash(*lines, folder=tmp_path).returncode == 1
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_a_wait_has_an_end(tmp_path: Path) -> None:
    result = bash("wait_for 1 'the copies' bash -c 'echo none yet; exit 1'", "echo beyond", folder=tmp_path)
    assert result.returncode == 1
    assert "the copies: must come in time. The last answer: none yet" in result.stderr
