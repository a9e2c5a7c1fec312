"""The locks that pip installs from, each file with its hash.

The project's has what requirements.txt and constraints.txt pin, the tools' what sandbox/toolchain/wheels.py names.
"""

import re
from pathlib import Path

import pytest

from sandbox.toolchain import LOCK, wheels

ROOT = Path(__file__).parents[3]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
ENTRY = re.compile(r"^[a-z0-9-]+==\S+( ; .+?)?( \\\n    --hash=sha256:[0-9a-f]{64})+$", re.MULTILINE)
WINDOWS_ONLY = {"colorama"}
TOOLS = str(wheels.LOCK.relative_to(ROOT))
LOCKS = [LOCK, TOOLS]


def pins(*names: str) -> dict[str, str]:
    texts = ((ROOT / name).read_text(encoding="utf-8") for name in names)
    return {normal(name): version for text in texts for name, version in PIN.findall(text)}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def entries(lock: Path) -> dict[str, tuple[str, str, frozenset[str]]]:
    """Name → version, marker and hashes of each package of a lock."""
    found = {}
    for entry in ENTRY.finditer(lock.read_text(encoding="utf-8")):
        pin, *hashes = entry[0].split(" \\\n    --hash=")
        release, _, marker = pin.partition(" ; ")
        name, _, version = release.partition("==")
        found[name] = version, marker, frozenset(hashes)
    return found


def test_it_has_the_versions_that_people_pin_and_no_other() -> None:
    locked = pins(LOCK)
    assert {name: version for name, version in locked.items() if name not in WINDOWS_ONLY} == pins(
        "requirements.txt", "constraints.txt"
    ), "run make lock"


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_has_a_hash(lock: str) -> None:
    assert set(entries(ROOT / lock)) == set(pins(lock)) != set()


def test_the_tools_lock_has_their_releases() -> None:
    assert {f"{name}=={version}" for name, (version, _, _) in entries(ROOT / TOOLS).items()} == {*wheels.RELEASES}, (
        "run make lock"
    )


@pytest.mark.parametrize("name", [*LOCKS, "requirements.txt", "constraints.txt"])
def test_no_file_names_an_index(name: str) -> None:
    assert not re.search(
        r"^-(-index-url|-extra-index-url|i|-find-links|f)\b|://", (ROOT / name).read_text("utf-8"), re.M
    )
