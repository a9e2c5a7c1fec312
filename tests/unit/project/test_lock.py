"""The lock that pip installs from: it has what requirements.txt and constraints.txt pin, each file with its hash."""

import re
from pathlib import Path

import pytest

from sandbox.toolchain import LOCK

ROOT = Path(__file__).parents[3]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
ENTRY = re.compile(r"^[a-z0-9-]+==\S+( ; .+?)?( \\\n    --hash=sha256:[0-9a-f]{64})+$", re.MULTILINE)
WINDOWS_ONLY = {"colorama"}


def pins(*names: str) -> dict[str, str]:
    texts = ((ROOT / name).read_text(encoding="utf-8") for name in names)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for text in texts for name, version in PIN.findall(text)}


def test_it_has_the_versions_that_people_pin_and_no_other() -> None:
    locked = pins(LOCK)
    assert {name: version for name, version in locked.items() if name not in WINDOWS_ONLY} == pins(
        "requirements.txt", "constraints.txt"
    ), "run make lock"


def test_every_package_has_a_hash() -> None:
    text = (ROOT / LOCK).read_text(encoding="utf-8")
    assert len(ENTRY.findall(text)) == len(pins(LOCK))


@pytest.mark.parametrize("name", [LOCK, "requirements.txt", "constraints.txt"])
def test_no_file_names_an_index(name: str) -> None:
    assert not re.search(
        r"^-(-index-url|-extra-index-url|i|-find-links|f)\b|://", (ROOT / name).read_text("utf-8"), re.M
    )
