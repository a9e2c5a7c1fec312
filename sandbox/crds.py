"""Custom resource definitions: Strimzi's and OLM's, applied to the API server and waited for."""

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NAME = re.compile(r"^metadata:\n(?:[ -].*\n)*?  name: \"?([a-z0-9.]+)", re.MULTILINE)
_PARALLEL = 6


class CrdError(Exception):
    """A definition cannot be read, is refused by the API server, or is not served in time."""


def install(client: httpx.Client, folders: list[Path], deadline_s: float) -> list[str]:
    """Apply all YAML files of the folders and return the definitions' names once the API server serves them.

    Server-side apply sends each file as it is, so a definition that is there already and the same stays untouched.
    """
    files = [file for folder in folders for file in sorted(folder.glob("*.yaml"))]
    if not files:
        raise CrdError(f"definitions: folders must hold YAML files (got none in {', '.join(map(str, folders))}).")
    end = time.monotonic() + deadline_s
    with ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(_installer(client, end, deadline_s), files))


def _installer(client: httpx.Client, end: float, deadline_s: float) -> Callable[[Path], str]:
    def install_one(file: Path) -> str:
        content = file.read_text(encoding="utf-8")
        found = _NAME.search(content)
        if found is None:
            raise CrdError(f"definition {file}: metadata.name must be set (got none). Remove the file; run make setup.")
        name = found[1]
        answer = client.patch(
            f"{PATH}/{name}",
            params={"fieldManager": "rt-inventory-sandbox", "force": "true"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            content=content.encode(),
        )
        if answer.is_error:
            raise CrdError(f"definition {name}: API server refused it: {answer.status_code} {answer.text[:500]}")
        while not _is_established(answer):
            if time.monotonic() > end:
                raise CrdError(f"definition {name}: must be Established within {deadline_s:.0f} s (got none yet).")
            time.sleep(0.1)
            answer = client.get(f"{PATH}/{name}")
        _wait_until_served(client, answer.json()["spec"], end)
        return name

    return install_one


def _wait_until_served(client: httpx.Client, spec: dict[str, Any], end: float) -> None:
    """An established resource's storage still needs a moment; until then a watch of the operator would be refused."""
    for version in spec["versions"]:
        path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
        while version["served"] and not client.get(path, params={"limit": 1}).is_success:
            if time.monotonic() > end:
                raise CrdError(f"definition {spec['names']['plural']}: must be served at {path} (got no list in time).")
            time.sleep(0.1)


def _is_established(answer: httpx.Response) -> bool:
    conditions = answer.json().get("status", {}).get("conditions") or []
    return any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions)
