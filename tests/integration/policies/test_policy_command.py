"""`ops policy` over previews of the real engine: a stack with violations, a clean one, and what one would delete.

No cluster is needed: the provider writes manifests into a folder.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sandbox.toolchain import locate
from tests.support.waiting import at_most

from ...support import empty_project
from ...support.running_sandbox import environment_beside

ROOT = Path(__file__).parents[3]
WITHIN_S = at_most(180)
SECRET = "hush-4711"
PROGRAM = """
import json
from pathlib import Path
import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core.v1 import Secret

declared = json.loads(Path("declared.json").read_text())
for topic in declared["topics"]:
    CustomResource(topic["name"], api_version="kafka.strimzi.io/v1", kind="KafkaTopic",
                   metadata={"name": topic["name"], "namespace": "kafka", "annotations": topic.get("annotations", {})},
                   spec={"partitions": 3, "replicas": topic.get("replicas", 3)},
                   opts=pulumi.ResourceOptions(protect=topic.get("protect", False)))
if declared.get("secret"):
    Secret("password", metadata={"name": "app-credentials", "namespace": "kafka"},
           string_data={"password": pulumi.Output.secret("hush-4711")})
if declared.get("broken"):
    raise pulumi.RunError("topics: must be right")
"""
# Of the pack's rules those that the topics of these tests are about; its own tests try all of them.
JUDGED = ("topic-replication", "deletion-protection", "policy-exceptions", "active-exceptions")
STACK_FILE = """\
config:
  kubernetes:renderYamlToDirectory: {out}
  rt-inventory:topics:
    - name: items
    - name: orders
"""
Document = dict[str, Any]


@dataclass(frozen=True)
class Project:
    """A Pulumi project in a folder of its own with a stack `stg`, and the commands on it."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**environment_beside(self.folder), "COLUMNS": "300"}

    def declare(self, *topics: Document, **more: Any) -> None:
        (self.folder / "declared.json").write_text(json.dumps({"topics": topics, **more}), encoding="utf-8")

    def pulumi(self, *arguments: str) -> None:
        command = [str(locate().pulumi), *arguments, "--non-interactive"]
        result = self._run(command, self.folder)
        assert result.returncode == 0, result.stdout + result.stderr

    def up(self, *topics: Document, **more: Any) -> None:
        self.declare(*topics, **more)
        self.pulumi("up", "--stack", "stg", "--yes", "--skip-preview")

    def policy(self, *arguments: str, expected: int) -> subprocess.CompletedProcess[str]:
        options = ["--stack", "stg", "--folder", str(self.folder), "--config", str(self.folder / "rules.json")]
        result = self._run([sys.executable, "-m", "ops", "policy", *options, *arguments], ROOT)
        assert result.returncode == expected, result.stdout + result.stderr
        assert SECRET not in result.stdout + result.stderr
        return result

    def judged(self, *, expected: int) -> Document:
        """The document that `--json` prints."""
        document: Document = json.loads(self.policy("--json", expected=expected).stdout)
        return document

    def _run(self, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=folder, env=self.environment, capture_output=True, text=True, timeout=WITHIN_S, check=False
        )


