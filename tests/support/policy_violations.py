"""The violation that stands in the test of each rule: `violation()`, and `CONFIGURATION` where it needs options.

All of them can stand in one program of stack `stg`: each has resources of its own. Here is how a test makes one.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.support import compliant_resources as kit

TESTS = Path(__file__).parents[1] / "unit" / "policies"
_PACKAGE = "tests.unit.policies"
Change = Callable[[kit.Sample], object]


def violations() -> dict[str, list[kit.Sample]]:
    """Return the resources that break each rule, by its name."""
    return {rule: module.violation() for rule, module in _tests().items()}


def configuration() -> dict[str, dict[str, Any]]:
    """Return the options without which a rule finds nothing, by its name."""
    return {rule: module.CONFIGURATION for rule, module in _tests().items() if hasattr(module, "CONFIGURATION")}


def _tests() -> dict[str, Any]:
    modules = [
        import_module(f"{_PACKAGE}.{path.parent.name}.{path.stem}") for path in sorted(TESTS.glob("*/test_*.py"))
    ]
    return {module.POLICY.name: module for module in modules if hasattr(module, "violation")}


def changed(sample: kit.Sample, name: str, change: Change = lambda sample: None) -> list[kit.Sample]:
    """Return a compliant resource with another name and one change."""
    sample.props["metadata"]["name"] = name
    change(sample)
    return [sample]


def broken_topic(name: str, change: Change = lambda topic: None) -> list[kit.Sample]:
    return changed(kit.topic(kit.V1), name, change)


def broken_cluster(name: str, change: Change) -> list[kit.Sample]:
    return changed(kit.cluster(kit.V1), f"{name}-stg", change)


def broken_pool(name: str, change: Change) -> list[kit.Sample]:
    return changed(kit.node_pool(kit.V1), name, change)


def broken_mirror(name: str, change: Change, shape: str = kit.V1) -> list[kit.Sample]:
    return changed(kit.mirror(shape), name, change)


def broken_user(name: str, change: Change) -> list[kit.Sample]:
    return changed(kit.user(kit.V1), f"rt-inv-{name}-stg-user", change)


def connector_config(mirror: kit.Sample, connector: str) -> Any:
    return kit.flow(mirror)[connector]["config"]


def reverse(mirror: kit.Sample) -> None:
    """Turn a mirror into the other direction."""
    source, target = kit.source(mirror), kit.target(mirror)
    for key in ("alias", "bootstrapServers"):
        source[key], target[key] = target[key], source[key]


def excepted(sample: kit.Sample, rule: str, until: object) -> None:
    """Annotate an exception from a rule until a day."""
    sample.annotated(**{f"exception.rt-inventory/{rule}": f"until {until}: a reason"})


def in_cluster(sample: kit.Sample, cluster: str) -> kit.Sample:
    """Return the resource as a member of another cluster."""
    sample.props["metadata"]["labels"] = {"strimzi.io/cluster": cluster}
    return sample
