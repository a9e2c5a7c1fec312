"""The default job of a pull request: what changes in the manifests and what the pack finds, without any access."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ops.pipeline import documents
from tests.unit.project.test_workflows import FOLDER, jobs

from ...support.make_targets import ROOT, WITHIN_S

NOTHING = shutil.ignore_patterns("__pycache__", "venv", "*.json.lock")
PARTS = ("contract", "kafka", "settings", "monitoring", "components", "policies", "ops")
# All that the job's commands get: no token, no kubeconfig, no passphrase, and no program of Pulumi's.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
COMMANDS = [step["run"] for step in jobs(FOLDER / "pull-request.yml")["diff"]["steps"] if "run" in step]


class Checkout:
    """A checkout of this project whose base is a commit, as a job of a pull request has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def git(self, *words: str) -> str:
        who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "-c", "commit.gpgsign=false"]
        command = ["git", *who, *words]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True).stdout

    def change(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def run(self, *commands: str, **variables: str) -> list[subprocess.CompletedProcess[str]]:
        """Run make targets with an environment that holds nothing but PATH; what they are to set up is there."""
        environment = {**ENVIRONMENT, "HOME": str(self.folder / "home"), **variables}
        there = ["--old-file", "setup-fast", f"PY={sys.executable}"]
        return [
            subprocess.run(
                [*command.split(), *there],
                cwd=self.folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=WITHIN_S,
                check=False,
            )
            for command in commands
        ]

    def diff(self, stack: str, expected: int = 0, **variables: str) -> dict[str, Any]:
        """The document of one run; make itself says 2 for whatever fails."""
        (done,) = self.run(f"make diff STACK={stack}", **variables)
        assert done.returncode == expected, done.stdout + done.stderr
        return self.document(stack)

    def document(self, stack: str) -> dict[str, Any]:
        """The document of the last run."""
        path = documents.file(self.folder / documents.FOLDER, documents.DIFF, stack)
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def summary(self) -> str:
        return self.run("make summary")[0].stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Two commits of this project, the first of which is the base."""
    folder = tmp_path_factory.mktemp("checkout")
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / part, ignore=NOTHING)
    for file in ("__main__.py", "Makefile", "Pulumi.yaml", "Pulumi.dev.yaml", "Pulumi.stg.yaml"):
        shutil.copy(ROOT / file, folder / file)
    (folder / "venv").symlink_to(ROOT / "venv")
    (folder / ".gitignore").write_text("__pycache__/\nvenv\nreports/\nhome/\n", encoding="utf-8")
    checkout = Checkout(folder)
    checkout.git("init", "--quiet")
    checkout.git("add", "--all")
    checkout.git("commit", "--quiet", "--message=base")
    checkout.git("commit", "--quiet", "--message=change", "--allow-empty")
    return checkout


@pytest.fixture
def checkout(made: Checkout) -> Iterator[Checkout]:
    """The same without what a test before it has changed."""
    yield made
    made.git("checkout", "--quiet", ".")
    made.git("clean", "--quiet", "--force", "-d")
    shutil.rmtree(made.folder / "reports", ignore_errors=True)


def test_the_jobs_commands_run_without_a_credential_and_a_cluster(checkout: Checkout) -> None:
    """Dev alone changes: by its settings, and its topics by the code, since the base is rendered by its own."""
    checkout.change("Pulumi.dev.yaml", "name: items\n", "name: items\n      annotations: {team: warehouse}\n")
    counted = "- name: items.counted\n      partitions: 3\n      replicas: 1\n    - name: items.inventory\n"
    checkout.change("Pulumi.dev.yaml", "- name: items.inventory\n", counted)
    metrics = "    metrics: # of the broker, by the rules of monitoring/jmx\n      type: jmxPrometheusExporter\n"
    checkout.change("Pulumi.dev.yaml", metrics, "")
    topics = 'spec: Spec = {"partitions": settings.partitions, "replicas": settings.replicas}'
    checkout.change("components/dialects/cluster_spec.py", topics, topics.replace("{", '{"topicName": settings.name, '))
    assert COMMANDS == ["make diff STACK=${{ matrix.stack }}", "make summary"]
    commands = [COMMANDS[0].replace("${{ matrix.stack }}", stack) for stack in ("dev", "stg")]
    done = checkout.run(*commands, COMMANDS[1], GITHUB_STEP_SUMMARY=str(checkout.folder / "reports" / "summary.md"))
    assert [each.returncode for each in done] == [0, 0, 0], [each.stderr for each in done]
    assert checkout.document("stg")["changes"] == []
    found = checkout.document("dev")
    changes = {(each["operation"], each["name"]) for each in found["changes"]}
    assert changes == {
        ("create", "items.counted"),
        ("delete", "rt-inventory-dev-kafka-metrics"),
        ("update", "items"),
        ("update", "items.inventory"),
        ("update", "rt-inventory-dev"),
        ("update", "store.inventory"),
    }
    assert "\n+  topicName: store.inventory\n" in found["diff"]
    summary = (checkout.folder / "reports" / "summary.md").read_text(encoding="utf-8")
    assert "| dev | 1 to delete, 4 to update, 1 to create | passed |" in summary
    assert "| stg | none | passed |" in summary
    assert "```diff\n--- a/configmap-rt-inventory-dev-rt-inventory-dev-kafka-metrics.yaml\n" in summary
    assert "\n--- a/kafkatopic-rt-inventory-dev-items.yaml\n" in summary
    assert "\n+    team: warehouse\n" in summary
    assert "not-rendered" not in summary


def test_a_mistake_in_a_stack_file_fails_the_job_with_its_key(checkout: Checkout) -> None:
    checkout.change("Pulumi.dev.yaml", "rt-inventory:topics:", "rt-inventory:topicz:")
    assert "topicz" in checkout.diff("dev", expected=2)["error"]
    assert "| dev | diff failed | not judged |" in checkout.summary()


def test_a_stack_that_the_base_lacks_is_new_and_its_mandatory_finding_fails_the_job(checkout: Checkout) -> None:
    pair = checkout.folder / "pairs" / "new"
    pair.mkdir(parents=True)
    for file in ("Pulumi.yaml", "Pulumi.dev.yaml", "Pulumi.stg.yaml"):
        shutil.copy(checkout.folder / file, pair / file)
    checkout.change("pairs/new/Pulumi.dev.yaml", "name: rt-inventory-dev\n", "name: inventory-prod\n")
    found = checkout.diff("dev", expected=2, FOLDER="pairs/new")
    assert {each["operation"] for each in found["changes"]} == {"create"}
    assert found["diff"].startswith("--- /dev/null\n")
    assert not found["summary"]["passed"]
    assert {"cluster-names"} <= {each["rule"] for each in found["findings"]}
    assert "cluster-names" in checkout.summary()


def test_a_base_that_cannot_be_rendered_is_reported_and_fails_nothing(checkout: Checkout) -> None:
    checkout.change("Pulumi.dev.yaml", "rt-inventory:topics:", "rt-inventory:topicz:")
    checkout.git("commit", "--quiet", "--all", "--message=broken")
    broken = checkout.git("rev-parse", "HEAD").strip()
    checkout.git("reset", "--quiet", "--hard", "HEAD^1")
    found = checkout.diff("dev", BASE=broken)
    assert found["base"]["commit"] == broken
    assert "topicz" in found["base"]["error"]
    text = checkout.summary()
    assert "| dev | not compared | passed |" in text
    assert "dev: the base cannot be rendered, so nothing is compared:" in text


def test_a_checkout_without_the_base_is_refused_with_the_fix(checkout: Checkout) -> None:
    found = checkout.diff("dev", expected=2, BASE="nowhere")
    assert found["error"].startswith("base nowhere: must be a commit of the checkout (got none). Fetch it")
