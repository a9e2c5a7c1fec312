"""The parts of a release as a CycloneDX document: the locked Python packages and the pinned jars of the images."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PACKAGE = re.compile(r"^([a-z0-9-]+)==([^\s;\\]+)((?:.*\\\n)*.*)", re.MULTILINE)
_HASH = re.compile(r"sha256:([0-9a-f]{64})")
Component = dict[str, Any]


def document(project: Path) -> str:
    """Return the document as JSON; the same for the same lock and pins."""
    lock = (project / "requirements.lock").read_text(encoding="utf-8")
    jars = [path.read_text(encoding="utf-8") for path in sorted((project / "images").glob("*/jars.txt"))]
    components = [*_packages(lock), *(each for text in jars for each in _jars(text))]
    found = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "rt-inventory"}},
        "components": components,
    }
    return json.dumps(found, indent=2) + "\n"


def _packages(lock: str) -> Iterator[Component]:
    for name, version, rest in _PACKAGE.findall(lock):
        yield _component(f"pkg:pypi/{name}@{version}", name, version, _HASH.findall(rest))


def _jars(pinned: str) -> Iterator[Component]:
    for digest, path in map(str.split, pinned.splitlines()):
        *group, name, version, _file = path.split("/")
        purl = f"pkg:maven/{'.'.join(group)}/{name}@{version}"
        yield {**_component(purl, name, version, [digest]), "group": ".".join(group)}


def _component(purl: str, name: str, version: str, digests: list[str]) -> Component:
    """One part. A release of a Python package has a file for each platform, so that it has several hashes."""
    hashes = [{"alg": "SHA-256", "content": digest} for digest in digests]
    return {"type": "library", "bom-ref": purl, "purl": purl, "name": name, "version": version, "hashes": hashes}
