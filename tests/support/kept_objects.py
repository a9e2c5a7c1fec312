"""ConfigMaps and Leases as an API server keeps them: versions, limits and immutability of kube-apiserver 1.34."""

import base64
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.mirror_api_server import ApiServer, Object

VALUES_MAX = 1024 * 1024  # MaxSecretSize of pkg/apis/core, for the values of data and binaryData together
REQUEST_MAX = 3 * 1024 * 1024  # MaxRequestBodyBytes of k8s.io/apiserver
STORED_MAX = int(1.5 * 1024 * 1024)  # DefaultMaxRequestBytes of etcd


@dataclass
class KeptObjects(ApiServer):
    """Objects by plural and name. `refused` are methods and plurals that the account may not use."""

    resource: Object = field(default_factory=dict)
    objects: dict[tuple[str, str], Object] = field(default_factory=dict)
    refused: set[tuple[str, str]] = field(default_factory=set)
    calls: list[tuple[str, str]] = field(default_factory=list)
    version: int = 0
    lost_answers: int = 0
    """How many of the next changes are carried out without an answer."""

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if "/kafkamirrormaker2s/" in path:
            return super().answer(method, path, body)
        _, plural, name = path.partition("/namespaces/")[2].split("/") + ([""] if method == "POST" else [])
        name = name or body["metadata"]["name"]
        self.calls.append((method, name))
        if (method, plural) in self.refused:
            return 403, {"message": f"may not {method} {plural}"}
        code, found = self._answer(method, (plural, name), body)
        if method != "GET" and code == 200 and self.lost_answers:
            self.lost_answers -= 1
            return 503, {}
        return code, found

    def _answer(self, method: str, key: tuple[str, str], body: Any) -> tuple[int, Any]:
        held = self.objects.get(key)
        if method == "POST" and held is not None:
            return 409, {"message": "already exists"}
        if method != "POST" and held is None:
            return 404, {"message": "not found"}
        if method == "GET":
            return 200, held
        if method == "DELETE":
            return 200, self.objects.pop(key)
        if held is not None:
            if held.get("immutable"):
                return 422, {"message": "field is immutable when `immutable` is set"}
            if body["metadata"].get("resourceVersion") != held["metadata"]["resourceVersion"]:
                return 409, {"message": "the object has been modified"}
        values = [value.encode() for value in (body.get("data") or {}).values()]
        values += [base64.b64decode(value, validate=True) for value in (body.get("binaryData") or {}).values()]
        size = sum(map(len, values))
        if size > VALUES_MAX or size > STORED_MAX:
            return 422, {"message": f"Too long: may not be more than {VALUES_MAX} bytes"}
        if len(json.dumps(body)) > REQUEST_MAX:
            return 413, {"message": "limit is 3145728"}
        if "dryRun=All" in self.query:
            return 200, body
        self.version += 1
        uid = held["metadata"]["uid"] if held is not None else f"uid-{self.version}"
        body["metadata"] |= {"resourceVersion": str(self.version), "uid": uid}
        if key[0] == "leases":
            body["metadata"]["managedFields"] = [self._managed()]
        self.objects[key] = body
        return 200, body

    def _managed(self) -> Object:
        """Who has set the time of a renewal, and when by this server's clock."""
        at = datetime.now(UTC) + timedelta(seconds=self.clock_ahead_s)
        fields = {"f:spec": {"f:holderIdentity": {}, "f:renewTime": {}}}
        return {"manager": "me", "operation": "Update", "time": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "fieldsV1": fields}

    def config_map(self, name: str) -> Object:
        """A ConfigMap that is there."""
        return self.objects["configmaps", name]

    def names(self, plural: str = "configmaps") -> set[str]:
        """The objects of a kind that are there."""
        return {name for kind, name in self.objects if kind == plural}
