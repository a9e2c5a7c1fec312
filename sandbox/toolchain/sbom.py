"""The parts of a release as a CycloneDX document: the locked Python packages and the pinned jars of the images.

`scope` is `required` for what an image has, and `optional` for what only the project's own environment has.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PACKAGE = re.compile(r"^([a-z0-9-]+)==([^\s;\\]+)((?:.*\\\n)*.*)", re.MULTILINE)
_HASH = re.compile(r"sha256:([0-9a-f]{64})")
_EXPORTER = re.compile(r"^ARG JMX_EXPORTER_(VERSION|SHA256)=(\S+)$", re.MULTILINE)
# As a line of a jars.txt names it.
JMX_EXPORTER = "io/prometheus/jmx/jmx_prometheus_javaagent/{version}/jmx_prometheus_javaagent-{version}.jar"
Component = dict[str, Any]


def document(project: Path) -> str:
    """Return the document as JSON; the same for the same lock and pins."""
    lock = (project / "requirements.lock").read_text(encoding="utf-8")
    images = project / "images"
    locks, jars = ("".join(_texts(images, name)) for name in ("requirements.lock", "jars.txt"))
    exporter = dict(_EXPORTER.findall((images / "mirror" / "Dockerfile").read_text(encoding="utf-8")))
    jars += f"{exporter['SHA256']}  {JMX_EXPORTER.format(version=exporter['VERSION'])}\n"
    in_images = {name for name, _, _ in _PACKAGE.findall(locks)}
    components = [*_packages(lock, in_images), *_jars(jars)]
    found = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "rt-inventory"}},
        "components": components,
    }
    return json.dumps(found, indent=2) + "\n"


def _texts(images: Path, name: str) -> Iterator[str]:
    return (path.read_text(encoding="utf-8") for path in sorted(images.glob(f"*/{name}")))


def _packages(lock: str, in_images: set[str]) -> Iterator[Component]:
    for name, version, rest in _PACKAGE.findall(lock):
        found = _component(f"pkg:pypi/{name}@{version}", name, version, _HASH.findall(rest))
        yield {**found, "scope": "required" if name in in_images else "optional"}


def _jars(pinned: str) -> Iterator[Component]:
    for digest, path in map(str.split, pinned.splitlines()):
        *group, name, version, _file = path.split("/")
        purl = f"pkg:maven/{'.'.join(group)}/{name}@{version}"
        yield {**_component(purl, name, version, [digest]), "group": ".".join(group), "scope": "required"}


def _component(purl: str, name: str, version: str, digests: list[str]) -> Component:
    """One part. A release of a Python package has a file for each platform, so that it has several hashes."""
    hashes = [{"alg": "SHA-256", "content": digest} for digest in digests]
    return {"type": "library", "bom-ref": purl, "purl": purl, "name": name, "version": version, "hashes": hashes}