def found(document: Document) -> list[tuple[str, str, str]]:
    """Rule, level and resource of each finding."""
    return [(each["rule"], each["level"], each["resource"]["name"]) for each in document["findings"]]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a project with an empty stack `stg`, of which each test has a copy."""
    folder = tmp_path_factory.mktemp("project")
    empty_project.write(folder, PROGRAM)
    schema = json.loads((ROOT / "policies" / "config.schema.json").read_text(encoding="utf-8"))
    rules = [name for name in schema["properties"] if name != "all"]
    off: Document = {name: "disabled" for name in rules if name not in JUDGED}
    # The pack's half of this rule asks for protection, which these topics lack on purpose.
    on = {"deletion-protection": {"kinds": []}} if "deletion-protection" in rules else {}
    (folder / "rules.json").write_text(json.dumps({**off, **on}), encoding="utf-8")
    Project(folder).pulumi("stack", "init", "stg")
    return folder


@pytest.fixture
def project(empty: Path, tmp_path: Path) -> Project:
    """A project with an empty stack `stg`."""
    shutil.copytree(empty, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "Pulumi.stg.yaml"
    settings = STACK_FILE.format(out=tmp_path / "out")
    file.write_text(f"{settings}{file.read_text(encoding='utf-8')}", encoding="utf-8")
    return Project(tmp_path)


def test_a_clean_stack_is_one_line_and_an_empty_report(project: Project, tmp_path: Path) -> None:
    project.declare({"name": "items"}, secret=True)
    reported = project.policy("--sarif", str(tmp_path / "policy.sarif"), expected=0)
    assert reported.stdout == "nothing found: stack stg, 2 resources, pack rt-inventory 0.1.0\n"
    assert reported.stderr == ""
    assert json.loads((tmp_path / "policy.sarif").read_text(encoding="utf-8"))["runs"][0]["results"] == []
    document = project.judged(expected=0)
    assert (document["findings"], document["exceptions"]) == ([], [])
    assert document["summary"]["passed"]


def test_a_violation_is_reported_in_the_table_in_json_and_in_sarif(project: Project, tmp_path: Path) -> None:
    excused = {"exception.rt-inventory/topic-replication": "until 2999-01-01: a reason"}
    project.declare(
        {"name": "items"}, {"name": "orders", "replicas": 1}, {"name": "excused", "replicas": 1, "annotations": excused}
    )
    message = "topic orders: replicas must be >= 3 (got 1)."
    table = project.policy("--sarif", str(tmp_path / "policy.sarif"), expected=1).stdout
    assert message in table
    assert "Active exceptions" in table
    assert "topic-replication is lifted until 2999-01-01: a reason" in table
    document = project.judged(expected=1)
    finding = next(each for each in document["findings"] if each["rule"] == "topic-replication")
    assert finding["message"].startswith(message)
    assert finding["resource"] == {
        "urn": "urn:pulumi:stg::anybody::kubernetes:kafka.strimzi.io/v1:KafkaTopic::orders",
        "type": "kubernetes:kafka.strimzi.io/v1:KafkaTopic",
        "name": "orders",
    }
    assert finding["location"] == {"file": "Pulumi.stg.yaml", "line": 5}
    assert [each["resource"]["name"] for each in document["exceptions"]] == ["excused"]
    (run,) = json.loads((tmp_path / "policy.sarif").read_text(encoding="utf-8"))["runs"]
    result = next(each for each in run["results"] if each["ruleId"] == "topic-replication")
    assert (result["level"], result["partialFingerprints"]["primaryLocationLineHash"]) == (
        "error",
        finding["fingerprint"],
    )
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    schema = json.loads((ROOT / "policies" / "config.schema.json").read_text(encoding="utf-8"))
    assert rule["shortDescription"]["text"] == schema["properties"]["topic-replication"]["description"]
    assert "- minimum: " in rule["help"]["text"]


def test_what_would_be_deleted_or_replaced_is_found(project: Project) -> None:
    project.up({"name": "items"}, {"name": "orders"}, secret=True)
    project.declare({"name": "items"})
    document = project.judged(expected=1)
    assert found(document) == [
        ("deletion-protection", "mandatory", "app-credentials"),
        ("deletion-protection", "mandatory", "orders"),
    ]
    assert document["findings"][1]["message"] == "KafkaTopic orders: must stay (got delete). Its records go with it."


def test_what_pulumi_protects_is_found_although_the_preview_fails(project: Project) -> None:
    project.up({"name": "items", "protect": True})
    project.declare()
    document = project.judged(expected=1)
    assert found(document) == [("deletion-protection", "mandatory", "items")]
    assert document["findings"][0]["message"].endswith("Pulumi protects it, so an update stops.")
    assert not document["summary"]["complete"]


@pytest.mark.parametrize(
    ("prepare", "arguments", "reported"),
    [
        (lambda project: project.declare(broken=True), [], "\n  topics: must be right"),
        (
            lambda project: (project.folder / "rules.json").write_text('{"no-rule": "advisory"}'),
            [],
            "no-rule must be a rule",
        ),
        (lambda project: project.declare(), ["--stack", "nowhere"], "stack nowhere: must exist in the backend"),
        (lambda project: project.declare(), ["--pack", "nowhere"], "PulumiPolicy.yaml: no such file"),
    ],
)
def test_a_preview_that_fails_is_one_message_and_exit_2(
    project: Project, prepare: Callable[[Project], None], arguments: list[str], reported: str
) -> None:
    project.declare()
    prepare(project)
    result = project.policy("--json", *arguments, expected=2)
    assert reported in json.loads(result.stdout)["error"]
    assert "Traceback" not in result.stderr
