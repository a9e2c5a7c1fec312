"""Whose the fields of an adopted object are: what kubectl set of what the stack declares becomes Pulumi's."""

from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from ops.adoption.live import handed_over, take_over
from ops.errors import OpsError

API = "kafka.strimzi.io/v1"
DECLARED = {"labels": {"strimzi.io/cluster": "legacy"}, "annotations": {"pulumi.com/waitFor": "x"}}


def entry(manager: str, fields: dict[str, Any], operation: str = "Update", **more: str) -> dict[str, Any]:
    known = {"manager": manager, "operation": operation, "apiVersion": API, "fieldsType": "FieldsV1"}
    return {**known, "fieldsV1": fields, **more}


STATUS = entry("strimzi", {"f:status": {}}, subresource="status")
APPLIED = entry(
    "kubectl-client-side-apply",
    {
        "f:metadata": {
            "f:labels": {".": {}, "f:strimzi.io/cluster": {}, "f:team": {}},
            "f:annotations": {".": {}, "f:owner": {}},
        },
        "f:spec": {"f:authorization": {"f:acls": {}}},
    },
)
EDITED = entry("kubectl-edit", {"f:spec": {"f:authorization": {"f:type": {}}, "f:quotas": {}}})


def test_what_kubectl_set_becomes_pulumis_and_labels_that_are_not_declared_stay() -> None:
    entries, managers = handed_over([STATUS, APPLIED, EDITED], DECLARED)
    assert managers == ["kubectl-client-side-apply", "kubectl-edit"]
    spec = {"f:authorization": {"f:acls": {}, "f:type": {}}, "f:quotas": {}}
    assert entries == [
        STATUS,
        entry("pulumi-kubernetes", {"f:spec": spec, "f:metadata": {"f:labels": {"f:strimzi.io/cluster": {}}}}),
        entry("rt-inventory-import", {"f:metadata": {"f:labels": {"f:team": {}}, "f:annotations": {"f:owner": {}}}}),
    ]


def test_what_pulumi_had_is_kept_and_other_managers_are_left_alone() -> None:
    mine = entry("pulumi-kubernetes", {"f:metadata": {"f:annotations": {"f:pulumi.com/waitFor": {}}}})
    argo = entry("argocd-controller", {"f:spec": {"f:quotas": {}}}, operation="Apply")
    entries, managers = handed_over([mine, argo, EDITED], DECLARED)
    assert managers == ["kubectl-edit"]
    assert entries == [argo, entry("pulumi-kubernetes", {**EDITED["fieldsV1"], **mine["fieldsV1"]})]
    assert handed_over([mine, argo], DECLARED) == ([mine, argo], [])


class Api:
    """An API server that answers patches with these errors first; it keeps the last patch."""

    def __init__(self, *errors: int) -> None:
        self.errors, self.reads, self.patch = list(errors), 0, dict[str, Any]()

    def get_namespaced_custom_object(self, *place: str, **_: Any) -> dict[str, Any]:
        assert place == ("kafka.strimzi.io", "v1", "legacy", "kafkausers", "reader")
        self.reads += 1
        return {"metadata": {"resourceVersion": str(self.reads), "managedFields": [APPLIED]}}

    def patch_namespaced_custom_object(self, *arguments: Any, **_: Any) -> None:
        if self.errors:
            raise ApiException(status=self.errors.pop(0), reason="no")
        self.patch = arguments[-1]["metadata"]


LIVE = {"apiVersion": API, "kind": "KafkaUser", "metadata": {"namespace": "legacy", "name": "reader"}}


def test_a_status_that_the_operator_writes_meanwhile_is_no_obstacle() -> None:
    api: Any = Api(409, 409)
    assert take_over(api, LIVE, DECLARED) == ["kubectl-client-side-apply"]
    assert (api.reads, api.patch["resourceVersion"]) == (3, "3")
    assert [each["manager"] for each in api.patch["managedFields"]] == ["pulumi-kubernetes", "rt-inventory-import"]


def test_without_the_right_to_patch_the_error_names_the_object() -> None:
    api: Any = Api(403)
    with pytest.raises(OpsError, match=r"KafkaUser reader: its managedFields must be writable \(403"):
        take_over(api, LIVE, DECLARED)
