"""Writes a whole setting into a stack file, or takes it out, as text: everything else stays as it is.

Owns where it stands: behind the last setting, on lines of its own. Does not own what it says, nor settings of a mirror
(`stack_file.py`).
"""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ops.pulumi.stack_file import edit
from settings import NAMESPACE

_CONFIG = "config"
_INDENT = "  "
Lists = Mapping[str, list[str]]


def change_setting(file: Path, key: str, value: Lists | None, comment: str) -> None:
    """Write a setting that consists of lists, such as `fence`; None removes it. A comment stands behind its name.

    Raises OpsError if the file is written in a form that cannot be changed in place, or cannot be written.
    """
    name = f"{NAMESPACE}:{key}"
    wanted = "without it" if value is None else json.dumps({name: value})
    edit(
        file,
        lambda text: changed(text, name, value, comment),
        f"{name} must stand below `config:` on lines of its own, to be changed there (got another form). Write it by "
        f"hand ({wanted}), then run this again.",
    )


def changed(text: str, key: str, value: Lists | None, comment: str) -> str:
    """Return the text with this setting; raises ValueError if it cannot be done in place."""
    newline = "\r\n" if "\r\n" in text else "\n"
    config = _config(text)
    column = config.value[0][0].start_mark.column
    place = next((pair for pair in config.value if pair[0].value == key), None)
    if place is None and value is None:
        return text
    block = "" if value is None else _block(key, value, comment, " " * column, newline)
    if place is not None:
        begin, end = place[0].start_mark.index - place[0].start_mark.column, _line_end(text, place[1])
        result = text[:begin] + block + text[end:]
    else:
        end = _line_end(text, config.value[-1][1])
        result = text[:end] + ("" if text[:end].endswith("\n") else newline) + block + text[end:]
    if yaml.safe_load(result) != _expected(yaml.safe_load(text), key, value):
        raise ValueError(key)
    return result


def _config(text: str) -> yaml.MappingNode:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    config = next((value for key, value in pairs if key.value == _CONFIG), None)
    if not isinstance(config, yaml.MappingNode) or config.flow_style or not config.value:
        raise ValueError(_CONFIG)
    return config


def _block(key: str, value: Lists, comment: str, indent: str, newline: str) -> str:
    lines = [f"{indent}{key}: # {comment}"]
    for name, items in value.items():
        lines.append(f"{indent}{_INDENT}{name}:")
        lines += [f"{indent}{_INDENT * 2}- {json.dumps(item)}" for item in items]
    return "".join(f"{line}{newline}" for line in lines)


def _line_end(text: str, node: yaml.Node) -> int:
    """Where the last line of a node ends. The end of a block is known to YAML only by what follows it."""
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(node, yaml.MappingNode) else last
    end = node.end_mark.index
    if end and text[end - 1] == "\n":  # a block of text
        return end
    found = text.find("\n", end)
    return len(text) if found < 0 else found + 1


def _expected(document: Any, key: str, value: Lists | None) -> Any:
    wanted = copy.deepcopy(document)
    if value is None:
        wanted[_CONFIG].pop(key, None)
    else:
        wanted[_CONFIG][key] = {name: list(items) for name, items in value.items()}
    return wanted
