"""Reads a stack file (Pulumi.<stack>.yaml) without Pulumi."""

import re
from pathlib import Path
from typing import Any

import yaml

from settings.errors import NAMESPACE, Problem, SettingsError
from settings.stack import Stack, parse

_NAME = re.compile(r"Pulumi\.(?P<stack>.+)\.ya?ml")


def load(path: Path) -> Stack:
    """Return the settings of a stack file; raises SettingsError with every problem.

    Keys of other namespaces belong to Pulumi's providers and are left alone.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError([Problem("", f"file {path}: must be readable ({error.strerror}).")]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise SettingsError([Problem("", f"file {path}: must be YAML ({reason}).")]) from None
    config = (document or {}).get("config") if isinstance(document, dict | None) else None
    if not isinstance(config, dict):
        raise SettingsError([Problem("", f"file {path}: config must be a mapping of keys {NAMESPACE}:....")])
    values: dict[str, Any] = {
        key.removeprefix(f"{NAMESPACE}:"): value
        for key, value in config.items()
        if isinstance(key, str) and key.startswith(f"{NAMESPACE}:")
    }
    named = _NAME.fullmatch(path.name)
    return parse(values, stack=named["stack"] if named else None)
