"""`python -m components render --stack STACK --out DIR [--folder DIR]`: a stack's plain manifests, one file an object.

Exit 0, or 2 with the problems.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pulumi
import yaml

from components.rendering import RenderError, manifests
from settings import SettingsError

HEADER = "# Rendered from the stack's settings; a change here is lost at the next rendering.\n"


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as people do, line by line."""


def _lines(dumper: yaml.SafeDumper, text_: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text_, style="|" if "\n" in text_ else None)


_Dumper.add_representer(str, _lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Render a stack; return 0 if its files are written, 2 if nothing was."""
    parser = argparse.ArgumentParser(prog="python -m components", description="What the stacks consist of.")
    commands = parser.add_subparsers(dest="command", required=True)
    render = commands.add_parser("render", help="write a stack's manifests, one file an object, no secret values")
    render.add_argument("--stack", required=True, help="name of the stack, for example stg")
    render.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder for the manifests")
    render.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help="folder of the stack files")
    given = parser.parse_args(arguments)
    try:
        found = manifests(given.folder, given.stack)
    except (SettingsError, RenderError, pulumi.RunError) as error:
        sys.stderr.write(f"stack {given.stack}: cannot be rendered:\n{error}\n")
        return 2
    try:
        write(given.out, found)
    except OSError as error:
        sys.stderr.write(f"folder {given.out}: must be writable (got {error.strerror}).\n")
        return 2
    sys.stdout.write(f"{given.out}: {len(found)} manifests of stack {given.stack}\n")
    return 0


def write(folder: Path, found: Sequence[dict[str, Any]]) -> None:
    """Write one file an object and remove files of an earlier rendering whose object is gone."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {file_name(manifest): HEADER + text(manifest) for manifest in found}
    for path in folder.glob("*.yaml"):
        if path.name not in files and path.read_text(encoding="utf-8").startswith(HEADER):
            path.unlink()
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")


def file_name(manifest: dict[str, Any]) -> str:
    """Return `<kind>-<namespace>-<name>.yaml`, in lower case."""
    metadata = manifest["metadata"]
    parts = [manifest["kind"].lower(), metadata.get("namespace"), metadata["name"]]
    return "-".join(part for part in parts if part) + ".yaml"


def text(manifest: dict[str, Any]) -> str:
    """Return a manifest as YAML: its head first, everything below in order of the keys."""
    parts = [yaml.dump({key: value}, Dumper=_Dumper, width=120, allow_unicode=True) for key, value in manifest.items()]
    return "".join(parts)


if __name__ == "__main__":
    sys.exit(main())
