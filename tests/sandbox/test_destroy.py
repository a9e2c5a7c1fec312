"""`pulumi destroy` on both stacks, after all other tests: no namespace of theirs, no process, no file of a cluster."""

from .harness import Pair, Sandbox

DESTROY_S = 300


def test_destroy_leaves_no_namespace_no_process_and_no_data(sandbox: Sandbox, pair: Pair) -> None:
    assert any(name.startswith("kafka.") for name in sandbox.processes.names())
    for stack in ("stg", "dev"):
        sandbox.pulumi.run(stack, "destroy", "--yes", "--skip-preview", timeout_s=DESTROY_S)
    left = [item["metadata"]["name"] for item in sandbox.get("namespaces")["items"]]
    assert not [name for name in left if name.startswith("rt-inventory")]
    alive = [name for name in sandbox.processes.names() if sandbox.processes.alive(name)]
    # Other tests' clusters may still be there.
    assert not [name for name in alive if ".rt-inventory-" in name]
    assert {"operator", "plane"} <= set(alive)
    for folder in (sandbox.state.clusters, sandbox.state.mirrors):
        assert not list(folder.glob("rt-inventory-*/*"))
