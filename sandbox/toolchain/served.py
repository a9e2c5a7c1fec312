"""What the sandbox's API server serves: one definition a kind with the API versions of both old and new releases.

A resource is kept as it was written, in a version that nobody can ask for: the schemas of v1 and v1beta2 differ, and
the one that is stored decides which fields survive. So a resource has to be read in the version it was written in,
and its status written in that version too: whoever writes through the other one drops what that one does not know.
"""

import copy
from typing import Any

from .crd_generator import V1, V1BETA2
from .event_streams import Definition, version_of

STORED = "stored"
_KEPT_WHOLE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def both_versions(v1: Definition, v1beta2: Definition) -> Definition:
    """One definition of a kind that serves v1 and v1beta2 and loses no field of either."""
    stored = {
        "name": STORED,
        "served": False,
        "storage": True,
        "schema": {"openAPIV3Schema": _KEPT_WHOLE},
        "subresources": version_of(v1, V1).get("subresources", {}),
    }
    served = [version_of(v1, V1), version_of(without_descriptions(v1beta2), V1BETA2)]
    result = copy.deepcopy(v1)
    result["spec"]["versions"] = [*(version | {"served": True, "storage": False} for version in served), stored]
    result["spec"]["conversion"] = {"strategy": "None"}
    return result


def without_descriptions(definition: Definition) -> Definition:
    """A definition without the texts in its schemas: they are most of it, and the API server keeps several copies."""
    result = copy.deepcopy(definition)
    for version in result["spec"]["versions"]:
        version["schema"] = _bare(version["schema"])
    return result


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        # A field that is called description has a schema, which is no text.
        return {
            key: _bare(inner) for key, inner in value.items() if not (key == "description" and isinstance(inner, str))
        }
    if isinstance(value, list):
        return [_bare(inner) for inner in value]
    return value
