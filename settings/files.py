"""Reads stack files (Pulumi.<stack>.yaml) without Pulumi, and which Kubernetes cluster each one names."""

import copy
import json
import os
import re
from collections.abc import Hashable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from settings.errors import NAMESPACE, Problem, SettingsError
from settings.parsing import KEYS
from settings.stack import Stack, parse
from settings.text import format_names, format_value

KUBECONFIG_KEY = "kubernetes:kubeconfig"
CONTEXT_KEY = "kubernetes:context"  # of Pulumi's Kubernetes provider
_NAME = re.compile(r"Pulumi\.(?P<stack>.+)\.ya?ml")


_LIBYAML: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Parses in a tenth of the time, where PyYAML is built with libyaml."""
_OPENERS_MAX = 10_000  # its composer calls itself for each level, and knows no limit


class _RepeatedKeys(yaml.constructor.SafeConstructor):
    """YAML's plain values, with a memory for keys that a mapping holds twice."""

    twice: list[tuple[str, int, int]]

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A dict of the node; remembers each key that it holds again, with both lines."""
        first: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                line = key.start_mark.line + 1
                if key.value in first:
                    self.twice.append((key.value, first[key.value], line))
                first.setdefault(key.value, line)
        return super().construct_mapping(node, deep)


class _Loader(_RepeatedKeys, yaml.SafeLoader):
    """Parses in Python: slow, with messages that this project explains."""


_FastLoader: Any = type("_FastLoader", (_RepeatedKeys, _LIBYAML), {})
"""Is tried first: what it accepts needs no message."""


def load(path: Path) -> Stack:
    """Return the settings of a stack file by itself; raises SettingsError with every problem."""
    return parse(read_values(path), stack_name(path))


def check(path: Path) -> tuple[Stack, dict[str, dict[str, Any]]]:
    """Return the settings of a stack file, held against the stack files beside it, and those files' values.

    Raises SettingsError with every problem of the file itself.
    """
    name = stack_name(path)
    others = beside(path.parent, name) if name else {}
    values = read_values(path)
    siblings = others if name else None
    clusters = kubernetes_clusters(path.parent, os.environ)
    return parse(values, name, siblings, require_siblings=True, contexts=clusters), others


def stack_name(path: Path) -> str | None:
    """The stack that a file belongs to; None if it is not named Pulumi.<stack>.yaml."""
    named = _NAME.fullmatch(path.name)
    return named["stack"] if named else None


def beside(folder: Path, stack: str | None) -> dict[str, dict[str, Any]]:
    """Values of the other stack files of a folder, by stack; those that cannot be read are left out."""
    result = {}
    for path in sorted(folder.glob("Pulumi.*.y*ml")):
        name = stack_name(path)
        if name is None or name == stack:
            continue
        try:
            result[name] = read_values(path)
        except SettingsError:
            continue
    return result


def contexts(folder: Path) -> dict[str, str]:
    """Contexts of the kubeconfig that the stack files of a folder name, by stack (`kubernetes:context`)."""
    result = {}
    for path in sorted(folder.glob("Pulumi.*.y*ml")):
        name = stack_name(path)
        try:
            context = read_config(path).get(CONTEXT_KEY) if name else None
        except SettingsError:
            continue
        if name and isinstance(context, str):
            result[name] = context
    return result


def kubernetes_clusters(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Context of each stack whose API server the kubeconfig names, by stack; of one server, the first context.

    `oc` writes a context for each project: names of contexts alone do not distinguish clusters. A stack with a
    kubeconfig of its own (`kubernetes:kubeconfig`) is left out.
    """
    servers, first, result = _servers(environment), dict[str, str](), {}
    for stack, context in contexts(folder).items():
        own = any(_has_kubeconfig(path) for path in folder.glob(f"Pulumi.{stack}.y*ml"))
        if context in servers and not own:
            result[stack] = first.setdefault(servers[context], context)
    return result


def _has_kubeconfig(path: Path) -> bool:
    try:
        return KUBECONFIG_KEY in read_config(path)
    except SettingsError:
        return False


