"""Reads and edits stack files as text: the line of a resource's name, settings of a mirror, and whole settings.

An edit replaces only the characters of a changed setting. Comments, order, quotes and indentation of everything else
stay: they would not if the document were parsed and dumped.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from contract.files import alone_in, replace_text
from ops.connection import PROJECT
from ops.errors import OpsError
from ops.pulumi.events import Resource
from settings import NAMESPACE
from settings.files import parse_yaml, read_values, yaml_loader

_NAME = "name"
_CONFIG, _MIRRORS = "config", f"{NAMESPACE}:mirrors"
_PLAIN = re.compile(r"[a-z]+")
_DEFAULTS = {"active": "source", "state": "running"}
# The settings that describe a kind; they are searched before the rest of the file.
_SECTIONS = {
    "Kafka": "cluster",
    "EventStreams": "cluster",
    "KafkaNodePool": "cluster",
    "KafkaTopic": "topics",
    "KafkaUser": "users",
    "KafkaMirrorMaker2": "mirrors",
}
Setting = str | Mapping[str, list[str]]
"""A word, or lists by name, which stand on one line."""
Values = Mapping[str, Setting | None]
_Pairs = list[tuple[yaml.Node, yaml.Node]]
_INDENT = "  "
Lists = Mapping[str, list[str]]


class StackFile:
    """The lines of a stack's file. If the file does not exist or is not readable, every line is 1."""

    def __init__(self, folder: Path, stack: str) -> None:
        self.path = folder / f"Pulumi.{stack.rsplit('/', 1)[-1]}.yaml"
        try:
            self._root = yaml.compose(self.path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        except (OSError, ValueError, yaml.YAMLError):
            self._root = None

    @property
    def uri(self) -> str:
        """The file's path from the root of this repository, or its name if it lies elsewhere."""
        path = self.path.resolve()
        return path.relative_to(PROJECT).as_posix() if path.is_relative_to(PROJECT) else path.name

    def line(self, of: Resource) -> int:
        """Return the line with the resource's name, 1 if there is none."""
        section = f"{NAMESPACE}:{_SECTIONS.get(of.kind, '')}"
        places = [value for key, value in _pairs(self._root) if key.value == "config"]
        wanted = [value for place in places for key, value in _pairs(place) if key.value == section]
        names = {of.name, of.urn.rsplit("::", 1)[-1]}
        return next((line for node in (*wanted, self._root) for line in _lines(node, names)), 1)


def mirror_entry(file: Path, name: str) -> Mapping[str, Any]:
    """Return a mirror's entry in a stack file; raises OpsError unless there is exactly one, SettingsError."""
    mirrors = read_values(file).get("mirrors") or []
    found: list[dict[str, Any]] = [each for each in mirrors if isinstance(each, dict) and each.get("name") == name]
    if len(found) != 1:
        raise OpsError(f"file {file}: mirrors must hold {name} once (got {len(found)} times).")
    return found[0]


def require_as_deployed(file: Path, stack: str, mirror: str, deployed: Mapping[str, str]) -> None:
    """Raise OpsError if the stack file has other settings of a mirror than are deployed: it is not the newest."""
    entry = mirror_entry(file, mirror)
    declared = {key: entry.get(key, _DEFAULTS[key]) for key in deployed}
    different = [f"{key} {value}" for key, value in declared.items() if value != deployed[key]]
    if different:
        wanted = ", ".join(f"{key} {value}" for key, value in deployed.items())
        raise OpsError(
            f"file {file}: mirror {mirror} must be as it is deployed, {wanted} (got {', '.join(different)}). "
            f"Take the newest stack file, or carry this one out: pulumi up -s {stack}. Nothing was changed."
        )


def verification_state(file: Path) -> str | None:
    """Return the setting `verification.state` of a stack file; a folder's path is below that of the file."""
    settings = read_values(file).get("verification")
    state = settings.get("state") if isinstance(settings, dict) else None
    if not isinstance(state, str):
        return None
    return state if "://" in state else str(file.parent.resolve() / state)


def change_mirror(file: Path, mirror: str, values: Values) -> None:
    """Write settings of a mirror into a stack file; None removes one.

    Raises OpsError if a setting cannot be changed in place, such as one from an anchor, or if the file cannot be
    written.
    """
    wanted = ", ".join(f"without {key}" if value is None else f"{key}: {value}" for key, value in values.items())
    edit(
        file,
        lambda text: changed(text, mirror, values),
        f"settings of mirror {mirror} must stand in its own entry, to be changed there (got another form). Write them "
        f"by hand ({wanted}), then run this again.",
    )


def edit(file: Path, change: Callable[[str], str], refusal: str) -> None:
    """Replace the text of a stack file by what `change` makes of it; line ends stay what they are.

    Commands that edit a file at the same time lose nothing of each other's. Raises OpsError: with `refusal` if `change`
    raises ValueError or YAMLError, for then it cannot be done in place; or if the file cannot be written.
    """
    try:
        with alone_in(file.resolve().parent):
            with file.open(encoding="utf-8", newline="") as opened:
                before = opened.read()
            after = change(before)
            if after != before:
                replace_text(file, after)
    except (ValueError, yaml.YAMLError):
        raise OpsError(f"file {file}: {refusal}") from None
    except OSError as error:
        raise OpsError(
            f"file {file}: must be writable ({error.strerror}). This file was not changed. Make room, or give the "
            "right to write, then run the same command again."
        ) from error


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
    if parse_yaml(text) != _expected(parse_yaml(before), mirror, values):
        raise ValueError(mirror)
    return text


def _entry(text: str, mirror: str) -> tuple[_Pairs, bool]:
    """Return the keys and values of the mirror's entry, and whether it is written in braces (flow style)."""
    node = _composed(text)
    for key in (_CONFIG, _MIRRORS):
        node = next((value for name, value in _pairs(node) if name.value == key), None)
    entries = node.value if isinstance(node, yaml.SequenceNode) else []
    for entry in entries:
        if any(name.value == _NAME and value.value == mirror for name, value in _pairs(entry)):
            return _pairs(entry), bool(entry.flow_style)
    raise ValueError(mirror)


def _composed(text: str) -> yaml.Node | None:
    """Return the text's nodes. libyaml does not count a byte order mark in their places."""
    return yaml.compose(text, Loader=yaml.SafeLoader if text.startswith("\ufeff") else yaml_loader(text))


def _pairs(node: yaml.Node | None) -> _Pairs:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _replaced(text: str, node: yaml.Node, value: Setting) -> str:
    if node.value == value:
        return text
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        raise ValueError(value)
    return text[: node.start_mark.index] + _scalar(value) + text[node.end_mark.index :]


def _with(text: str, pairs: _Pairs, key: str, value: Setting, *, in_flow: bool) -> str:
    """Insert a new setting after the name: after the last setting a comment on something else may follow."""
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
    """Remove a setting with its line; the first of an entry, which has the dash, up to the next setting."""
    key, value = pairs[at]
    block = value.style in ("|", ">") if isinstance(value, yaml.ScalarNode) else not getattr(value, "flow_style", False)
    if block:
        raise ValueError(key.value)
    if at == 0:
        return text[: key.start_mark.index] + text[pairs[1][0].start_mark.index :]
    if in_flow:
        return text[: pairs[at - 1][1].end_mark.index] + text[value.end_mark.index :]
    line_end = re.compile(r"\n|\Z").search(text, value.end_mark.index)
    end = line_end.end() if line_end else len(text)
    return text[: key.start_mark.index - key.start_mark.column] + text[end:]


def _scalar(value: Setting) -> str:
    """Return the value as YAML; a plain word needs no quotes."""
    if not isinstance(value, str):
        return json.dumps(value)
    return value if _PLAIN.fullmatch(value) and parse_yaml(value) == value else json.dumps(value)


def _expected(document: Any, mirror: str, values: Values) -> Any:
    """Return the document that the changed text must parse to."""
    wanted = copy.deepcopy(document)
    for entry in wanted[_CONFIG][_MIRRORS]:
        if isinstance(entry, dict) and entry.get(_NAME) == mirror:
            entry.update({key: value for key, value in values.items() if value is not None})
            for key in (key for key, value in values.items() if value is None):
                entry.pop(key, None)
    return wanted


def _lines(node: yaml.Node | None, names: set[str]) -> Iterator[int]:
    if isinstance(node, yaml.MappingNode):
        # An object's own name comes before mentions of it.
        for _, value in sorted(node.value, key=lambda pair: pair[0].value != _NAME):
            yield from _lines(value, names)
    elif isinstance(node, yaml.SequenceNode):
        own = [value for item in node.value for key, value in _pairs(item) if key.value == _NAME]
        for item in (*own, *node.value):
            yield from _lines(item, names)
    elif isinstance(node, yaml.ScalarNode) and node.value in names:
        yield node.start_mark.line + 1


def change_setting(file: Path, key: str, change: Callable[[Lists], Lists | None], comment: str) -> None:
    """Replace a setting that consists of lists, such as `fence`, by what `change` makes of it as it is at that moment.

    Without the setting `change` gets no lists; None removes it. A comment stands behind its name. Raises OpsError if
    the file is written in a form that cannot be changed in place, or cannot be written.
    """
    name = f"{NAMESPACE}:{key}"

    def changed_text(text: str) -> str:
        document = parse_yaml(text)
        config = document.get(_CONFIG) if isinstance(document, dict) else None
        value = change((config.get(name) if isinstance(config, dict) else None) or {})
        try:
            return with_setting(text, name, value, comment)
        except (ValueError, yaml.YAMLError):
            wanted = "without it" if value is None else json.dumps({name: value})
            raise OpsError(
                f"file {file}: {name} must stand below `config:` on lines of its own, to be changed there (got another "
                f"form). Write it by hand ({wanted}), then run this again."
            ) from None

    edit(file, changed_text, f"{name} must be readable, to be changed there (got another form). Correct the file.")


def with_setting(text: str, key: str, value: Lists | None, comment: str) -> str:
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
    if parse_yaml(result) != _expected_setting(parse_yaml(text), key, value):
        raise ValueError(key)
    return result


def _config(text: str) -> yaml.MappingNode:
    root = _composed(text)
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


def _expected_setting(document: Any, key: str, value: Lists | None) -> Any:
    wanted = copy.deepcopy(document)
    if value is None:
        wanted[_CONFIG].pop(key, None)
    else:
        wanted[_CONFIG][key] = {name: list(items) for name, items in value.items()}
    return wanted
