"""An Alertmanager's own configuration as an AlertmanagerConfig of the Prometheus Operator.

The resource calls fields otherwise, takes matchers apart, reads webhooks from Secrets only, and has no files for
templates: a text that uses one brings it along. Owns that difference, and nothing of what is routed where.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

Spec = dict[str, Any]
# Alertmanager refuses a matcher that it cannot read, and so does this.
_MATCHER = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*(?P<type>=~|!~|!=|=)\s*(?P<value>.*?)\s*")
_DEFINITION = re.compile(r'\{\{-?\s*define\s+"(?P<name>[^"]+)"\s*-?\}\}')
_USE = re.compile(r'\{\{-?\s*template\s+"(?P<name>[^"]+)"')
_BLOCK = re.compile(r"\{\{-?\s*(?P<word>define|if|range|with|block|end)\b")
_ADDRESS = ("api_url", "api_url_file")


def alertmanager_config(config: Mapping[str, Any], templates: Iterable[str], secret: str) -> Spec:
    """Return the spec: `config` is alertmanager.yml, `templates` the texts of its files. The Secret has the
    addresses under the names of the files that would hold them, as a Secret that is mounted as a folder has.

    Raises ValueError for a matcher that is none, or a text that uses a template which nobody defines.
    """
    defined = {name: text for each in templates for name, text in definitions(each).items()}

    def written(text: str) -> str:
        return with_definitions(text, defined)

    return {
        "route": _route(config["route"]),
        "receivers": [_receiver(each, written, secret) for each in config["receivers"]],
        **({"inhibitRules": [_inhibition(each) for each in found]} if (found := config.get("inhibit_rules")) else {}),
    }


def definitions(text: str) -> dict[str, str]:
    """Return what a file of Go's templates defines, each with its `define` and `end`."""
    found: dict[str, str] = {}
    depth, begin, name = 0, 0, ""
    for block in _BLOCK.finditer(text):
        if block["word"] == "end":
            depth -= 1
            if depth == 0 and name:
                found[name] = text[begin : text.index("}}", block.end()) + 2]
                name = ""
        else:
            if depth == 0 and (definition := _DEFINITION.match(text, block.start())) is not None:
                begin, name = block.start(), definition["name"]
            depth += 1
    return found


def with_definitions(text: str, defined: Mapping[str, str]) -> str:
    """Return a text with what it uses in front of it, and what that uses."""
    needed: dict[str, str] = {}
    open_names = _USE.findall(text)
    while open_names:
        name = open_names.pop(0)
        if name in needed:
            continue
        if name not in defined:
            raise ValueError(f"template {name}: must be defined (allowed {', '.join(sorted(defined)) or 'none'}).")
        needed[name] = defined[name]
        open_names += _USE.findall(defined[name])
    return "".join(needed[name] for name in sorted(needed)) + text


def _route(route: Mapping[str, Any]) -> Spec:
    found = {_camel(key): value for key, value in route.items() if key not in ("matchers", "routes")}
    if "matchers" in route:
        found["matchers"] = [_matcher(each) for each in route["matchers"]]
    if "routes" in route:
        found["routes"] = [_route(each) for each in route["routes"]]
    return found


def _matcher(text: str) -> Spec:
    found = _MATCHER.fullmatch(text)
    if found is None:
        raise ValueError(f"matcher {text}: must be label, =, !=, =~ or !~, and a value.")
    value = found["value"]
    quoted = len(value) > 1 and value[0] == value[-1] == '"'
    return {"name": found["name"], "matchType": found["type"], "value": value[1:-1] if quoted else value}


def _inhibition(rule: Mapping[str, Any]) -> Spec:
    return {
        "sourceMatch": [_matcher(each) for each in rule["source_matchers"]],
        "targetMatch": [_matcher(each) for each in rule["target_matchers"]],
        **({"equal": list(rule["equal"])} if "equal" in rule else {}),
    }


def _receiver(receiver: Mapping[str, Any], written: Callable[[str], str], secret: str) -> Spec:
    found: Spec = {"name": receiver["name"]}
    if "slack_configs" in receiver:
        found["slackConfigs"] = [
            {"apiURL": {"name": secret, "key": PurePosixPath(each["api_url_file"]).name}, **_texts(each, written)}
            for each in receiver["slack_configs"]
        ]
    return found


def _texts(value: Any, written: Callable[[str], str]) -> Any:
    """A part of a receiver with the resource's names of fields, every text with the templates that it uses."""
    if isinstance(value, Mapping):
        return {_camel(key): _texts(item, written) for key, item in value.items() if key not in _ADDRESS}
    if isinstance(value, list | tuple):
        return [_texts(item, written) for item in value]
    return written(value) if isinstance(value, str) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join("URL" if each == "url" else each.capitalize() for each in rest)
