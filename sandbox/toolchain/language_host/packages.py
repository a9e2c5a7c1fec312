"""Prints installed packages as JSON; run by the program's own Python: `packages.py dependencies|plugins`."""

import importlib.metadata
import json
import re
import sys

DESCRIPTION = "pulumi-plugin.json"


def dependencies() -> list[dict[str, str]]:
    """Name and version of every installed package."""
    return [
        {"name": package.metadata["Name"], "version": package.version} for package in importlib.metadata.distributions()
    ]


def plugins() -> list[dict[str, str]]:
    """Name, version and server of every Pulumi provider that an installed package asks for."""
    found = []
    for package in importlib.metadata.distributions():
        if DESCRIPTION not in (package.read_text("RECORD") or DESCRIPTION):
            continue  # parsing the list of thousands of files takes longer than everything else here
        for file in package.files or []:
            if file.name == DESCRIPTION and len(file.parts) == 2:
                wish = json.loads(file.read_text())
                if wish.get("resource"):
                    found.append(_plugin(package, wish))
    return found


def _plugin(package: importlib.metadata.Distribution, wish: dict[str, str]) -> dict[str, str]:
    normal_name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
    return {
        "name": wish.get("name") or normal_name.removeprefix("pulumi-"),
        "version": "v" + (wish.get("version") or package.version).removeprefix("v"),
        "server": wish.get("server") or "",
    }


if __name__ == "__main__":
    json.dump({"dependencies": dependencies, "plugins": plugins}[sys.argv[1]](), sys.stdout)
