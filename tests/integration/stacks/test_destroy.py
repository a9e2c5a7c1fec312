"""`pulumi destroy` on both stacks, after all other tests: no namespace of theirs, no process, no file of a cluster."""

import re
from typing import Any

from tests.support.waiting import at_most

from ...support.ops_commands import ops
from ...support.running_sandbox import Pair, Sandbox

UNPROTECT_S, DESTROY_S = at_most(60), at_most(300)
DELETED = re.compile(r" deleted \(\d")  # as the engine ends the line of a resource that is gone


def alive(sandbox: Sandbox) -> set[str]:
    """Processes that run."""
    return {name for name in sandbox.processes.names() if sandbox.processes.alive(name)}


def outputs(sandbox: Sandbox) -> dict[str, Any]:
    return sandbox.pulumi.outputs("stg", show_secrets=True)


def test_a_destroy_of_a_protected_stack_is_refused_before_anything_is_deleted(sandbox: Sandbox, pair: Pair) -> None:
    ops(sandbox, "produce", "-s", "dev", "-t", "items", "-n", "50")
    ops(sandbox, "verify", "-s", "stg", "--report-dir", str(sandbox.state.reports / "before-destroy"))
    before, passwords = alive(sandbox), outputs(sandbox)["userPasswords"]
    refused = sandbox.pulumi.run("stg", "destroy", "--yes", "--skip-preview", check=False, timeout_s=DESTROY_S)
    assert refused.returncode != 0
    assert "because it is protected" in refused.stdout + refused.stderr
    assert "whole-stack" in refused.stdout + refused.stderr
    assert not DELETED.findall(refused.stdout), refused.stdout
    assert sandbox.get("secret", "-n", "rt-inventory-stg", "mm2-clients")
    assert before <= alive(sandbox)
    assert outputs(sandbox)["userPasswords"] == passwords
    ops(sandbox, "verify", "-s", "stg", "--report-dir", str(sandbox.state.reports / "after-destroy"))


def test_destroy_leaves_no_namespace_no_process_and_no_data(sandbox: Sandbox, pair: Pair) -> None:
    assert any(name.startswith("kafka.") for name in sandbox.processes.names())
    sandbox.pulumi.run("stg", "state", "unprotect", "--all", "--yes", timeout_s=UNPROTECT_S)
    for stack in ("stg", "dev"):
        sandbox.pulumi.run(stack, "destroy", "--yes", "--skip-preview", timeout_s=DESTROY_S)
    left = [item["metadata"]["name"] for item in sandbox.get("namespaces")["items"]]
    assert not [name for name in left if name.startswith("rt-inventory")]
    # Other tests' clusters may still be there.
    assert not [name for name in alive(sandbox) if ".rt-inventory-" in name]
    assert {"operator", "plane"} <= alive(sandbox)
    for folder in (sandbox.state.clusters, sandbox.state.mirrors):
        assert not list(folder.glob("rt-inventory-*/*"))
