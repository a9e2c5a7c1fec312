"""A preview of a stack whose source is not up: it says that the `up` would not be what it shows."""

import json
import shutil
from pathlib import Path
from typing import Any

import pulumi
import pytest

from ...support.pulumi_engine import Engine, mirror, target, up
from ...support.recorded_program import ROOT


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_: said.append(text))
    return said


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the stack file of the source."""
    shutil.copy(ROOT / "Pulumi.dev.yaml", tmp_path / "Pulumi.dev.yaml")
    return tmp_path


def previewed(folder: Path, stacks: dict[str, Any], **source: Any) -> None:
    own = mirror()
    values = target(mirrors=[{**own, "source": {**own["source"], **source}}])
    up(Engine(preview=True, stacks=stacks), json.loads(json.dumps(values)), root=folder)


@pytest.mark.parametrize(
    ("source", "then"), [({}, "is refused"), ({"required": False}, "leaves the mirror out")], ids=["needed", "awaited"]
)
def test_a_preview_before_its_source_is_up_says_that_the_up_is_something_else(
    project: Path, warnings: list[str], source: dict[str, Any], then: str
) -> None:
    previewed(project, {}, **source)
    (reported,) = [line for line in warnings if "source stack" in line]
    assert reported == (
        "mirror mm2: its source stack dev is not up (which does not exist): this preview takes the source from "
        f"Pulumi.dev.yaml, and `pulumi up` {then} until that stack is up. Run `pulumi up -s dev` first."
    )


def test_a_source_that_has_not_exported_anything_yet_is_not_up(project: Path, warnings: list[str]) -> None:
    previewed(project, {"dev": {}})
    assert "is not up (without the outputs cluster, users, userCredentials)" in "".join(warnings)


def test_a_preview_with_its_source_up_says_nothing(project: Path, warnings: list[str]) -> None:
    previewed(project, Engine().stacks)  # type: ignore[arg-type]  # as the engine knows them
    assert [line for line in warnings if "source stack" in line] == []
