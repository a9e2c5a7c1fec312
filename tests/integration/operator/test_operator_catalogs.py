"""OLM's part of the operator: catalogs answer, groups name what they watch, a subscription installs its package."""

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config

from tests.support.waiting import wait_until

NAMESPACE, GROUP = "operator-catalogs", "operators.coreos.com"
PLURALS = {
    "CatalogSource": ("v1alpha1", "catalogsources"),
    "OperatorGroup": ("v1", "operatorgroups"),
    "Subscription": ("v1alpha1", "subscriptions"),
    "ClusterServiceVersion": ("v1alpha1", "clusterserviceversions"),
}


class Olm:
    """Objects of one namespace."""

    def __init__(self, kubeconfig: str) -> None:
        api = config.new_client_from_config(config_file=kubeconfig)
        self.custom, self.core = client.CustomObjectsApi(api), client.CoreV1Api(api)

    def create(self, kind: str, name: str, spec: dict[str, Any]) -> None:
        version, plural = PLURALS[kind]
        body = {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}
        self.custom.create_namespaced_custom_object(GROUP, version, NAMESPACE, plural, body)

    def replace_spec(self, kind: str, name: str, spec: dict[str, Any]) -> None:
        version, plural = PLURALS[kind]
        found = self.custom.get_namespaced_custom_object(GROUP, version, NAMESPACE, plural, name)
        self.custom.replace_namespaced_custom_object(GROUP, version, NAMESPACE, plural, name, found | {"spec": spec})

    def namespaces(self) -> list[str]:
        return [entry.metadata.name for entry in self.core.list_namespace().items]

    def status(self, kind: str, name: str) -> dict[str, Any]:
        version, plural = PLURALS[kind]
        found = self.custom.get_namespaced_custom_object(GROUP, version, NAMESPACE, plural, name)
        return dict(found.get("status") or {})


@pytest.fixture(scope="module")
def olm(sandbox: Any) -> Iterator[Olm]:
    olm = Olm(str(sandbox.state.kubeconfig))
    olm.core.create_namespace({"metadata": {"name": NAMESPACE, "labels": {"watched": "yes"}}})
    olm.create("OperatorGroup", "group", {})
    yield olm
    olm.core.delete_namespace(NAMESPACE)
    wait_until("the namespace is gone", lambda: NAMESPACE not in olm.namespaces())


def test_a_catalog_is_said_to_answer(olm: Olm) -> None:
    olm.create("CatalogSource", "ibm-operator-catalog", {"sourceType": "grpc", "image": "catalog:latest"})
    state = wait_until(
        "a connection state", lambda: olm.status("CatalogSource", "ibm-operator-catalog").get("connectionState")
    )
    assert state["lastObservedState"] == "READY"


@pytest.mark.parametrize(
    ("spec", "namespaces"),
    [
        ({}, [""]),
        ({"targetNamespaces": ["second", "first"]}, ["first", "second"]),
        ({"selector": {"matchLabels": {"watched": "yes"}}}, [NAMESPACE]),
    ],
)
def test_a_group_names_the_namespaces_that_its_operators_watch(
    olm: Olm, spec: dict[str, Any], namespaces: list[str]
) -> None:
    olm.replace_spec("OperatorGroup", "group", spec)
    wait_until("its namespaces", lambda: olm.status("OperatorGroup", "group").get("namespaces") == namespaces, 20)


def test_event_streams_is_installed_from_a_catalog_for_all_namespaces(olm: Olm) -> None:
    olm.replace_spec("OperatorGroup", "group", {})
    spec = {"name": "ibm-eventstreams", "channel": "v3.0", "source": "ibm-operator-catalog"}
    olm.create("Subscription", "es", spec | {"sourceNamespace": NAMESPACE})
    wait_until("the latest version", lambda: olm.status("Subscription", "es").get("state") == "AtLatestKnown", 20)
    installed = olm.status("Subscription", "es")["installedCSV"]
    assert installed == "ibm-eventstreams.v3.0.5"
    assert olm.status("ClusterServiceVersion", installed)["phase"] == "Succeeded"
