"""The pipelines: every step is a make target that a test runs, nothing is trusted that need not be."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.toolchain import pins
from settings.files import parse_yaml
from tests.support.make_targets import planned_by

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / ".github" / "workflows"
# Without those that `ops new` wrote, which only call pair.yml.
WORKFLOWS = sorted({*FOLDER.glob("*.yml")} - {*FOLDER.glob("pair-*.yml")})
ACTION = ROOT / ".github" / "actions" / "prepare" / "action.yml"
GITLAB = ROOT / "docs" / "pipelines" / "gitlab-ci.yml"
NAMES = [file.stem for file in WORKFLOWS]
# Where each target that a pipeline runs is run by a test.
RUN_IN = {
    "sbom": "tests/unit/sandbox/toolchain/test_sbom.py",
    "setup-pipeline": "tests/unit/ops/test_pipeline_identity.py",
    "cloud-config": "tests/unit/ops/test_pipeline_identity.py",
    "kubeconfig": "tests/integration/pipeline/test_pipeline.py",
    "diff": "tests/unit/ops/test_pipeline_diff.py",
    "preview": "tests/integration/pipeline/test_pipeline.py",
    "comment": "tests/unit/ops/test_pipeline_comment.py",
    "up": "tests/integration/pipeline/test_pipeline.py",
    "verify": "tests/integration/pipeline/test_pipeline.py",
    "drift": "tests/integration/pipeline/test_pipeline.py",
    "drill": "tests/integration/pipeline/test_pipeline.py",
    "summary": "tests/integration/pipeline/test_pipeline.py",
    "strimzi": "tests/unit/sandbox/demo/test_stack_files.py",
    "demo": "tests/integration/demo/test_demo_current.py",
    "test-fast": "tests/unit/project/test_workflows.py",
    "test": "tests/unit/project/test_workflows.py",
    "test-nightly": "tests/unit/project/test_workflows.py",
}
# What only a cluster that a workflow makes for itself is for.
ON_KIND = {"strimzi", "demo"}
# What tests the project itself, and no stack.
OF_PROJECT = {"test-fast", "test", "test-nightly"}
# What only a release runs.
OF_RELEASE = {"sbom"}
WRITES = {"id-token", "pull-requests"}
# What a release may write besides: images, and statements about them.
RELEASES = {"packages", "attestations"}
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
Document = dict[Any, Any]


def read(file: Path) -> Document:
    document: Document = parse_yaml(file.read_text(encoding="utf-8"))
    return document


def jobs(file: Path) -> dict[str, Document]:
    found: dict[str, Document] = read(file)["jobs"]
    return found


def steps() -> Iterator[tuple[str, Document]]:
    """Every step of every workflow and of the action, with where it stands."""
    for file in WORKFLOWS:
        for name, job in jobs(file).items():
            yield from ((f"{file.stem}/{name}", step) for step in job["steps"])
    yield from (("prepare", step) for step in read(ACTION)["runs"]["steps"])


def commands() -> Iterator[tuple[str, str]]:
    """Every command of GitHub's and GitLab's pipelines, with where it stands."""
    yield from ((place, step["run"]) for place, step in steps() if "run" in step)
    for name, job in read(GITLAB).items():
        parts = ("before_script", "script", "after_script") if isinstance(job, dict) else ()
        yield from ((f"gitlab/{name}", line) for part in parts for line in job.get(part, []))


def target(command: str) -> str:
    return command.split()[1]


def test_the_workflows_are_there() -> None:
    assert NAMES == ["deploy", "failover-drill", "kind", "nightly", "pair", "pull-request", "release", "tests"]


def test_every_step_is_one_make_target() -> None:
    wrong = [
        f"{place}: {command}"
        for place, command in commands()
        if not re.fullmatch(
            r"make [a-z-]+( STACK=(\w+|\$\{\{ matrix\.stack \}\}|\$STACK)| STACKS=\"[a-z ]+\"| CLUSTER=current YES=1)?",
            command,
        )
    ]
    assert not wrong


def test_every_target_is_in_the_makefile_and_run_by_a_test() -> None:
    ran = {target(command) for _, command in commands()}
    assert ran == set(RUN_IN)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in ran:
        assert re.search(rf"^{name}:.* ## ", makefile, re.MULTILINE), f"make {name} does not exist"
        assert f'"{name}"' in (ROOT / RUN_IN[name]).read_text(encoding="utf-8"), f"{RUN_IN[name]} does not run {name}"


def test_every_action_is_pinned_to_a_commit_with_its_version() -> None:
    lines = [
        line.split("uses:")[1].strip()
        for file in (*WORKFLOWS, ACTION)
        for line in file.read_text(encoding="utf-8").splitlines()
        if "uses:" in line
    ]
    assert lines
    assert [line for line in lines if not PINNED.fullmatch(line) and line != "./.github/actions/prepare"] == []
    versions = dict[str, str]()
    for line in lines:
        name, _, version = line.partition("@")
        assert versions.setdefault(name, version) == version, f"{name} is pinned twice"


def test_pulumi_is_of_the_version_that_the_sandbox_runs() -> None:
    installing = {place: step["with"] for place, step in steps() if "pulumi/actions@" in step.get("uses", "")}
    assert installing == {place: {"pulumi-version": pins.PULUMI} for place in ("kind/demo", "prepare")}


@pytest.mark.parametrize("file", WORKFLOWS, ids=NAMES)
def test_a_workflow_may_nothing_and_each_job_the_least(file: Path) -> None:
    assert read(file)["permissions"] == {}
    assert read(file)["concurrency"]["group"]
    for name, job in jobs(file).items():
        rights = job["permissions"]
        assert rights.pop("contents") == "read", name
        allowed = WRITES | (RELEASES if file.stem == "release" else set())
        assert {right for right, value in rights.items() if value == "write"} <= allowed, name
        assert set(rights.values()) <= {"write"}, name
        assert not {"id-token", "pull-requests"} <= set(rights), f"{name}: what comments needs no identity"
        assert job["timeout-minutes"] <= 90, name


def test_nothing_that_is_in_progress_in_a_stack_is_cancelled() -> None:
    cancelled = {file.stem for file in WORKFLOWS if read(file)["concurrency"]["cancel-in-progress"]}
    assert cancelled == {"pull-request", "tests"}
    ran = {step["run"] for job in jobs(FOLDER / "tests.yml").values() for step in job["steps"] if "run" in step}
    assert {target(command) for command in ran} == OF_PROJECT


def test_a_failover_and_a_deployment_never_change_a_stack_at_the_same_time() -> None:
    deploy, drill = jobs(FOLDER / "deploy.yml"), jobs(FOLDER / "failover-drill.yml")
    groups = {name: job["concurrency"]["group"] for name, job in deploy.items() if "concurrency" in job}
    assert groups == {"dev": "stack-dev", "stg": "stack-stg"}
    assert set(groups) == {
        name for name, job in deploy.items() if any("make up" in step.get("run", "") for step in job["steps"])
    }
    assert drill["drill"]["concurrency"]["group"] == "stack-${{ inputs.to }}"
    assert not any(job["concurrency"]["cancel-in-progress"] for job in (deploy["dev"], deploy["stg"], drill["drill"]))


def test_no_secret_is_stored_and_no_text_from_outside_becomes_a_command() -> None:
    for file in (*WORKFLOWS, ACTION):
        text = file.read_text(encoding="utf-8")
        assert "secrets." not in text, file
        assert "pull_request_target" not in text, file
    for place, command in commands():
        assert not re.search(r"\$\{\{(?! matrix\.stack \}\})", command), place
    for _, step in steps():
        if "actions/checkout@" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


def test_only_what_comments_and_what_pushes_images_sees_the_token() -> None:
    seen = {step.get("run") or action(step) for _, step in steps() if "github.token" in str(step)}
    assert seen == {'make comment STACKS="dev stg"', "docker/login-action"}


def action(step: Document) -> str:
    name: str = step.get("uses", "").partition("@")[0]
    return name


def test_a_merge_passes_dev_its_proof_and_the_preview_before_somebody_approves_stg() -> None:
    found = jobs(FOLDER / "deploy.yml")
    assert {name: job.get("needs") for name, job in found.items()} == {"dev": None, "check": "dev", "stg": "check"}
    assert {name: job["environment"] for name, job in found.items()} == {
        "dev": "dev",
        "check": "stg-preview",
        "stg": "stg",
    }
    order = [
        command.removeprefix("make ")
        for job in found.values()
        for command in (step.get("run", "") for step in job["steps"])
        if target(f"{command} x x") not in ("summary", "x")
    ]
    assert order == [
        "preview STACK=dev",
        "up STACK=dev",
        "verify STACK=stg",
        "preview STACK=stg",
        "up STACK=stg",
        "verify STACK=stg",
    ]


def test_an_update_is_judged_before_it_begins_and_ends_by_itself_before_its_job() -> None:
    """Pulumi judges the whole stack in the preview, and lets go of the state's lock when it is interrupted."""
    planned = planned_by("up", "STACK=stg")
    up = re.search(r"timeout --foreground -s INT -k 120 (\d+)m\W+pulumi up (.*)", planned)
    assert up
    assert "--skip-preview" not in up[2]
    assert "--policy-pack policies" in up[2]
    deploying = [job for file in WORKFLOWS for job in jobs(file).values() if "make up" in str(job["steps"])]
    assert all(int(up[1]) + 10 <= job["timeout-minutes"] for job in deploying)


