"""`ops promote` between two small stacks that a mirror joins: refused while the first proves nothing, allowed after.

Fast tests have every reason for a refusal; at night it is refused on real stacks too.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.state import PROJECT
from tests.support.waiting import wait_until

from ...support import records
from ...support.ops_commands import run
from ...support.projects import KEY, Project
from ...support.running_sandbox import Sandbox

DEV, STG, MIRROR, TOPIC = "dev", "stg", "mm2", "audit"
DAY_MS, WEEK_MS = 86_400_000, 604_800_000
ARRIVE_S = 90
COMMENT = "# who is asked about this stage: the platform team"
Document = dict[str, Any]


@pytest.fixture(scope="module")
def stages(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Both stacks up and verified, each with a topic `audit` of its own that no mirror carries."""
    project = Project.of_example(sandbox, "active-passive", tmp_path_factory.mktemp("promotion"))
    unknown = yaml.safe_load((PROJECT / "Pulumi.stg.yaml").read_text(encoding="utf-8"))["config"][f"{KEY}verification"]
    for stack, config in project.config.items():
        cluster = config[f"{KEY}cluster"]
        cluster |= {"name": f"promotion-{stack}", "namespace": f"promotion-{stack}"}
        for key in ("listener", "listeners"):
            cluster.pop(key, None)
        audit = {"name": TOPIC, "partitions": 1, "replicas": 1, "config": {"retention.ms": DAY_MS}}
        config[f"{KEY}topics"] = [*config.get(f"{KEY}topics", []), audit]
    project.config[STG][f"{KEY}verification"] = {**unknown, "mirrorWaitSeconds": 5}
    try:
        project.up(DEV)
        project.up(STG)
        yield project
    finally:
        project.destroy(STG, DEV)


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only the rule that the promoted setting is about: stages with one broker break others on purpose."""
    schema = json.loads((PROJECT / "policies" / "config.schema.json").read_text(encoding="utf-8"))
    off = {name: "disabled" for name in schema["properties"] if name not in ("all", "topic-retention")}
    file = tmp_path_factory.mktemp("rules") / "rules.json"
    file.write_text(json.dumps(off), encoding="utf-8")
    return file


def promote(stages: Project, rules: Path, *arguments: str, expected: int) -> Document:
    """Run the command with `--json` and return its document."""
    options = ["--from", DEV, "--to", STG, "-C", str(stages.folder), "--policy-config", str(rules), "--json"]
    result = run(stages.sandbox, "promote", *options, *arguments)
    assert result.returncode == expected, f"{result.stdout}\n{result.stderr}\n\n{stages.sandbox.tails()}"
    assert stages.outputs(DEV)["userPasswords"]["tester"] not in result.stdout + result.stderr
    document: Document = json.loads(result.stdout)
    return document


def retention(stages: Project, stack: str) -> int:
    """What the topic's resource says in the cluster."""
    topic = stages.sandbox.get("kafkatopic", "-n", stages.namespace(stack), TOPIC)
    return int(topic["spec"]["config"]["retention.ms"])


@pytest.mark.nightly
def test_a_source_that_is_not_green_or_not_deployed_is_refused_with_every_reason(stages: Project, rules: Path) -> None:
    stages.entry(DEV, "topics", TOPIC)["config"]["retention.ms"] = WEEK_MS
    stages.write()
    before = (stages.folder / f"Pulumi.{STG}.yaml").read_text(encoding="utf-8")
    worker = stages.worker(STG, MIRROR)
    stages.sandbox.processes.kill(worker, hold=True)
    try:
        records.write(stages.client(DEV), "items", [f"lost-{number}" for number in range(20)])
        document = promote(stages, rules, "--yes", "--verify", expected=1)
    finally:
        stages.sandbox.processes.release(worker)
    assert document["result"] == "refused"
    red, undeployed = document["problems"]
    assert f"mirror {MIRROR} of stack {STG}: its verification must be green (got fail: " in red
    assert "records_complete" in red
    assert (
        f"stack {DEV}: must be deployed as in Pulumi.{DEV}.yaml (an `up` would update KafkaTopic {TOPIC})" in undeployed
    )
    assert (stages.folder / f"Pulumi.{STG}.yaml").read_text(encoding="utf-8") == before
    assert not (stages.folder / "promotions").exists()
    assert retention(stages, STG) == DAY_MS


def test_what_is_proven_is_promoted_verified_and_recorded(stages: Project, rules: Path) -> None:
    stages.entry(DEV, "topics", TOPIC)["config"]["retention.ms"] = WEEK_MS
    stages.up(DEV)
    source, target = stages.client(DEV), stages.client(STG)
    records.write(source, "items", [f"proven-{number}" for number in range(20)])
    written = set(records.read(source, "items"))
    wait_until("the mirror caught up", lambda: written <= set(records.read(target, "items")), ARRIVE_S)
    file = stages.folder / f"Pulumi.{STG}.yaml"
    file.write_text(f"{COMMENT}\n{file.read_text(encoding='utf-8')}", encoding="utf-8")

    document = promote(stages, rules, "--yes", expected=0)
    assert document["result"] == "promoted", document
    assert document["changes"] == [
        {"key": f"topics[{TOPIC}].config[retention.ms]", "old": DAY_MS, "new": WEEK_MS},
    ]
    # The stack's only proof was of an empty pair: with records there, the next update makes another one.
    assert document["preview"] == [
        {"operation": "update", "resource": f"KafkaTopic {TOPIC}"},
        {"operation": "update", "resource": f"Run {MIRROR}-verification-run"},
    ]
    assert document["policy"]["summary"]["passed"]
    assert document["approval"]["how"] == "--yes"
    assert [proof["verdict"] in ("pass", "unknown") for proof in document["verification"]] == [True]
    assert document["verification"][0]["provenAt"] > document["approval"]["at"]
    assert retention(stages, STG) == WEEK_MS
    assert file.read_text(encoding="utf-8").startswith(COMMENT), "comments must stay"
    (kept,) = (stages.folder / "promotions").iterdir()
    assert json.loads(kept.read_text(encoding="utf-8")) == document
    stages.entry(STG, "topics", TOPIC)["config"]["retention.ms"] = WEEK_MS


@pytest.mark.nightly
def test_what_is_promoted_already_needs_nothing(stages: Project, rules: Path) -> None:
    document = promote(stages, rules, "--dry-run", expected=0)
    assert (document["result"], document["changes"], document["preview"]) == ("nothing to promote", [], [])
