"""What a destroy meets first: a protected resource that depends on everything else."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from components.guards import DELETION_GUARD
from tests.support.recorded_program import ROOT, SOURCE_OUTPUTS

from ...support.pulumi_engine import Engine, mirror, target, up

CLIENTS = {"source": "rt-inv-dev-user", "target": "writer"}


def guarded(tmp_path: Path, *, protect: bool = True) -> Engine:
    engine = Engine(stacks={"dev": SOURCE_OUTPUTS})
    values = target(
        cluster={"name": "kafka-stg", "namespace": "stg", "protect": protect},
        mirrors=[mirror(clients=CLIENTS)],
        topics=[{"name": "own", "partitions": 1, "replicas": 3}],
        verification={"when": "always"},
    )
    up(engine, values, root=tmp_path)
    return engine


def test_it_depends_on_everything_that_a_destroy_would_delete(tmp_path: Path) -> None:
    engine = guarded(tmp_path)
    known = {urn.rpartition("::")[2] for urn in engine.asked(DELETION_GUARD).dependencies}
    made = {request.name for request in engine.requests.values() if request.custom}
    assert "mm2-clients-secret" in made
    assert made <= known


@pytest.mark.parametrize("protect", [True, False])
def test_it_is_protected_as_the_cluster_is_and_there_without_it_too(tmp_path: Path, protect: bool) -> None:
    engine = guarded(tmp_path, protect=protect)
    assert engine.asked(DELETION_GUARD).protect == protect
    assert not engine.asked(DELETION_GUARD).custom, "it is in the state alone"


def test_the_shipped_target_is_guarded() -> None:
    values: dict[str, Any] = yaml.safe_load((ROOT / "Pulumi.stg.yaml").read_text("utf-8"))["config"]
    engine = Engine(stacks={"dev": SOURCE_OUTPUTS})
    up(engine, {key.removeprefix("rt-inventory:"): value for key, value in values.items() if "rt-inventory" in key})
    assert engine.asked(DELETION_GUARD).protect
    known = {urn.rpartition("::")[2] for urn in engine.asked(DELETION_GUARD).dependencies}
    assert {request.name for request in engine.requests.values() if request.custom} <= known