def test_only_a_deployment_changes_a_stack() -> None:
    changing = {place.partition("/")[0] for place, command in commands() if target(command) == "up"}
    assert changing == {"deploy", "pair", "gitlab"}
    read_only = {
        job["environment"]
        for name in ("pull-request", "nightly")
        for job in jobs(FOLDER / f"{name}.yml").values()
        if "environment" in job
    }
    assert read_only == {"${{ matrix.stack }}-preview", "stg-preview"}


def test_the_demo_has_a_cluster_of_its_own_and_no_identity() -> None:
    (job,) = jobs(FOLDER / "kind.yml").values()
    order = [step.get("uses", step.get("run", "")).partition("@")[0] for step in job["steps"]]
    assert (
        order.index("helm/kind-action") < order.index("make strimzi") < order.index("make demo CLUSTER=current YES=1")
    )
    assert job["permissions"] == {"contents": "read"}
    assert {"environment", "env"} & set(job) == set()
    prepared = next(step for step in job["steps"] if step.get("uses") == "./.github/actions/prepare")
    assert prepared["with"] == {"identity": "false"}
    # Upload leaves out what lies in a folder whose name begins with a dot unless it is configured to.
    assert job["steps"][-1]["with"]["include-hidden-files"] is True


def test_a_pull_request_is_tested_without_an_identity_by_what_a_contributor_runs() -> None:
    workflow = read(FOLDER / "tests.yml")
    assert "pull_request" in workflow[True]  # YAML 1.1 reads the key `on` so
    for job in workflow["jobs"].values():
        assert job["permissions"] == {"contents": "read"}
        assert {"environment", "env", "if"} & set(job) == set()
        prepared = next(step for step in job["steps"] if step.get("uses") == "./.github/actions/prepare")
        assert prepared["with"] == {"identity": "false"}
    fast, every = planned_by("test-fast"), planned_by("test")
    for check in ("ruff format --check", "ruff check", "mypy", "pytest -q -m not sandbox"):
        assert check in fast
        assert check in every
    assert "-m tests.integration" in every
    assert "-m tests.integration" not in fast
    assert "-m tests.integration --nightly" in planned_by("test-nightly")
    assert "--nightly" not in every