def _servers(environment: Mapping[str, str]) -> dict[str, str]:
    """API server of each context of the kubeconfig; the first file that names one counts, as for kubectl."""
    named = environment.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
    used: dict[str, str] = {}
    clusters: dict[str, str] = {}
    for file in filter(None, named.split(os.pathsep)):
        try:
            document = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
            for one in document.get("contexts") or []:
                used.setdefault(str(one["name"]), str(one["context"]["cluster"]))
            for one in document.get("clusters") or []:
                clusters.setdefault(str(one["name"]), str(one["cluster"]["server"]).rstrip("/"))
        except (OSError, ValueError, yaml.YAMLError, AttributeError, KeyError, TypeError):
            continue  # a connection by it reports what is wrong
    return {context: clusters[cluster] for context, cluster in used.items() if cluster in clusters}


@lru_cache(maxsize=32)
def _parsed(text: str) -> tuple[Any, list[tuple[str, int, int]]]:
    """Return the document and its repeated keys. A command reads each stack file several times, and parsing is slow."""
    try:
        document, twice = _constructed((_FastLoader if yaml_loader(text) is _LIBYAML else _Loader)(text))
    except yaml.YAMLError:
        document, twice = _constructed(_Loader(text))
    json.dumps(document, default=str, skipkeys=True)  # refuses what refers to itself
    return document, twice


def _constructed(loader: _Loader) -> tuple[Any, list[tuple[str, int, int]]]:
    loader.twice = []
    return loader.get_single_data(), loader.twice


def yaml_loader(text: str) -> type[yaml.SafeLoader]:
    """Return the fastest safe loader for a text: libyaml's, unless the text may be nested too deep for it."""
    return yaml.SafeLoader if sum(map(text.count, "[{-?")) > _OPENERS_MAX else _LIBYAML


def parse_yaml(text: str) -> Any:
    """Return the one document of a YAML text, as `yaml.safe_load` does; raises yaml.YAMLError."""
    return yaml.load(text, Loader=yaml_loader(text))  # noqa: S506  # a safe one


def read_values(path: Path) -> dict[str, Any]:
    """Return a stack file's values by key, without the namespace; raises SettingsError if it is no stack file.

    Keys of other namespaces belong to Pulumi's providers and are left alone.
    """
    return {
        key.removeprefix(f"{NAMESPACE}:"): value
        for key, value in read_config(path).items()
        if isinstance(key, str) and key.startswith(f"{NAMESPACE}:")
    }


def read_config(path: Path) -> Mapping[Any, Any]:
    """Return a copy of the part `config` of a stack file, all namespaces; raises SettingsError if there is none."""
    try:
        document, twice = copy.deepcopy(_parsed(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SettingsError([Problem("", f"file {path}: must be readable ({error.strerror}).{_there(path)}")]) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise SettingsError([Problem("", f"file {path}: must be YAML ({_reason(error)}). Correct it.")]) from None
    if twice:
        raise SettingsError(
            Problem(
                "", f"file {path}: {key} must be given once (got it in line {first} and in line {second}). Remove one."
            )
            for key, first, second in twice
        )
    config = (document or {}).get("config") if isinstance(document, dict | None) else None
    if not isinstance(config, Mapping):
        keys = ", ".join(f"{NAMESPACE}:{key}" for key in KEYS)
        raise SettingsError(
            [
                Problem(
                    "",
                    f"file {path}: config must be a mapping of the keys {keys} (got {format_value(config)}). Indent "
                    "them below `config:`.",
                )
            ]
        )
    return config


def _there(path: Path) -> str:
    """Return a sentence that names the stack files in the folder of a missing one."""
    names = [one.name for one in path.parent.glob("Pulumi.*.yaml")] if path.parent.is_dir() else []
    return f" Stack files there: {format_names(names)}." if names else " There is no stack file in that folder."


def _reason(error: Exception) -> str:
    """What YAML says and where, without the line itself: it may hold a secret."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        reason = re.sub(r"\b(got|found) '[^']{2,}'", r"\1 something else", f"{error.problem or error.context}")
        return re.sub(r" '[^']{2,}'", "", reason) + where
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start}"
    if isinstance(error, RecursionError) or "Circular" in str(error):
        return "it refers to itself, or is nested too deep"
    return "a date or number in it cannot be"
