"""Rules of annotations: Kubernetes accepts their keys, and none belongs to an operator or a tool."""

import re
from collections.abc import Mapping

from settings.annotations import RESERVED
from settings.errors import Problem
from settings.names import SUBDOMAIN_LENGTH_MAX, is_resource_name
from settings.wording import shown

_NAME_LENGTH_MAX = 63
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def annotations(where: str, subject: str, found: Mapping[str, str]) -> list[Problem]:
    """A problem for each key that Kubernetes or its owner would not have here."""
    problems = []
    for key in found:
        rule = _wrong(key)
        if rule is not None:
            problems.append(Problem(f"{where}.annotations[{key}]", f"{subject}: {rule}"))
    return problems


def _wrong(key: str) -> str | None:
    # Kubernetes takes capitals in a prefix too: ValidateAnnotations looks at the key in lower case.
    prefix, slash, name = key.rpartition("/")
    if len(name) > _NAME_LENGTH_MAX or not _NAME.fullmatch(name):
        return (
            f"annotations must have keys whose name, after a '/', is 1 to {_NAME_LENGTH_MAX} letters, digits, '-', '_' "
            f"and '.' with a letter or digit at both ends (got {shown(key)}). Rename it."
        )
    if slash and not is_resource_name(prefix.lower()):
        return (
            "annotations must have keys whose prefix, before the '/', is a domain of at most "
            f"{SUBDOMAIN_LENGTH_MAX} characters (got {shown(key)}). Rename it."
        )
    owner = RESERVED.get(prefix.lower())
    if owner is not None:
        return f"{key} must not be set in annotations ({owner} keeps {prefix}/ for itself). Remove it."
    return None
