"""Security contexts of the pods that this project makes: nobody's root, nothing to write but volumes, no rights."""

from components.dialects import Spec


def pod(user: int) -> Spec:
    """Security context of a pod that runs as an image's user."""
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container() -> Spec:
    """Security context of each of its containers."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
