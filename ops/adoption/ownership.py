"""Whose the fields of an adopted object are: what kubectl set of what the stack declares becomes Pulumi's.

Kubernetes keeps who set each field, and refuses a change by anybody else. The provider takes fields over that kubectl
set, but only in an update and with every label and annotation, and a preview before it ends in a conflict. So an
adoption hands over exactly what is declared. Labels and annotations that are not stay where they are.
"""

from collections.abc import Mapping, Sequence
from typing import Any

MANAGER = "pulumi-kubernetes"
"""As the provider calls itself where it applies on the client's side: it takes such fields over by itself."""
_KEPT = "rt-inventory-import"
_KUBECTL = "kubectl"
_MARKS = ("f:labels", "f:annotations")
Fields = dict[str, Any]
Entry = Mapping[str, Any]


def handed_over(managed: Sequence[Entry], metadata: Mapping[str, Any]) -> tuple[list[Fields], list[str]]:
    """Return an object's managed fields once they are handed over, and from which managers.

    `metadata` is the declared one: its labels and annotations are handed over with the spec.
    """
    entries, managers, declared, kept = [dict(each) for each in managed], [], dict[str, Fields](), dict[str, Fields]()
    rest = []
    for entry in entries:
        if not str(entry.get("manager")).startswith(_KUBECTL) or entry.get("subresource"):
            rest.append(entry)
            continue
        managers.append(str(entry["manager"]))
        ours, theirs = _split(entry.get("fieldsV1") or {}, metadata)
        for fields, found in ((ours, declared), (theirs, kept)):
            if fields:
                version = str(entry["apiVersion"])
                found[version] = _merged(found.get(version, {}), fields)
    for name, found in ((MANAGER, declared), (_KEPT, kept)):
        for version, fields in found.items():
            same = [each for each in rest if _is_update_of(each, name, version)]
            rest = [each for each in rest if each not in same]
            for each in same:
                fields = _merged(fields, each.get("fieldsV1") or {})
            rest.append(
                {
                    "manager": name,
                    "operation": "Update",
                    "apiVersion": version,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": fields,
                }
            )
    return rest, sorted(set(managers))


def _is_update_of(entry: Entry, manager: str, version: str) -> bool:
    known = entry.get("manager"), entry.get("operation"), entry.get("apiVersion"), entry.get("subresource")
    return known in ((manager, "Update", version, None), (manager, "Update", version, ""))


def _split(fields: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[Fields, Fields]:
    """What of the fields is declared, and what is not."""
    ours: Fields = {key: value for key, value in fields.items() if key != "f:metadata"}
    marks: Fields = fields.get("f:metadata") or {}
    mine: Fields = {}
    theirs: Fields = {key: value for key, value in marks.items() if key not in _MARKS}
    for kind in _MARKS:
        keys = {f"f:{key}" for key in metadata.get(kind.removeprefix("f:")) or {}}
        for owner, wanted in ((mine, True), (theirs, False)):
            # The dot is the mapping itself: whoever owns a key of it may own it too.
            found = {
                key: value for key, value in (marks.get(kind) or {}).items() if key != "." and (key in keys) is wanted
            }
            if found:
                owner[kind] = found
    if mine:
        ours["f:metadata"] = mine
    return ours, {"f:metadata": theirs} if theirs else {}


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> Fields:
    """Both sets of fields together."""
    return {
        **one,
        **{
            key: _merged(one.get(key) or {}, value) if isinstance(value, Mapping) else value
            for key, value in other.items()
        },
    }
