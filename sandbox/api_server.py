"""The API server's set-up: definitions of custom resources, the operator's rights, kubeconfigs.

The operator may read and write its custom resources, Secrets and ConfigMaps, and nothing else.
"""

import base64
import json
import re
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import yaml

from sandbox.pki import KeyPair
from sandbox.state import PROJECT, write_private

_DEFINITIONS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DEFINITION_NAME = re.compile(r"^metadata:\n(?:[ -].*\n)*?  name: \"?([a-z0-9.]+)", re.MULTILINE)
_SUFFIXES = {".yaml", ".json"}
_PARALLEL = 6
_POLL_S = 0.2


class CrdError(Exception):
    """A definition cannot be read, is refused by the API server, or is not served in time."""


def install_definitions(client: httpx.Client, folders: list[Path], deadline_s: float) -> list[str]:
    """Apply all YAML and JSON files of the folders and return the definitions' names once the API server serves them.

    Server-side apply sends each file as it is, so a definition that is there already and the same stays untouched.
    """
    files = [file for folder in folders for file in sorted(folder.iterdir()) if file.suffix in _SUFFIXES]
    if not files:
        raise CrdError(
            f"definitions: folders must have YAML or JSON files (got none in {', '.join(map(str, folders))})."
        )
    end = time.monotonic() + deadline_s
    with ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(_installer(client, end, deadline_s), files))


def _installer(client: httpx.Client, end: float, deadline_s: float) -> Callable[[Path], str]:
    def install_one(file: Path) -> str:
        content = file.read_text(encoding="utf-8")
        name = definition_name(file, content)
        answer = client.patch(
            f"{_DEFINITIONS_PATH}/{name}",
            params={"fieldManager": "rt-inventory-sandbox", "force": "true"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            content=content.encode(),
        )
        if answer.is_error:
            raise CrdError(f"definition {name}: API server refused it: {answer.status_code} {answer.text[:500]}")
        _wait_until_served(client, answer.json()["spec"], end, deadline_s)
        return name

    return install_one


def definition_name(file: Path, content: str) -> str:
    """`metadata.name` of the definition in a file; raises CrdError if there is none.

    YAML, of which there are hundreds of kilobytes, is searched and not parsed.
    """
    if file.suffix == ".json":
        return str(json.loads(content)["metadata"]["name"])
    found = _DEFINITION_NAME.search(content)
    if found is None:
        raise CrdError(f"definition {file}: metadata.name must be set (got none). Remove the file; run make setup.")
    return found[1]


def _wait_until_served(client: httpx.Client, spec: dict[str, Any], end: float, deadline_s: float) -> None:
    """Ask for the resources themselves: that costs next to nothing, the definition's own status its whole text.

    A definition that is not established yet is not served, and an established one's storage still needs a moment.
    """
    for version in spec["versions"]:
        path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
        while version["served"] and not client.get(path, params={"limit": 1}).is_success:
            if time.monotonic() > end:
                raise CrdError(
                    f"definition {spec['names']['plural']}.{spec['group']}: must be served at {path} within "
                    f"{deadline_s:.0f} s (got no list). See its status: kubectl describe crd."
                )
            time.sleep(_POLL_S)


OPERATOR_USER = "sandbox-operator"
OPERATOR_ROLE = "rt-inventory-sandbox-operator"
_READ = ["get", "list", "watch"]
_STRIMZI = ["kafkas", "kafkanodepools", "kafkausers", "kafkatopics", "kafkamirrormaker2s"]
_OLM_WATCHED = ["subscriptions", "operatorgroups", "catalogsources"]
_OLM_OWNED = ["installplans", "clusterserviceversions"]
_MONITORING = ["podmonitors", "prometheusrules", "alertmanagerconfigs"]
OPERATOR_RULES: list[dict[str, list[str]]] = [
    {"apiGroups": ["kafka.strimzi.io"], "resources": _STRIMZI, "verbs": [*_READ, "patch"]},
    {"apiGroups": ["kafka.strimzi.io"], "resources": [f"{name}/status" for name in _STRIMZI], "verbs": ["patch"]},
    {"apiGroups": ["operators.coreos.com"], "resources": _OLM_WATCHED, "verbs": [*_READ, "patch"]},
    {"apiGroups": ["operators.coreos.com"], "resources": _OLM_OWNED, "verbs": [*_READ, "create", "patch", "delete"]},
    {
        "apiGroups": ["operators.coreos.com"],
        "resources": [f"{name}/status" for name in [*_OLM_WATCHED, *_OLM_OWNED]],
        "verbs": ["patch"],
    },
    {"apiGroups": ["monitoring.coreos.com"], "resources": _MONITORING, "verbs": _READ},
    {"apiGroups": [""], "resources": ["secrets"], "verbs": [*_READ, "create", "update"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": [*_READ, "create", "patch"]},
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": _READ},
    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["list", "watch"]},
]


def grant_operator_role(client: httpx.Client) -> None:
    """Create the operator's ClusterRole and bind its user to it; raises httpx.HTTPStatusError if refused."""
    group = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": OPERATOR_ROLE},
        "rules": OPERATOR_RULES,
    }
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": OPERATOR_ROLE},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": OPERATOR_ROLE},
        "subjects": [{"apiGroup": group, "kind": "User", "name": OPERATOR_USER}],
    }
    for plural, body in (("clusterroles", role), ("clusterrolebindings", binding)):
        answer = client.post(f"/apis/{group}/v1/{plural}", json=body)
        if answer.status_code != httpx.codes.CONFLICT:
            answer.raise_for_status()


CONTEXT = "rt-inventory-sandbox"


def write_kubeconfig(path: Path, server: str, authority: str, user: str, pair: KeyPair) -> None:
    """Write a kubeconfig (0600) with one cluster and one user, whose certificate and key lie in the file itself.

    The contexts that the project's stack files name are this cluster too.
    """
    from settings import contexts  # here, because most commands write none and would wait for all settings

    names = dict.fromkeys([CONTEXT, *contexts(PROJECT).values()])
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [
            {"name": CONTEXT, "cluster": {"server": server, "certificate-authority-data": _base64(authority)}}
        ],
        "users": [
            {
                "name": user,
                "user": {"client-certificate-data": _base64(pair.certificate), "client-key-data": _base64(pair.key)},
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": CONTEXT, "user": user}} for name in names],
    }
    write_private(path, yaml.safe_dump(content, sort_keys=False))


def client_tls(authority: Path, certificate: Path, key: Path) -> ssl.SSLContext:
    """A client's TLS context that trusts this authority only and shows this certificate."""
    context = ssl.create_default_context(cafile=str(authority))
    context.load_cert_chain(certificate, key)
    return context


def _base64(content: str) -> str:
    return base64.b64encode(content.encode()).decode()
