"""The stack that a mirror copies from, read by StackReference: address, authority and user of its cluster.

Owns the message when that stack is not up yet. Does not own anything of that stack.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from settings.mirrors import Mirror

_NEEDED = ("cluster", "clusterCaCertificate", "users", "userPasswords")


@dataclass(frozen=True, kw_only=True)
class SourceCluster:
    """What a mirror needs of its source. Names are known while the program runs, secrets are Pulumi secrets."""

    name: str
    bootstrap_servers: pulumi.Output[str]
    ca_certificate: pulumi.Output[str]
    user_secret: str
    user_secret_key: str
    password: pulumi.Output[str]


def source_cluster(mirror: Mirror) -> SourceCluster:
    """Return the source of a mirror; raises RunError if that stack is not up or does not have the user.

    Asks the engine before the first resource is registered, so that nothing is created when the answer is no.
    """
    stack = mirror.source.stack
    full_name = f"{pulumi.get_organization()}/{pulumi.get_project()}/{stack}"
    outputs = _outputs(mirror, full_name)
    cluster, users = outputs["cluster"], outputs["users"]
    user = mirror.source.user
    if user not in users:
        raise pulumi.RunError(
            f"mirror {mirror.name}: source.user must be a user of stack {stack} (got {user}, allowed "
            f"{', '.join(sorted(users)) or 'none'}). Declare it there and run `pulumi up -s {stack}`."
        )
    reference = pulumi.StackReference(f"{mirror.name}-source", full_name)
    return SourceCluster(
        name=str(cluster["name"]),
        bootstrap_servers=reference.require_output("cluster").apply(lambda found: str(found["bootstrapServers"])),
        ca_certificate=pulumi.Output.secret(reference.require_output("clusterCaCertificate")),
        user_secret=str(users[user]["secretName"]),
        user_secret_key=str(users[user]["key"]),
        password=pulumi.Output.secret(reference.require_output("userPasswords").apply(lambda found: str(found[user]))),
    )


def _outputs(mirror: Mirror, full_name: str) -> Mapping[str, Any]:
    stack = mirror.source.stack
    fix = f"Run `pulumi up -s {stack}` first."
    try:
        answer = pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", {"name": full_name}).value
    except Exception as error:
        if "unknown stack" not in str(error):
            raise
        raise pulumi.RunError(
            f"mirror {mirror.name}: source.stack must be a stack that is up (got {stack}, which does not exist). {fix}"
        ) from None
    outputs: Mapping[str, Any] = (answer or {}).get("outputs") or {}
    missing = [name for name in _NEEDED if name not in outputs]
    if missing:
        raise pulumi.RunError(
            f"mirror {mirror.name}: source.stack must be a stack that is up (got {stack}, without the outputs "
            f"{', '.join(missing)}). {fix}"
        )
    return outputs
