"""The locks that pip installs from, each file with its hash.

The project's has what requirements.txt and constraints.txt pin; an image's is the part of it that its packages need.
"""

import re
import shlex
from importlib import metadata
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement

from sandbox.toolchain import LOCK, wheels

ROOT = Path(__file__).parents[3]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
ENTRY = re.compile(r"^[a-z0-9-]+==\S+( ; .+?)?( \\\n    --hash=sha256:[0-9a-f]{64})+$", re.MULTILINE)
WINDOWS_ONLY = {"colorama"}
TOOLS = str(wheels.LOCK.relative_to(ROOT))
IMAGES = sorted(file.parent for file in ROOT.glob("images/*/packages.txt"))
LOCKS = [LOCK, TOOLS, *(str((image / LOCK).relative_to(ROOT)) for image in IMAGES)]
of_each_image = pytest.mark.parametrize("image", IMAGES, ids=[image.name for image in IMAGES])


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


def needed(names: set[str]) -> set[str]:
    """Packages with all that they bring along on this machine."""
    pending, seen = sorted(names), set[str]()
    while pending:
        if (name := normal(pending.pop())) in seen:
            continue
        seen.add(name)
        for each in map(Requirement, metadata.requires(name) or []):
            if each.marker is None or each.marker.evaluate({"extra": ""}):
                pending.append(each.name)
    return seen


def test_it_has_the_versions_that_people_pin_and_no_other() -> None:
    locked = pins(LOCK)
    assert {name: version for name, version in locked.items() if name not in WINDOWS_ONLY} == pins(
        "requirements.txt", "constraints.txt"
    ), "run make lock"


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_has_a_hash(lock: str) -> None:
    assert set(entries(ROOT / lock)) == set(pins(lock)) != set()


@of_each_image
def test_an_images_lock_is_what_its_packages_need_and_no_more(image: Path) -> None:
    wanted = needed(set((image / "packages.txt").read_text(encoding="utf-8").split()))
    here = {name for name, (_, marker, _) in entries(image / LOCK).items() if not marker or Marker(marker).evaluate()}
    assert here == wanted, "run make lock"


@of_each_image
def test_an_image_installs_the_very_files_of_the_projects_lock(image: Path) -> None:
    project, own = entries(ROOT / LOCK), entries(image / LOCK)
    differing = [name for name in own if name not in project or own[name][::2] != project[name][::2]]
    assert not differing, "run make lock"


@of_each_image
def test_an_image_installs_nothing_that_its_lock_does_not_have(image: Path) -> None:
    text = re.sub(r"\\\n\s*", "", (image / "Dockerfile").read_text(encoding="utf-8"))
    installs = [shlex.split(line) for line in re.findall(r"pip install [^&\n]*", text)]
    assert installs
    for words in installs:
        assert {"--require-hashes", "--no-deps"} <= set(words)
        # What pip fetches to build a package has no hash.
        assert words[-1].endswith("/build.txt") or {"--no-build-isolation", ":all:"} & set(words)
        assert words[-2] == "--requirement"


def test_the_tools_lock_has_their_releases() -> None:
    assert {f"{name}=={version}" for name, (version, _, _) in entries(ROOT / TOOLS).items()} == {*wheels.RELEASES}, (
        "run make lock"
    )


@pytest.mark.parametrize("name", [*LOCKS, "requirements.txt", "constraints.txt"])
def test_no_file_names_an_index(name: str) -> None:
    assert not re.search(
        r"^-(-index-url|-extra-index-url|i|-find-links|f)\b|://", (ROOT / name).read_text("utf-8"), re.M
    )
