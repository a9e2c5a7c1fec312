"""`python -m ops pipeline ...`: the steps of the pipelines, each behind a make target of the same name.

A command imports what it needs when it runs: a job starts several, and kubectl starts one for each token.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from contract.terminal import printable
from ops.connection import PROJECT
from ops.console import EXIT_FAILED, AsJson, ProjectFolder, guard, log
from ops.errors import OpsError
from ops.pipeline import DRIFT_WITHIN_S, documents

_SUMMARY_MAX = 900_000  # GitHub shows at most a megabyte a step
_CUT = "_Cut here: the documents of the run have the rest._"

Stack = Annotated[str, typer.Option("--stack", "-s", help="Stack, for example stg.")]
Documents = Annotated[Path, typer.Option("--documents", help="Folder of the documents that the steps leave.")]

app = typer.Typer(
    no_args_is_help=True,
    help="""Steps of a pipeline, each behind a make target. What they find is in the comment and the summary.

Exit codes: 0 done; 1 something was found (drift, a check that does not hold); 2 it could not be done.""",
)


@app.command("comment")
def comment_command(
    folder: Documents = documents.FOLDER,
    stacks: Annotated[
        list[str] | None, typer.Option("--stack", "-s", help="Stack that must have a diff. May be repeated.")
    ] = None,
    previewed: Annotated[bool, typer.Option("--previewed", help="These stacks must have a preview too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Report diffs and previews in one comment of the pull request, which is replaced each time.

    A stack that must have one and has none is reported as one that failed.
    Needs GITHUB_REPOSITORY, GITHUB_EVENT_PATH and GITHUB_TOKEN, with the permission to write to pull requests.
    """
    from ops.pipeline import comment

    with guard(as_json, debug=False):
        text = documents.report(documents.of_pull_request(folder, stacks or (), previewed=previewed))
        address = comment.write(text, comment.pull_request(os.environ))
        _answer(as_json, {"comment": address}, address)


@app.command("summary")
def summary_command(folder: Documents = documents.FOLDER, as_json: AsJson = False) -> None:
    """Show what all steps found as Markdown: in the summary of GitHub's run, elsewhere on stdout."""
    with guard(as_json, debug=False):
        text = documents.cut(documents.report(documents.read(folder)), _SUMMARY_MAX, _CUT)
        if file := os.environ.get("GITHUB_STEP_SUMMARY"):
            with Path(file).open("a", encoding="utf-8") as out:
                out.write(text)
        _answer(as_json, {"markdown": text}, "" if file else text.rstrip("\n"))


@app.command("diff")
def diff_command(
    stack: Stack,
    base: Annotated[str, typer.Option("--base", help="Commit to compare with.")] = "HEAD^1",
    folder: Documents = documents.FOLDER,
    project: ProjectFolder = PROJECT,
    as_json: AsJson = False,
) -> None:
    """Show what differs between a stack's manifests and those of a base, and judge them by the policy pack.

    Needs no Pulumi, cluster, state or identity.

    Example: [bold]python -m ops pipeline diff --stack stg --base origin/main[/bold]
    """
    from ops.pipeline import diff

    with guard(as_json, debug=False):
        with _documented_error(folder, documents.DIFF, stack):
            log(f"diff: manifests of stack {stack}, here and of {base}")
            found = diff.compare(stack, project, base)
            documents.write(folder, documents.DIFF, stack, found)
        error = found["base"]["error"]
        shown = found["diff"] or (f"not compared: {error}" if error else f"no difference: stack {stack}")
        lines = [f"{each['level']} {each['rule']}: {each['message']}" for each in found["findings"]]
        _answer(as_json, found, "\n".join([shown.rstrip("\n"), *lines]))
    if not found["summary"]["passed"]:
        raise typer.Exit(EXIT_FAILED)


@app.command("verify")
def verify_command(
    stack: Stack,
    folder: Documents = documents.FOLDER,
    project: ProjectFolder = PROJECT,
    as_json: AsJson = False,
) -> None:
    """Verify every mirror of a stack. A stack without mirrors, or not deployed yet, has nothing to verify.

    Example: [bold]python -m ops pipeline verify --stack stg[/bold]
    """
    from ops.pipeline import stack_checks

    with guard(as_json, debug=False):
        with _documented_error(folder, documents.VERIFICATION, stack):
            outputs = stack_checks.deployed_outputs(stack, project, os.environ)
            found = stack_checks.verify_mirrors(stack, outputs, folder / "verification", os.environ, log)
            documents.write(folder, documents.VERIFICATION, stack, found)
        if "error" in found:
            raise OpsError(found["error"])
        verdicts = [f"{each['mirror']}: {each['verdict']} ({each['report']})" for each in found["mirrors"]]
        _answer(as_json, found, "\n".join(verdicts) or found["said"])
    if not stack_checks.all_passed(found):
        raise typer.Exit(EXIT_FAILED)


