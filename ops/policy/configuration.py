"""The files that configure the policy pack for a stack, in the order in which they count.

First comes the pack's own `config.<stack>.json`, which the pack reads itself and only for stacks of the project around
it. On top go `policy.<stack>.json` beside the stack file, and last a file that is given. Pulumi takes one file, so the
last two are merged if both are there. What is wrong with rules and options is reported by the pack.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ops.errors import OpsError

Configuration = dict[str, Any]
_ALL = "all"


def files(pack: Path, folder: Path, stack: str, given: Path | None) -> list[Path]:
    """Return every file that configures the pack for a stack of the project in `folder`, the last one counts most."""
    own = pack / f"config.{_short(stack)}.json"
    return [*([own] if own.is_file() and _configures(pack, folder) else []), *on_top(folder, stack, given)]


def on_top(folder: Path, stack: str, given: Path | None) -> list[Path]:
    """Return the files that the pack does not find by itself."""
    beside = folder / f"policy.{_short(stack)}.json"
    return [*([beside] if beside.is_file() else []), *([given] if given else [])]


def for_pulumi(chosen: Sequence[Path], scratch: Path) -> list[str]:
    """Return Pulumi's options for these files; two of them are merged into a file in the folder `scratch`."""
    if not chosen:
        return []
    file = chosen[0]
    if len(chosen) > 1:
        file = scratch / "policy.json"
        file.write_text(json.dumps(merged(chosen)), encoding="utf-8")
    return ["--policy-pack-config", str(file.resolve())]


def merged(chosen: Sequence[Path]) -> Configuration:
    """Return one configuration of several files: of a rule that two configure, the later options and level count."""
    found: Configuration = {}
    for file in chosen:
        content = read(file)
        if "enforcementLevel" in _as_options(content.get(_ALL, {})):  # the later file's level counts for all rules
            found = {rule: kept for rule, settings in found.items() if (kept := _without_level(settings))}
        for rule, settings in content.items():
            options = {**_as_options(found.get(rule, {})), **_as_options(settings)}
            found[rule] = options if isinstance(found.get(rule), dict) or isinstance(settings, dict) else settings
    return found


def read(file: Path) -> Configuration:
    """Return the content of a file; raises OpsError if it holds no object."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise OpsError(f"file {file}: must be a configuration that exists ({error.strerror}).") from error
    except ValueError as error:
        raise OpsError(f"file {file}: must be JSON ({error}).") from error
    if not isinstance(content, dict):
        raise OpsError(f"file {file}: must hold an object with a key per rule (got {type(content).__name__}).")
    return content


def _without_level(settings: object) -> Configuration:
    return {key: value for key, value in _as_options(settings).items() if key != "enforcementLevel"}


def _as_options(settings: object) -> Configuration:
    return dict(settings) if isinstance(settings, dict) else {"enforcementLevel": settings}


def _short(stack: str) -> str:
    """A stack's name without organization and project."""
    return stack.rsplit("/", 1)[-1]


def _configures(pack: Path, folder: Path) -> bool:
    """Whether the pack's own files are for stacks of this project. They are for any if the pack lies in no project."""
    around, project = _name(pack.resolve().parent), _name(folder)
    return around is None or project is None or around == project


def _name(folder: Path) -> str | None:
    file = folder / "Pulumi.yaml"
    if not file.is_file():
        return None
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError):
        return None  # Pulumi says what is wrong with it
    return str(content["name"]) if isinstance(content, dict) and "name" in content else None
