"""An API server that holds Secrets and custom resources, with server-side apply and an operator that is content."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from tests.support.mirror_api_server import ApiServer, Object

MANAGER = "pulumi-kubernetes-1a2b3c4d"


@dataclass
class AppliedObjects(ApiServer):
    """Objects by plural and name. Each apply takes away what its manager had and no longer has.

    One that names a resourceVersion which the object no longer has is answered by 409, as kube-apiserver 1.34 does.
    `before_apply` acts before each.
    """

    resource: Object = field(default_factory=dict)
    objects: dict[tuple[str, str], Object] = field(default_factory=dict)
    managers: list[str] = field(default_factory=list)
    ready: bool = True
    before_apply: Callable[[Object], None] = lambda _: None
    changes: int = 0

    def hold(self, plural: str, document: Mapping[str, Any], manager: str = MANAGER) -> None:
        """Hold an object as a manager has applied it."""
        held = copy.deepcopy(dict(document))
        held["metadata"]["managedFields"] = [_entry(manager, held)]
        self.touch(held)
        self.objects[plural, held["metadata"]["name"]] = held
        self._observe(held)

    def touch(self, held: Object) -> None:
        """Give an object another version, as each change does."""
        self.changes += 1
        held["metadata"]["resourceVersion"] = str(self.changes)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        plural, *rest = path.partition("/namespaces/")[2].split("/")[1:]
        if not rest:
            return 200, {"items": [held for (of, _), held in self.objects.items() if of == plural]}
        (name,) = rest
        held = self.objects.get((plural, name))
        if method == "PATCH":
            query = parse_qs(self.query)
            assert query["force"][0].lower() == "true"
            self.before_apply(held or {})
            version = body["metadata"].get("resourceVersion")
            if version is not None and version != (held or {})["metadata"]["resourceVersion"]:
                return 409, {"message": "the object has been modified"}
            held = self._apply(held, body, query["fieldManager"][0])
            self.objects[plural, name] = held
            self._observe(held)
        return (404, {"message": "not found"}) if held is None else (200, held)

    def _apply(self, held: Object | None, body: Object, manager: str) -> Object:
        self.managers.append(manager)
        found = copy.deepcopy(held or {})
        entries = found.get("metadata", {}).pop("managedFields", [])
        for entry in entries:
            if entry["manager"] == manager:
                _remove(found, entry["fieldsV1"])
        _merge(found, body)
        others = [entry for entry in entries if entry["manager"] != manager]
        found["metadata"]["managedFields"] = [*others, _entry(manager, body)]
        self.touch(found)
        if (held or {}).get("spec") != found.get("spec"):
            found["metadata"]["generation"] = found["metadata"].get("generation", 1) + 1
        return found

    def _observe(self, held: Object) -> None:
        """The operator sees what is asked for."""
        if "spec" in held:
            seen = held["metadata"].get("generation", 1)
            status = {"type": "Ready", "status": str(self.ready)}
            held["status"] = {"observedGeneration": seen, "conditions": [status]}


def _entry(manager: str, document: Mapping[str, Any]) -> Object:
    own = {key: value for key, value in document.items() if key not in ("apiVersion", "kind", "status")}
    metadata = {key: value for key, value in own["metadata"].items() if key in ("labels", "annotations") and value}
    own = {**own, "metadata": metadata} if metadata else {key: own[key] for key in own if key != "metadata"}
    return {"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": _fields(own)}


def _fields(value: Any) -> Object:
    return {f"f:{key}": _fields(below) for key, below in value.items()} if isinstance(value, Mapping) else {}


def _remove(document: Object, fields: Mapping[str, Any]) -> None:
    for key, below in ((key.removeprefix("f:"), below) for key, below in fields.items()):
        if below and isinstance(document.get(key), dict):
            _remove(document[key], below)
        else:
            document.pop(key, None)


def _merge(into: Object, body: Mapping[str, Any]) -> None:
    for key, value in body.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = copy.deepcopy(value)