@app.command("drift")
def drift_command(
    stack: Stack,
    folder: Documents = documents.FOLDER,
    within_s: Annotated[
        float, typer.Option("--within", min=1, help="Seconds after which to give up.")
    ] = DRIFT_WITHIN_S,
    project: ProjectFolder = PROJECT,
    as_json: AsJson = False,
) -> None:
    """Show what differs between a stack's state and what is there. Nothing is changed.

    Example: [bold]python -m ops pipeline drift --stack stg[/bold]
    """
    from ops.pipeline import stack_checks
    from ops.pulumi.stack import PulumiStack

    with guard(as_json, debug=False), _documented_error(folder, documents.DRIFT, stack):
        log(f"drift: refresh of stack {stack}")
        found = stack_checks.detect_drift(PulumiStack(folder=project, name=stack), within_s=within_s)
        documents.write(folder, documents.DRIFT, stack, found.as_json())
        lines = [str(change) for change in found.changes]
        _answer(as_json, found.as_json(), "\n".join(lines) or f"no drift: stack {stack}")
    if found.changes:
        raise typer.Exit(EXIT_FAILED)


@app.command("cloud-config")
def cloud_config_command(as_json: AsJson = False) -> None:
    """Write a configuration with which Amazon's SDKs get credentials of AWS_ROLE_ARN whenever they need some."""
    from ops.pipeline import identity

    with guard(as_json, debug=False):
        file = identity.write_cloud_config(os.environ)
        _answer(as_json, {"file": str(file)}, str(file))


@app.command("cloud-credential", hidden=True)
def cloud_credential_command() -> None:
    """Print credentials for the cloud configuration's reader; never called by people."""
    from ops.pipeline import aws  # its client takes half a second to load

    with guard(as_json=False, debug=False):
        sys.stdout.write(json.dumps(aws.credential(os.environ)) + "\n")


@app.command("kubeconfig")
def kubeconfig_command(folder: ProjectFolder = PROJECT, as_json: AsJson = False) -> None:
    """Write a kubeconfig without a credential: it gets a short-lived token whenever one is needed.

    Needs KUBE_SERVER, an API server that trusts the pipeline's issuer; KUBE_CA and KUBE_AUDIENCE as it is set up.
    """
    from ops.pipeline import identity

    with guard(as_json, debug=False):
        file = identity.write_kubeconfig(os.environ, folder)
        _answer(as_json, {"file": str(file)}, str(file))


@app.command("credential", hidden=True)
def credential_command() -> None:
    """Print a token for the kubeconfig's reader; never called by people."""
    from ops.pipeline import identity

    with guard(as_json=False, debug=False):
        sys.stdout.write(json.dumps(identity.credential(os.environ)) + "\n")


@app.command("state-bucket")
def state_bucket_command(
    bucket: Annotated[str | None, typer.Option("--bucket", help="Name of the bucket.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Alias of a KMS key for the secrets, for example alias/pulumi-state.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the S3 bucket of Pulumi's state, and the key of its secrets. Run again it corrects what differs.

    Example: [bold]python -m ops pipeline state-bucket --bucket acme-pulumi-state --key alias/pulumi-state[/bold]
    """
    from ops.pipeline import aws  # its client takes half a second to load, which no other command needs

    with guard(as_json, debug=False):
        made = aws.make_state_bucket(aws.bucket_settings(bucket, key, os.environ), log)
        lines = [f"PULUMI_BACKEND_URL={made.backend}", f"secrets provider: {made.secrets_provider}"]
        _answer(as_json, made.as_json(), "\n".join(lines))


def register(to: typer.Typer) -> None:
    """Add the commands to the command line."""
    to.add_typer(app, name="pipeline")


@contextmanager
def _documented_error(folder: Path, kind: str, stack: str) -> Iterator[None]:
    """If the step fails, write a document with the error."""
    documents.file(folder, kind, stack).unlink(missing_ok=True)
    try:
        yield
    except (OpsError, OSError) as error:
        content = {"stack": stack, "error": str(error)}
        documents.write(folder, kind, stack, content)
        raise


def _answer(as_json: bool, document: Mapping[str, Any], text: str) -> None:
    if as_json:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    elif text:
        sys.stdout.write(f"{printable(text)}\n")
