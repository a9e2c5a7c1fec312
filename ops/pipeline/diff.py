"""What a change does to the manifests of a stack, and what the policy pack finds in them. It is for pull requests.

Two trees are rendered, this one and that of a base commit, each by its own code in a process of its own. That needs no
engine, state, cluster, identity or secret: addresses that only a cluster knows have stand-ins, Secrets no values. Owns
the comparison of the two renderings. It does not know what is deployed, or deletes or replaces: a preview does.
"""

import difflib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ops.connection import PROJECT
from ops.errors import OpsError
from ops.pipeline.documents import stack_name
from ops.policy import EXCEPTIONS_RULE, Finding, Judgement, Pack, in_order, judging
from ops.policy.command import judgement_document
from ops.pulumi.events import resource_of
from ops.pulumi.stack_file import StackFile
from settings import SettingsError
from settings.files import check

WITHIN_S = 120.0
_PACK = PROJECT / "policies"
Document = dict[str, Any]
Manifests = Mapping[str, str]
"""A manifest's text by the name of its file."""


def compare(stack: str, folder: Path, base: str) -> Document:
    """Return the document of a judgement with `changes`, `diff` and `base` beside it.

    `changes` are `{operation, kind, name}` of each manifest that differs, `diff` is the unified diff of all, and `base`
    is `{commit, error}`, with an error if the base cannot be rendered: then nothing is compared.

    Args:
        stack: name of the stack.
        folder: folder of the stack's file, in this project's checkout.
        base: commit to compare with, as git names it.

    Raises:
        OpsError: the stack file is wrong, this tree cannot be rendered or judged, or the checkout lacks the base.
    """
    name = stack_name(stack)
    checkout = _Checkout.of(folder, base)
    file = folder / f"Pulumi.{name}.yaml"
    try:
        check(file)
    except SettingsError as error:
        raise OpsError(str(error)) from error
    with tempfile.TemporaryDirectory(prefix="rt-inventory-diff-") as place:
        work, resources = Path(place), Path(place) / "resources.json"
        new = _rendered(PROJECT, folder, name, work / "new", "--resources", str(resources))
        declared = {each["urn"]: each["props"] for each in json.loads(resources.read_text(encoding="utf-8"))}
        findings = _findings(name, folder, resources, declared, work / "policy.json")
        old, error_of_base = checkout.manifests_of_base(name, work)
    changed = [] if old is None else sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
    judgement = Judgement(
        stack=name,
        pack=Pack(path=str(_PACK), name="rt-inventory", version=""),
        findings=tuple(finding for finding in findings if finding.rule != EXCEPTIONS_RULE),
        exceptions=tuple(finding for finding in findings if finding.rule == EXCEPTIONS_RULE),
        resources=len(declared),
    )
    return judgement_document(judgement, StackFile(folder, name)) | {
        "base": {"commit": checkout.commit, "error": error_of_base},
        "changes": [_change(old or {}, new, path) for path in changed],
        "diff": "".join(_unified(old or {}, new, path) for path in changed),
    }


@dataclass(frozen=True, kw_only=True)
class _Checkout:
    """The checkout that this project and the stack's folder lie in, and the commit to compare with."""

    root: Path
    folder: Path
    commit: str

    @classmethod
    def of(cls, folder: Path, base: str) -> "_Checkout":
        place = folder.resolve()
        try:
            root = Path(_git(PROJECT, "rev-parse", "--show-toplevel"))
        except OpsError as error:
            raise OpsError(f"folder {PROJECT}: must be a checkout of git ({error}).") from error
        if not place.is_relative_to(root):
            raise OpsError(f"folder {folder}: must lie in the checkout {root}. Only that has the base's files.")
        try:
            commit = _git(root, "rev-parse", "--verify", "--end-of-options", f"{base}^{{commit}}")
        except OpsError as error:
            raise OpsError(
                f"base {base}: must be a commit of the checkout (got none). Fetch it: a clone of depth 1 has no base."
            ) from error
        return cls(root=root, folder=place.relative_to(root), commit=commit)

    def manifests_of_base(self, stack: str, work: Path) -> tuple[Manifests | None, str | None]:
        """Return what the base renders to, nothing for a stack that it lacks; or None and why it cannot be rendered."""
        tree = work / "base"
        index = {"GIT_INDEX_FILE": str(work / "index")}
        _git(self.root, "read-tree", self.commit, **index)
        _git(self.root, "checkout-index", "--all", f"--prefix={tree}/", **index)
        folder = tree / self.folder
        if not (folder / f"Pulumi.{stack}.yaml").is_file():
            return {}, None
        try:
            return _rendered(tree / PROJECT.relative_to(self.root), folder, stack, work / "old"), None
        except OpsError as error:
            return None, str(error).replace(f"{tree}/", "")


def _rendered(program: Path, folder: Path, stack: str, out: Path, *more: str) -> Manifests:
    words = ("render", "--stack", stack, "--folder", str(folder.resolve()), "--out", str(out), "--placeholders", *more)
    _python(program, "components", *words)
    return {path.name: path.read_text(encoding="utf-8") for path in out.glob("*.yaml")}


def _findings(
    stack: str, folder: Path, resources: Path, declared: Mapping[str, Any], config: Path
) -> tuple[Finding, ...]:
    files = judging.configuration_files(_PACK, folder, stack, None)
    config.write_text(json.dumps(judging.merge_files(files)), encoding="utf-8")
    words = ("--resources", str(resources), "--stack", stack, "--config", str(config))
    found = json.loads(_python(PROJECT, "policies.judging", *words))
    return in_order(
        Finding(
            rule=each["rule"],
            severity=each["severity"] or "unspecified",
            level=each["level"],
            resource=resource_of(each["urn"], declared.get(each["urn"])),
            message=each["message"],
            description=each["description"],
        )
        for each in found
    )


def _python(program: Path, module: str, *words: str) -> str:
    """Run a module of a tree and return what it prints."""
    return _run([sys.executable, "-m", module, *words], program, os.environ)


def _git(folder: Path, *words: str, **environment: str) -> str:
    return _run(["git", *words], folder, {**os.environ, **environment}).strip()


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """Return what a program prints; raises OpsError with what it reports if it fails."""
    what = " ".join([Path(command[0]).name, *command[1:3]])
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=WITHIN_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise OpsError(f"{what}: must end within {WITHIN_S:.0f} s (got no end).") from error
    if done.returncode:
        raise OpsError(done.stderr.strip() or f"{what}: must succeed (got exit code {done.returncode}).")
    return done.stdout


def _change(old: Manifests, new: Manifests, path: str) -> Document:
    manifest = yaml.safe_load(new.get(path) or old[path])
    operation = "create" if path not in old else "delete" if path not in new else "update"
    return {"operation": operation, "kind": manifest["kind"], "name": manifest["metadata"]["name"]}


def _unified(old: Manifests, new: Manifests, path: str) -> str:
    before, after = (_lines(tree.get(path)) for tree in (old, new))
    names = (f"a/{path}" if before else "/dev/null", f"b/{path}" if after else "/dev/null")
    return "".join(difflib.unified_diff(before, after, *names))


def _lines(text: str | None) -> Sequence[str]:
    return (text or "").splitlines(keepends=True)
