"""The shipped stack files in the form in which Pulumi writes them, so that `pulumi stack init` changes nothing of them.

`python -m tests.support.stack_files [FILE ...]` writes those again that differ, with the set-up's Pulumi. It cannot
know where a comment belongs: read the difference.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from sandbox.toolchain import go
from sandbox.toolchain.paths import here

from .waiting import at_most

ROOT = Path(__file__).parents[2]
WITHIN_S = at_most(120)
SALT = re.compile(r"^encryptionsalt:.*\n", re.MULTILINE)


def shipped() -> list[Path]:
    """The stack files of the project and of its examples."""
    return sorted([*ROOT.glob("Pulumi.*.yaml"), *ROOT.glob("examples/*/Pulumi.*.yaml")])


def as_pulumi_writes(file: Path) -> str:
    """What `pulumi stack init` makes of a stack file, in a copy and a backend of its own, but for the salt it adds."""
    pulumi = go.pulumi(here()).tool("pulumi")
    stack = file.name.split(".")[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "state").mkdir()
        for each in (file, file.with_name("Pulumi.yaml")):
            shutil.copy(each, folder)
        environment = {
            **os.environ,
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder}/state",
            "PULUMI_CONFIG_PASSPHRASE": "only here",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }
        command = [pulumi, "stack", "init", stack, "--no-select", "--non-interactive"]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=WITHIN_S, check=False
        )
        if done.returncode:
            raise RuntimeError(f"pulumi stack init {stack}: must exit with 0 (got {done.returncode}: {done.stderr})")
        written = (folder / file.name).read_text(encoding="utf-8")
    if not SALT.search(written):
        raise RuntimeError(f"pulumi stack init {stack}: must write a salt (got none)")
    return SALT.sub("", written)


def main(files: Iterable[Path]) -> None:
    """Write the files again that Pulumi would write otherwise."""
    for file in files:
        wanted = as_pulumi_writes(file)
        if wanted != file.read_text(encoding="utf-8"):
            file.write_text(wanted, encoding="utf-8")
            sys.stdout.write(f"written: {file}\n")


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]] or shipped())
