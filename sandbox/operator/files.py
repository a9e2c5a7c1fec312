"""Files that may hold a secret: written whole or not at all, readable by their owner only."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def private_folder(path: Path) -> Path:
    """The folder `path`, made with mode 0700 (parents too) if it did not exist."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    return path


def write_private(path: Path, content: str) -> bool:
    """True if the file now differs from before: it holds `content`, has mode 0600 and appeared in one step."""
    if path.exists() and path.read_text(encoding="utf-8") == content:
        return False
    private_folder(path.parent)
    temporary = path.with_name(path.name + ".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(content)
    temporary.replace(path)
    return True


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file, empty if the file does not exist."""
    if not path.exists():
        return {}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write `content` as a private JSON file."""
    write_private(path, json.dumps(content, indent=1, sort_keys=True) + "\n")


def properties(values: Mapping[str, object]) -> str:
    """The text of a Java properties file, keys in the given order; backslashes and line ends are escaped."""
    return "".join(f"{_escaped_key(key)}={_escaped(value)}\n" for key, value in values.items())


def _escaped_key(key: str) -> str:
    return _escaped(key).replace(":", "\\:").replace("=", "\\=").replace(" ", "\\ ")


def _escaped(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n")
