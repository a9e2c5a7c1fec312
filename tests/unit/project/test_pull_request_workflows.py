"""What a pull request may: its default job reads the code, the one with an identity runs only where it is asked for."""

import re
from pathlib import Path

import pytest

from tests.support.make_targets import planned_by

from .test_workflows import ACTION, FOLDER, GITLAB, Document, jobs, read

PULL_REQUEST, PAIR = FOLDER / "pull-request.yml", FOLDER / "pair.yml"
SAME_REPOSITORY = "github.event.pull_request.head.repo.full_name == github.repository"
SWITCHED_ON = f"vars.PREVIEW_WITH_CREDENTIALS == 'true' && {SAME_REPOSITORY}"
# What would give a job an identity, a secret or a right.
ACCESS = re.compile(r"secrets\.|vars\.|github\.token|id-token|write|environment|PULUMI|AWS|KUBE")


@pytest.mark.parametrize("file", [PULL_REQUEST, PAIR], ids=lambda file: file.stem)
def test_the_default_job_has_no_secret_no_identity_and_no_right_but_to_read_the_code(file: Path) -> None:
    job = jobs(file)["diff"]
    assert job["permissions"] == {"contents": "read"}
    assert not ACCESS.findall(str(job))
    assert "secrets" not in read(file).get(True, {}).get("workflow_call", {})
    (prepared,) = [step for step in job["steps"] if step.get("uses") == "./.github/actions/prepare"]
    assert prepared["with"] == {"identity": "false"}
    without = [step for step in read(ACTION)["runs"]["steps"] if step.get("if") != "inputs.identity == 'true'"]
    assert [step["uses"].partition("@")[0] for step in without] == ["actions/setup-python"]


def test_the_default_job_is_for_forks_too() -> None:
    assert "if" not in jobs(PULL_REQUEST)["diff"]
    assert jobs(PAIR)["diff"]["if"] == "github.event_name == 'pull_request'"  # it is called for deployments too


@pytest.mark.parametrize("file", [PULL_REQUEST, PAIR], ids=lambda file: file.stem)
def test_the_default_job_has_the_base_and_compares_with_it(file: Path) -> None:
    (checkout,) = [step for step in jobs(file)["diff"]["steps"] if "actions/checkout@" in step.get("uses", "")]
    assert checkout["with"]["fetch-depth"] == 2
    assert "--base HEAD^1 " in planned_by("diff", "STACK=stg")


@pytest.mark.parametrize("file", [PULL_REQUEST, PAIR], ids=lambda file: file.stem)
def test_what_has_an_identity_runs_only_where_it_is_switched_on_and_never_for_a_fork(file: Path) -> None:
    for_pull_requests = {
        name: job for name, job in jobs(file).items() if "push" not in job.get("if", "") and "needs" not in job
    }
    with_identity = {name: job for name, job in for_pull_requests.items() if "id-token" in job["permissions"]}
    assert {name: job["if"] for name, job in with_identity.items()} == {"preview": SWITCHED_ON}


def test_gitlabs_default_job_has_no_identity_and_the_other_one_is_switched_on() -> None:
    pipeline = read(GITLAB)
    default: Document = pipeline[".report"] | pipeline["diff"]
    assert not ACCESS.findall(str(default))
    assert not {"id_tokens", "before_script", "secrets"} & set(default)
    assert not {"id_tokens", "secrets"} & set(pipeline["default"])
    (rule,) = pipeline["preview"]["rules"]
    assert rule["if"].split(" && ") == [
        '$CI_PIPELINE_SOURCE == "merge_request_event"',
        '$PREVIEW_WITH_CREDENTIALS == "true"',
        "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID",
    ]


def test_the_comment_waits_for_a_diff_of_every_stack_and_for_previews_where_they_are_switched_on() -> None:
    found = jobs(PULL_REQUEST)
    assert found["comment"]["needs"] == ["diff", "preview"]
    assert found["comment"]["if"] == f"${{{{ !cancelled() && {SAME_REPOSITORY} }}}}"
    assert found["diff"]["strategy"]["matrix"]["stack"] == found["preview"]["strategy"]["matrix"]["stack"]
    stacks = f"STACKS={' '.join(found['diff']['strategy']['matrix']['stack'])}"
    assert "--stack dev --stack stg" in planned_by("comment", stacks)
    assert "--previewed" not in planned_by("comment", stacks)
    assert "--previewed" in planned_by("comment", stacks, "PREVIEW_WITH_CREDENTIALS=true")
    (commenting,) = [step for step in found["comment"]["steps"] if "comment" in step.get("run", "")]
    assert commenting["env"]["PREVIEW_WITH_CREDENTIALS"] == "${{ vars.PREVIEW_WITH_CREDENTIALS }}"
