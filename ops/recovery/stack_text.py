"""Changes settings of a mirror in the text of a stack file, and nothing else of it.

Only the characters of a changed setting are replaced: comments, order, quotes and indentation of everything else stay,
as they do not if the document is read and written anew.
"""

import copy
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ops.errors import OpsError
from settings import NAMESPACE

_NAME = "name"
_CONFIG, _MIRRORS = "config", f"{NAMESPACE}:mirrors"
_PLAIN = re.compile(r"[a-z]+")
Values = Mapping[str, str | None]
_Pairs = list[tuple[yaml.Node, yaml.Node]]


def change_mirror(file: Path, mirror: str, values: Values) -> None:
    """Write settings of a mirror into a stack file; None takes one out. The mirror must be there, by its name.

    Raises OpsError if a setting cannot be changed in place, such as one that comes from an anchor, or if the file
    cannot be written.
    """
    try:
        with file.open(encoding="utf-8", newline="") as opened:  # line ends stay what they are
            before = opened.read()
        after = changed(before, mirror, values)
        if after != before:
            replace_text(file.resolve(), after)
    except (ValueError, yaml.YAMLError):
        wanted = ", ".join(f"without {key}" if value is None else f"{key}: {value}" for key, value in values.items())
        raise OpsError(
            f"file {file}: settings of mirror {mirror} must stand in its own entry, to be changed there (got another "
            f"form). Write them by hand ({wanted}), then run this again."
        ) from None
    except OSError as error:
        raise OpsError(f"file {file}: must be writable ({error.strerror}). Nothing was changed.") from error


def changed(text: str, mirror: str, values: Values) -> str:
    """Return the text with these settings of the mirror; raises ValueError if it cannot be done in place."""
    before = text
    for key, value in values.items():
        pairs, in_flow = _entry(text, mirror)
        present = next((at for at, (name, _) in enumerate(pairs) if name.value == key), None)
        if value is None:
            text = text if present is None else _without(text, pairs, present, in_flow=in_flow)
        elif present is None:
            text = _with(text, pairs, key, value, in_flow=in_flow)
        else:
            text = _replaced(text, pairs[present][1], value)
    if yaml.safe_load(text) != _expected(yaml.safe_load(before), mirror, values):
        raise ValueError(mirror)
    return text


def replace_text(file: Path, text: str) -> None:
    """Write a file at once: whoever reads it sees the old text or the new one, never a part."""
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as written:
            written.write(text)
            written.flush()
            os.fsync(written.fileno())
        Path(name).chmod(mode)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _entry(text: str, mirror: str) -> tuple[_Pairs, bool]:
    """The mirror's keys and values as they stand in the text, and whether they stand in braces."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for key in (_CONFIG, _MIRRORS):
        node = next((value for name, value in _pairs(node) if name.value == key), None)
    entries = node.value if isinstance(node, yaml.SequenceNode) else []
    for entry in entries:
        if any(name.value == _NAME and value.value == mirror for name, value in _pairs(entry)):
            return _pairs(entry), bool(entry.flow_style)
    raise ValueError(mirror)


def _pairs(node: yaml.Node | None) -> _Pairs:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _replaced(text: str, node: yaml.Node, value: str) -> str:
    if node.value == value:
        return text
    return text[: node.start_mark.index] + _scalar(value) + text[node.end_mark.index :]


def _with(text: str, pairs: _Pairs, key: str, value: str, *, in_flow: bool) -> str:
    """Put a new setting behind the name: what stands behind the last one may be a comment on something else."""
    first = pairs[0][0].start_mark
    name = next(value for key, value in pairs if key.value == _NAME)
    end = name.end_mark.index
    if in_flow:
        return f"{text[:end]}, {key}: {_scalar(value)}{text[end:]}"
    line_end = re.compile(r"\r?\n|\Z").search(text, end)
    at = line_end.start() if line_end else len(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    return f"{text[:at]}{newline}{' ' * first.column}{key}: {_scalar(value)}{text[at:]}"


def _without(text: str, pairs: _Pairs, at: int, *, in_flow: bool) -> str:
    """Take a setting out with its line; the first of an entry, which has the dash, up to the next one."""
    key, value = pairs[at]
    if not isinstance(value, yaml.ScalarNode) or value.style in ("|", ">"):
        raise ValueError(key.value)
    if at == 0:
        return text[: key.start_mark.index] + text[pairs[1][0].start_mark.index :]
    if in_flow:
        return text[: pairs[at - 1][1].end_mark.index] + text[value.end_mark.index :]
    line_end = re.compile(r"\n|\Z").search(text, value.end_mark.index)
    end = line_end.end() if line_end else len(text)
    return text[: key.start_mark.index - key.start_mark.column] + text[end:]


def _scalar(value: str) -> str:
    """The value as YAML reads it again; the words that are set here need no quotes."""
    return value if _PLAIN.fullmatch(value) and yaml.safe_load(value) == value else json.dumps(value)


def _expected(document: Any, mirror: str, values: Values) -> Any:
    """The document that the changed text must hold."""
    wanted = copy.deepcopy(document)
    for entry in wanted[_CONFIG][_MIRRORS]:
        if isinstance(entry, dict) and entry.get(_NAME) == mirror:
            entry.update({key: value for key, value in values.items() if value is not None})
            for key in (key for key, value in values.items() if value is None):
                entry.pop(key, None)
    return wanted
