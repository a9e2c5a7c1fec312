"""The policy pack in the real engine: any program's resources, its configuration, exceptions, unknown values, remedies.

No cluster is needed: the provider writes manifests into a folder. The project's own stacks: test_stack.py.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from policies.rules import POLICIES
from policies.support.configuration import options
from sandbox.toolchain import locate
from tests.support import compliant_resources as kit
from tests.support.policy_violations import configuration, violations
from tests.support.waiting import at_most
from tests.unit.policies.test_foreign_manifests import EXPECTED, MANIFESTS

from ...support import empty_project
from ...support.running_sandbox import environment_beside

pytestmark = pytest.mark.sandbox
ROOT = Path(__file__).parents[3]
WITHIN_S = at_most(180)
# Anybody's program: it makes what manifests say, and one topic whose replicas only an update knows.
PROGRAM = """
from pathlib import Path
import pulumi_random
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.yaml import ConfigFile

ConfigFile("manifests", "manifests.yaml")
if Path("late").exists():
    replicas = pulumi_random.RandomInteger("replicas", min=1, max=1).result
    CustomResource("late", api_version="kafka.strimzi.io/v1", kind="KafkaTopic", metadata={"name": "late"},
                   spec={"partitions": 1000, "replicas": replicas})
"""
# With the resources of the newest version that comply, one file of each API version.
IN_EVERY_RUN = ("event-streams-trial", "strimzi-v1beta2-trial")
_FINDING = re.compile(r"\[(advisory|mandatory|remediate)\](?: \[severity: \w+\])? +([a-z-]+) ")


@dataclass(frozen=True)
class Project:
    """A Pulumi project in a folder of its own, with a copy of the pack whose configuration a test may write."""

    folder: Path
    stack: str

    @property
    def manifests(self) -> Path:
        """Folder into which the provider writes."""
        return self.folder / "out"

    def declare(self, samples: Iterable[kit.Sample]) -> None:
        """Let the program make these."""
        manifests = [_manifest(sample) for sample in samples]
        (self.folder / "manifests.yaml").write_text(yaml.safe_dump_all(manifests), encoding="utf-8")

    def configure(self, configuration: object) -> None:
        """Write the pack's configuration for the stack."""
        (self.folder / "pack" / f"config.{self.stack}.json").write_text(json.dumps(configuration), encoding="utf-8")

    def pulumi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the CLI."""
        command = [str(locate().pulumi), *arguments, "--stack", self.stack, "--non-interactive"]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment_beside(self.folder),
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )

    def checked(self, command: str = "preview", *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command with the policy pack."""
        return self.pulumi(command, "--policy-pack", str(self.folder / "pack"), *arguments)


