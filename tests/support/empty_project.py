"""A folder in which anybody's program has an empty stack `stg`, from which tests are given copies."""

import json
from pathlib import Path

from sandbox.state import PROJECT


def write(folder: Path, program: str) -> None:
    """Write the project and a folder for its state; the stack is Pulumi's to make."""
    (folder / "state").mkdir()
    runtime = {"name": "python", "options": {"virtualenv": str(PROJECT / "venv")}}
    (folder / "Pulumi.yaml").write_text(json.dumps({"name": "anybody", "runtime": runtime}), encoding="utf-8")
    (folder / "__main__.py").write_text(program, encoding="utf-8")
