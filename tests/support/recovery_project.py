"""A project folder in which the commands of a recovery are typed, with one pair of stacks."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ops.cli import app
from ops.errors import OpsError
from ops.inspection import snapshot
from ops.inspection.snapshot import MirrorSnapshot
from ops.pulumi.stack import PulumiStack
from ops.recovery import changes, mirror_context
from ops.recovery.client_workloads import FollowingClients
from ops.recovery.journal import Journal
from tests.support import recovery_pair as cases
from tests.support.pulumi_program import shell_updates
from tests.support.recovery_pair import Kept, entry, known

FAILED_OVER = entry(stop={"copied": {"items-0": 9}, "boundary": {"items-0": 10}})
STACK_FILE = "config:\n  rt-inventory:mirrors:\n    - name: mm2\n      source:\n        stack: dev\n"
AFTER = f"{STACK_FILE}      active: target\n      state: stopped\n"


class Project:
    """A project folder with a Pulumi that notes its calls, one pair, its snapshot and its journal."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.declare(STACK_FILE)
        self.calls = shell_updates(folder, up="echo 'error: no brokers'; exit 255")
        self.pair = known()
        self.seen: dict[str, Any] = {}
        self.source_within_s: float | None = None
        self.journal = Kept()
        self.previewed: list[dict[str, Any]] = []
        self.undeployed: OpsError | None = None
        self.of_preview: list[str] = []
        self.workloads: dict[str, Any] = {"workloads": ["Deployment rt-inventory-stg/orders"]}
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        monkeypatch.setattr(mirror_context, "load", lambda *_: self.pair)
        monkeypatch.setattr(snapshot, "collect", self._look)
        monkeypatch.setattr(changes, "require_none", self._preview)
        monkeypatch.setattr(Journal, "load", lambda *_: self.journal)
        monkeypatch.setattr(FollowingClients, "listed", lambda _: self.workloads)

    def _preview(self, stack: PulumiStack, mirror: str, **options: Any) -> list[str]:
        self.previewed.append({"stack": stack.name, "mirror": mirror, **options})
        if self.undeployed is not None:
            raise self.undeployed
        return self.of_preview

    def declare(self, text: str) -> None:
        self.text = text
        (self.folder / "Pulumi.stg.yaml").write_text(text, encoding="utf-8")

    def _look(
        self,
        of: mirror_context.MirrorContext,
        environment: Mapping[str, str],
        say: Callable[[str], None] = print,
        source_within_s: float | None = None,
    ) -> MirrorSnapshot:
        self.source_within_s = source_within_s
        return cases.observe(of, **self.seen)

    def run(self, *arguments: str) -> Result:
        folder = [] if "--help" in arguments else ["-C", str(self.folder)]
        return CliRunner().invoke(app, [*arguments, *folder], env={"COLUMNS": "200", "TERM": "dumb"})

    def document(self, *arguments: str, code: int = 0) -> Any:
        result = self.run(*arguments, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    @property
    def unchanged(self) -> bool:
        return (
            not self.calls.exists()
            and not self.journal.written
            and (self.folder / "Pulumi.stg.yaml").read_text("utf-8") == self.text
        )