def found(result: subprocess.CompletedProcess[str]) -> set[tuple[str, str]]:
    """Level and rule of everything that the run reports."""
    return set(_FINDING.findall(result.stdout))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a project with an empty stack `stg`, of which each test has a copy."""
    folder = tmp_path_factory.mktemp("project")
    empty_project.write(folder, PROGRAM)
    shutil.copytree(ROOT / "policies", folder / "pack", ignore=shutil.ignore_patterns("__pycache__", "config.*.json"))
    pack = folder / "pack" / "PulumiPolicy.yaml"
    pack.write_text(pack.read_text(encoding="utf-8").replace("../venv", str(ROOT / "venv")), encoding="utf-8")
    assert Project(folder, "stg").pulumi("stack", "init").returncode == 0
    return folder


@pytest.fixture
def project(empty: Path, tmp_path: Path) -> Project:
    """An empty stack `stg`."""
    made = Project(tmp_path, "stg")
    shutil.copytree(empty, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "Pulumi.stg.yaml"
    config = {"config": {"kubernetes:renderYamlToDirectory": str(made.manifests)}}
    file.write_text(f"{file.read_text(encoding='utf-8')}{yaml.safe_dump(config)}", encoding="utf-8")
    made.declare([])
    return made


# Fast tests judge the same resources, manifests and configurations by the same rules, without the engine.
@pytest.mark.parametrize(
    "shape", [shape if shape == kit.V1 else pytest.param(shape, marks=pytest.mark.nightly) for shape in kit.SHAPES]
)
def test_a_stack_that_complies_passes_in_every_api_version(project: Project, shape: str) -> None:
    # Names must differ within a program; what belongs together stays together by labels and addresses.
    project.declare(kit.compliant(shape))
    project.configure({"deletion-protection": "disabled"})  # a program of manifests protects nothing
    result = project.checked()
    assert (result.returncode, found(result)) == (0, set()), result.stdout + result.stderr


def test_a_stack_with_a_violation_of_every_rule_is_refused_and_every_one_is_reported(project: Project) -> None:
    project.declare(sample for samples in violations().values() for sample in samples)
    project.configure(configuration())
    result = project.checked()
    assert result.returncode != 0
    assert {rule for _level, rule in found(result)} == {policy.name for policy in POLICIES}
    assert "made-up" not in result.stdout + result.stderr, "a message holds the secret that it complains of"


@pytest.mark.parametrize(
    "file",
    [file if file in IN_EVERY_RUN else pytest.param(file, marks=pytest.mark.nightly) for file in sorted(EXPECTED)],
)
def test_manifests_that_others_wrote_give_true_findings_only(project: Project, file: str) -> None:
    shutil.copy(MANIFESTS / f"{file}.yaml", project.folder / "manifests.yaml")
    without_stage = {policy.name: {"stage": ""} for policy in POLICIES if "stage" in options(policy)}
    project.configure({**without_stage, "deletion-protection": "disabled"})
    assert {rule for _level, rule in found(project.checked())} == {
        rule for of in EXPECTED[file].values() for rule in of
    }


def test_an_update_does_not_make_what_breaks_a_rule(project: Project) -> None:
    topic = kit.topic(kit.V1)
    topic.spec["replicas"] = 1
    project.declare([topic])
    result = project.checked("up", "--yes", "--skip-preview")
    assert result.returncode != 0
    assert ("mandatory", "topic-replication") in found(result)
    assert "topic items: replicas must be >= 3 (got 1)." in result.stdout
    assert not list(project.manifests.rglob("*kafkatopic*"))


def test_the_configuration_of_the_stack_is_found_and_another_goes_on_top(project: Project, tmp_path: Path) -> None:
    topic = kit.topic(kit.V1)
    topic.spec["replicas"] = 2
    project.declare([topic])
    project.configure({"topic-replication": {"minimum": 2}, "deletion-protection": "disabled"})
    assert project.checked().returncode == 0
    stricter = tmp_path / "stricter.json"
    stricter.write_text('{"topic-replication": {"minimum": 4}}', encoding="utf-8")
    result = project.checked("preview", "--policy-pack-config", str(stricter))
    assert result.returncode != 0
    assert "replicas must be >= 4 (got 2)" in result.stdout


UNKNOWN_KEY = (
    {"topic-replication": {"minimun": 1}},
    "topic-replication.minimun must be a known key (got minimun, allowed enforcementLevel, minimum)",
)
UNKNOWN_RULE = ({"topic-replicaton": "advisory"}, "topic-replicaton must be a rule of this pack")
WRONG_TYPE = (
    {"topic-replication": {"minimum": "one"}},
    "minimum: Invalid type. Expected: integer, given: string",
)
TOO_SMALL = ({"topic-replication": {"minimum": 0}}, "minimum: Must be greater than or equal to 1")


# What the pack refuses and what the engine does, each in the stack's file and on the command line.
@pytest.mark.parametrize(
    ("configuration", "reported", "on_the_command_line"),
    [
        (*UNKNOWN_KEY, False),
        (*UNKNOWN_RULE, True),
        (*WRONG_TYPE, False),
        (*TOO_SMALL, True),
        pytest.param(*UNKNOWN_KEY, True, marks=pytest.mark.nightly),
        pytest.param(*UNKNOWN_RULE, False, marks=pytest.mark.nightly),
        pytest.param(*WRONG_TYPE, True, marks=pytest.mark.nightly),
        pytest.param(*TOO_SMALL, False, marks=pytest.mark.nightly),
    ],
)
def test_a_wrong_configuration_is_refused(
    project: Project, configuration: object, reported: str, on_the_command_line: bool
) -> None:
    if on_the_command_line:
        (project.folder / "given.json").write_text(json.dumps(configuration), encoding="utf-8")
        result = project.checked("preview", "--policy-pack-config", str(project.folder / "given.json"))
    else:
        project.configure(configuration)
        result = project.checked()
    assert result.returncode != 0
    assert reported in result.stdout + result.stderr
    assert "Traceback" not in result.stdout + result.stderr


def test_what_a_preview_does_not_know_is_checked_by_the_update(project: Project) -> None:
    (project.folder / "late").touch()
    project.configure({"deletion-protection": "disabled"})
    preview = project.checked()
    assert "topic-replication" not in preview.stdout, "unknown replicas were judged, or the preview complained of them"
    assert ("mandatory", "partition-limits") in found(preview)
    update = project.checked("up", "--yes", "--skip-preview")
    assert update.returncode != 0
    assert "topic late: replicas must be >= 3 (got 1)" in update.stdout


def test_active_exceptions_are_listed_at_the_end_and_expired_ones_fail(project: Project) -> None:
    today = datetime.now(UTC).date()
    for name, days in (("excused", 1), ("expired", -1)):
        topic = kit.topic(kit.V1, name).annotated(
            **{"exception.rt-inventory/topic-replication": f"until {today + timedelta(days=days)}: a reason"}
        )
        topic.spec["replicas"] = 1
        project.declare([topic])
        project.configure({"deletion-protection": "disabled"})
        result = project.checked()
        if name == "excused":
            assert (result.returncode, found(result)) == (0, {("advisory", "active-exceptions")}), result.stdout
            assert f"KafkaTopic excused: topic-replication is lifted until {today + timedelta(days=1)}" in result.stdout
        else:
            assert result.returncode != 0
            assert found(result) == {("mandatory", "policy-exceptions"), ("mandatory", "topic-replication")}


def test_remedies_raise_the_numbers_where_they_are_enabled(project: Project) -> None:
    topic = kit.topic(kit.V1)
    topic.spec.update(replicas=1, config={"min.insync.replicas": 1, "retention.ms": 60_000})
    project.declare([topic])
    rules = ("topic-replication", "topic-min-insync", "topic-retention")
    project.configure({**dict.fromkeys(rules, "remediate"), "deletion-protection": "disabled"})
    result = project.checked("up", "--yes", "--skip-preview")
    assert result.returncode == 0, result.stdout + result.stderr
    assert {("remediate", rule) for rule in rules} <= found(result)
    (written,) = project.manifests.rglob("*kafkatopic*")
    text = written.read_text(encoding="utf-8")
    assert "replicas: 3" in text
    assert "min.insync.replicas: 2" in text
    assert "retention.ms: 86400000" in text


def _manifest(sample: kit.Sample) -> dict[str, object]:
    """The sample as Kubernetes reads it."""
    version = sample.type_.removeprefix("kubernetes:").rpartition(":")[0].removeprefix("core/")
    return {"apiVersion": version, "kind": sample.type_.rpartition(":")[2], **sample.props}
