"""Custom resource definitions: Strimzi's, Event Streams' and OLM's, applied to the API server and waited for."""

import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NAME = re.compile(r"^metadata:\n(?:[ -].*\n)*?  name: \"?([a-z0-9.]+)", re.MULTILINE)
_SUFFIXES = {".yaml", ".json"}
_PARALLEL = 6
_POLL_S = 0.2


class CrdError(Exception):
    """A definition cannot be read, is refused by the API server, or is not served in time."""


def install(client: httpx.Client, folders: list[Path], deadline_s: float) -> list[str]:
    """Apply all YAML and JSON files of the folders and return the definitions' names once the API server serves them.

    Server-side apply sends each file as it is, so a definition that is there already and the same stays untouched.
    """
    files = [file for folder in folders for file in sorted(folder.iterdir()) if file.suffix in _SUFFIXES]
    if not files:
        raise CrdError(
            f"definitions: folders must hold YAML or JSON files (got none in {', '.join(map(str, folders))})."
        )
    end = time.monotonic() + deadline_s
    with ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(_installer(client, end, deadline_s), files))


def _installer(client: httpx.Client, end: float, deadline_s: float) -> Callable[[Path], str]:
    def install_one(file: Path) -> str:
        content = file.read_text(encoding="utf-8")
        name = name_in(file, content)
        answer = client.patch(
            f"{PATH}/{name}",
            params={"fieldManager": "rt-inventory-sandbox", "force": "true"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            content=content.encode(),
        )
        if answer.is_error:
            raise CrdError(f"definition {name}: API server refused it: {answer.status_code} {answer.text[:500]}")
        _wait_until_served(client, answer.json()["spec"], end, deadline_s)
        return name

    return install_one


def name_in(file: Path, content: str) -> str:
    """`metadata.name` of the definition that a file holds; raises CrdError if there is none.

    YAML, of which there are hundreds of kilobytes, is searched and not parsed.
    """
    if file.suffix == ".json":
        return str(json.loads(content)["metadata"]["name"])
    found = _NAME.search(content)
    if found is None:
        raise CrdError(f"definition {file}: metadata.name must be set (got none). Remove the file; run make setup.")
    return found[1]


def _wait_until_served(client: httpx.Client, spec: dict[str, Any], end: float, deadline_s: float) -> None:
    """Ask for the resources themselves: that costs next to nothing, the definition's own status its whole text.

    A definition that is not established yet is not served, and an established one's storage still needs a moment.
    """
    for version in spec["versions"]:
        path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
        while version["served"] and not client.get(path, params={"limit": 1}).is_success:
            if time.monotonic() > end:
                raise CrdError(
                    f"definition {spec['names']['plural']}.{spec['group']}: must be served at {path} within "
                    f"{deadline_s:.0f} s (got no list). See its status: kubectl describe crd."
                )
            time.sleep(_POLL_S)
