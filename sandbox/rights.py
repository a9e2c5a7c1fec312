"""What the operator may do in the API server: its custom resources, Secrets and ConfigMaps, and nothing else."""

import httpx

USER = "sandbox-operator"
NAME = "rt-inventory-sandbox-operator"
_READ = ["get", "list", "watch"]
_STRIMZI = ["kafkas", "kafkanodepools", "kafkausers", "kafkatopics", "kafkamirrormaker2s"]
_OLM_WATCHED = ["subscriptions", "operatorgroups", "catalogsources"]
_OLM_OWNED = ["installplans", "clusterserviceversions"]
_MONITORING = ["podmonitors", "prometheusrules", "alertmanagerconfigs"]
RULES: list[dict[str, list[str]]] = [
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


def grant(client: httpx.Client) -> None:
    """Create the operator's ClusterRole and bind its user to it; raises httpx.HTTPStatusError if refused."""
    group = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": NAME},
        "rules": RULES,
    }
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": NAME},
        "subjects": [{"apiGroup": group, "kind": "User", "name": USER}],
    }
    for plural, body in (("clusterroles", role), ("clusterrolebindings", binding)):
        answer = client.post(f"/apis/{group}/v1/{plural}", json=body)
        if answer.status_code != httpx.codes.CONFLICT:
            answer.raise_for_status()