def test_updates_of_dependencies_cover_every_manifest() -> None:
    updates = read(ROOT / ".github" / "dependabot.yml")["updates"]
    folders = {update["package-ecosystem"]: update.get("directories", [update.get("directory")]) for update in updates}
    tools = ROOT / "sandbox" / "toolchain" / "go"
    modules = {f"/{file.parent.relative_to(ROOT)}" for file in tools.rglob("go.mod")}
    # The shim has no requirement of its own: it stands in for a module that the tools name.
    assert set(folders["gomod"]) == modules - {"/sandbox/toolchain/go/bridgeshim"}
    assert folders["pip"] == ["/"]
    assert folders["github-actions"] == ["/", "/.github/actions/prepare"]


def test_the_drill_changes_nothing_unless_it_is_asked_to() -> None:
    workflow = read(FOLDER / "failover-drill.yml")
    inputs = workflow[True]["workflow_dispatch"]["inputs"]  # YAML 1.1 reads the key `on` so
    assert (inputs["to"]["default"], inputs["execute"]["default"]) == ("stg", False)
    assert workflow["jobs"]["drill"]["env"]["EXECUTE"] == "${{ inputs.execute && '1' || '' }}"
    assert "ops failover --to stg --dry-run --yes --json" in planned_by("drill")
    assert "ops failover --to dev --dry-run --yes --json" in planned_by("drill", "TO=dev", "EXECUTE=")
    assert "ops failover --to dev --dry-run --yes --json" in planned_by("drill", "TO=dev", "EXECUTE=false")
    assert "ops failover --to dev --yes --json" in planned_by("drill", "TO=dev", "EXECUTE=1")


