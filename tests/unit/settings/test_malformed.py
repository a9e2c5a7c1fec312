"""Malformed stack files: each is refused with exactly the messages that lie beside it, all of them at once.

Every file is that of a stack `stg`. Beside it lies a good `dev`, or the case's own `<case>.<stack>.yaml`.
"""

import re
import shutil
from pathlib import Path
from typing import get_args

import pytest

from contract.check_names import CHECK_NAMES
from settings.__main__ import main
from settings.platform import ApiVersion, Platform

FOLDER = Path(__file__).parent / "malformed"
CASES = sorted(path.stem for path in FOLDER.glob("*.yaml") if "." not in path.stem)
# Lists that grow with each platform and each check: what stands for them in an expected message.
GROWING = {
    "<platforms>": get_args(Platform.model_fields["type"].annotation),
    "<API versions>": get_args(ApiVersion),
    "<checks>": CHECK_NAMES,
}


def expected(case: str) -> str:
    """The messages of a case, with the lists that grow."""
    text = (FOLDER / f"{case}.txt").read_text(encoding="utf-8")
    for name, values in GROWING.items():
        text = text.replace(name, ", ".join(values))
    return text


def complaint(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What `python -m settings check Pulumi.stg.yaml` says about a case, in a folder of its own."""
    shutil.copy(FOLDER / "beside" / "dev.yaml", folder / "Pulumi.dev.yaml")
    for own in FOLDER.glob(f"{case}.*.yaml"):
        shutil.copy(own, folder / f"Pulumi.{own.stem.removeprefix(f'{case}.')}.yaml")
    shutil.copy(FOLDER / f"{case}.yaml", folder / "Pulumi.stg.yaml")
    assert main(["check", "Pulumi.stg.yaml"]) == 2
    reported = capsys.readouterr()
    assert reported.out == ""
    return reported.err


@pytest.mark.parametrize("case", CASES)
def test_a_malformed_file_is_reported_all_its_problems(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert complaint(case, tmp_path, capsys) == expected(case)


def test_there_are_many_of_them_and_several_have_three_problems_and_more() -> None:
    reported = [len(expected(case).splitlines()) - 1 for case in CASES]
    assert len(CASES) >= 50
    assert sum(count >= 3 for count in reported) >= 20


@pytest.mark.parametrize("case", CASES)
def test_a_message_says_where_what_and_what_must_be_otherwise(case: str) -> None:
    first, *problems = expected(case).splitlines()
    assert first == f"Pulumi.stg.yaml: {len(problems)} problem{'s' * (len(problems) > 1)}"
    for problem in problems:
        assert re.match(r"  (rt-inventory:[A-Za-z]+[^ ]*: |file Pulumi\.stg\.yaml: ).*must .*\.$|.*\?$", problem), (
            problem
        )
        assert "hunter2" not in problem
        assert len(problem) < 500


def test_the_good_source_beside_them_is_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(FOLDER / "beside" / "dev.yaml", tmp_path / "Pulumi.dev.yaml")
    assert main(["check", str(tmp_path / "Pulumi.dev.yaml")]) == 0
    assert capsys.readouterr().out.endswith("good (1 user, 3 topics, 0 mirrors)\n")


def test_every_expectation_has_its_file() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.txt")) == CASES
