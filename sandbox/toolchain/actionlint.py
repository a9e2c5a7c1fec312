"""The linter of GitHub's workflows, built from a small Go module of its own. Nothing but a test needs it."""

import shutil
from pathlib import Path

from . import pins
from .cache import Entry, key_of
from .commands import Commands
from .errors import ToolchainError
from .go import ENVIRONMENT
from .place import GO_MODULE, Place
from .steps import Step

MODULE = GO_MODULE / "actionlint"
PACKAGE = "github.com/rhysd/actionlint/cmd/actionlint"
LINK = f"-s -w -X github.com/rhysd/actionlint.version={pins.ACTIONLINT}"


def built(place: Place) -> Entry:
    """The cache entry of the linter."""
    return place.entry("actionlint", f"{pins.ACTIONLINT}-{key_of(MODULE)}")


def program(place: Place) -> str:
    """Path of the linter; raises ToolchainError when it is not installed."""
    if not built(place).is_complete():
        raise ToolchainError(f"actionlint: not installed in {place.cache}. Run `make setup`.")
    return str(built(place).path / "actionlint")


def step(place: Place) -> Step:
    """Builds the linter."""

    def run(commands: Commands) -> None:
        with built(place).build() as folder:
            module = shutil.copytree(MODULE, folder / "module")
            build: list[str | Path] = [
                "go",
                "build",
                "-trimpath",
                "-ldflags",
                LINK,
                "-o",
                folder / "actionlint",
                PACKAGE,
            ]
            commands.run(build, cwd=module, env=ENVIRONMENT)
            shutil.rmtree(module)

    return Step(
        name="actionlint",
        title=f"actionlint {pins.ACTIONLINT}",
        is_done=built(place).is_complete,
        run=run,
        lane="go",
        tool="go",
    )