def test_a_pair_in_a_folder_passes_the_same_steps_as_the_one_here() -> None:
    def ran(jobs_: dict[str, Document]) -> dict[str, list[str]]:
        lines = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs_.items()}
        return {name: [target(line) for line in found if "summary" not in line] for name, found in lines.items()}

    pair, deploy = jobs(FOLDER / "pair.yml"), jobs(FOLDER / "deploy.yml")
    assert ran(pair) == {
        "diff": ran(jobs(FOLDER / "pull-request.yml"))["diff"],
        "preview": ran(jobs(FOLDER / "pull-request.yml"))["preview"],
        "source": ran(deploy)["dev"],
        "check": ran(deploy)["check"],
        "target": ran(deploy)["stg"],
    }
    assert [job.get("needs") for job in pair.values()] == [None, None, None, "source", "check"]
    assert pair["source"]["if"] == "github.event_name == 'push'"
    assert pair["preview"]["if"] == jobs(FOLDER / "pull-request.yml")["preview"]["if"]
    assert all(job["env"]["FOLDER"] == "${{ inputs.folder }}" for job in pair.values())
    stacks = [job["env"]["STACK"] for job in pair.values()]
    assert stacks == [*["${{ matrix.stack }}"] * 2, "${{ inputs.source }}", *["${{ inputs.target }}"] * 2]


def test_every_step_of_a_pair_in_a_folder_is_about_that_folder(tmp_path: Path) -> None:
    (tmp_path / "policy.west.json").write_text("{}", encoding="utf-8")
    given = (f"FOLDER={tmp_path}", "STACK=west", "TO=west")
    for name in ("diff", "preview", "verify", "drift", "kubeconfig", "drill"):
        assert f"--folder {tmp_path}" in planned_by(name, *given), name
    up = planned_by("up", *given)
    assert f"-C {tmp_path} " in up
    assert f"--policy-pack {ROOT}/policies --policy-pack-config {tmp_path}/policy.west.json" in up


def test_gitlab_runs_the_same_in_the_same_order() -> None:
    pipeline = read(GITLAB)
    by_name = {name: job for name, job in pipeline.items() if isinstance(job, dict) and "script" in job}
    stages = [job["stage"] for job in by_name.values()]
    assert stages == sorted(stages, key=pipeline["stages"].index)
    assert by_name["up-stg"]["rules"][0]["when"] == "manual"
    github = {target(command) for place, command in commands() if not place.startswith("gitlab/")}
    gitlab = {target(command) for place, command in commands() if place.startswith("gitlab/")}
    assert github - gitlab == {"comment"} | ON_KIND | OF_PROJECT | OF_RELEASE
    assert {name for name, job in by_name.items() if job["extends"] != ".step"} == {"diff"}
    assert by_name["diff"]["extends"] == pipeline[".step"]["extends"] == ".report"
    assert pipeline[".report"]["after_script"] == ["make summary"], "a step that failed must be reported too"


@pytest.mark.parametrize("page", ["pipelines.md", "state-backend.md"])
def test_every_file_that_a_page_links_to_exists(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


def test_the_page_documents_every_step() -> None:
    rows = re.findall(
        r"^\| `make ([a-z-]+)", (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(rows) == sorted([*RUN_IN, "state-bucket"])


def test_the_page_documents_every_variable_of_the_jobs() -> None:
    text = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")
    used = {name for file in WORKFLOWS for name in re.findall(r"vars\.(\w+)", file.read_text(encoding="utf-8"))}
    assert {name for name in used if f"`{name}`" not in text} == set()


@pytest.mark.parametrize("name", ["up", "verify", "drill"])
def test_a_step_that_may_start_spark_has_the_pinned_jars_and_resolves_none(name: str) -> None:
    planned = planned_by(name, "STACK=stg")
    assert re.search(r"RT_INVENTORY_SPARK_JARS=\$\(\S+ -m sandbox.toolchain spark-jars\)", planned)
    assert re.search(r"^setup-pipeline: .*setup-spark", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
