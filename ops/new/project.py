"""What a new pair has beside its stack files: Pulumi's project, the policy pack's configuration, the pipeline.

Owns which files there are. Does not own what stands in a stack file.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ops.connection import PROJECT
from ops.new.answers import Answers
from ops.new.stack_files import stack_file
from settings import NAMESPACE, SettingsError, parse

# What the policy pack asks of topics' names unless it is told otherwise.
_TOPIC_NAMES = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
_PROJECT_FILE = """\
name: {name}
description: The pair {source} and {target}, with the mirror {mirror} between them
main: {main}
runtime:
  name: python
  options:
    virtualenv: venv # a link to the program's, for Pulumi looks for it here and beside the program
options:
  refresh: always
config:
  # A Secret or ConfigMap that changes is updated in place: replaced, it would be missing for a moment, and protected
  # ones could not change at all.
  kubernetes:enableSecretMutable: true
  kubernetes:enableConfigMapMutable: true
"""
_WORKFLOW = """\
# Written by `ops new` for the pair {name}: previews of pull requests, deployments of what was merged. docs/new-pair.md
# says which environments and variables it needs.
name: Pair {name}

on:
  pull_request:
    paths-ignore: [docs/**, "**.md"]
  push:
    branches: [main]
    paths-ignore: [docs/**, "**.md"]

permissions: {{}}

jobs:
  pair:
    uses: ./.github/workflows/pair.yml
    permissions:
      contents: read
      id-token: write
    with:
      name: {name}
      folder: {folder}
      source: {source}
      target: {target}
"""


def contents(answers: Answers, folder: Path, project: Path = PROJECT) -> dict[Path, str]:
    """Return every file of the pair with its content, the workflow only for a folder inside the program's checkout."""
    place = folder.resolve()
    inside = place.is_relative_to(project)
    files = {
        folder / "Pulumi.yaml": _PROJECT_FILE.format(
            name=answers.name,
            source=answers.source,
            target=answers.target,
            mirror=answers.mirror,
            main=os.path.relpath(project, place) if inside else project,
        )
    }
    for stack in answers.stacks:
        files[folder / f"Pulumi.{stack}.yaml"] = stack_file(answers, stack)
        files[folder / f"policy.{stack}.json"] = _policy(answers, stack)
    if inside:
        files[workflow(answers, project)] = _WORKFLOW.format(
            name=answers.name,
            folder=place.relative_to(project).as_posix(),
            source=answers.source,
            target=answers.target,
        )
    return files


def workflow(answers: Answers, project: Path = PROJECT) -> Path:
    """Return the file of the pair's pipeline."""
    return project / ".github" / "workflows" / f"pair-{answers.name}.yml"


def environment(folder: Path, project: Path = PROJECT) -> tuple[Path, Path]:
    """Return the link to the program's virtual environment in the pair's folder, and what it points to."""
    place = folder.resolve()
    target = project / "venv"
    return folder / "venv", Path(os.path.relpath(target, place)) if place.is_relative_to(project) else target


def problems(answers: Answers, files: Mapping[Path, str]) -> list[str]:
    """Return what the settings find in the pair's stack files, each beside the other."""
    values = {stack: _values(text) for stack in answers.stacks for file, text in files.items() if _is_of(file, stack)}
    contexts = {stack: answers.context(stack) for stack in answers.stacks}
    found = []
    for stack, own in values.items():
        others = {name: other for name, other in values.items() if name != stack}
        try:
            parse(own, stack, others, insist_on_siblings=True, contexts=contexts)
        except SettingsError as error:
            found += [f"Pulumi.{stack}.yaml: {problem}" for problem in error.problems]
    return found


def _is_of(file: Path, stack: str) -> bool:
    return file.name == f"Pulumi.{stack}.yaml"


def _values(text: str) -> dict[str, Any]:
    config = yaml.safe_load(text)["config"]
    return {
        key.removeprefix(f"{NAMESPACE}:"): value for key, value in config.items() if key.startswith(f"{NAMESPACE}:")
    }


def _policy(answers: Answers, stack: str) -> str:
    """The pair's own convention of names and, of the mirror's stack, what must be copied."""
    rules: dict[str, dict[str, object]] = {
        "namespace-names": {"pattern": f"{answers.name}-{{stage}}"},
        "cluster-names": {"pattern": f"{answers.name}-{{stage}}"},
        "user-names": {"pattern": f"{answers.name}(-[a-z0-9]+)*"},
    }
    if not all(_TOPIC_NAMES.fullmatch(topic) for topic in answers.topics):
        rules["topic-names"] = {"pattern": "[A-Za-z0-9._-]+"}
    if stack == answers.target:
        rules["disaster-recovery-offsets"] = {"mirrors": [answers.mirror]}
        rules["topics-mirrored"] = {"sourceTopics": list(answers.topics)}
    lines = ",\n".join(f"  {json.dumps(rule)}: {json.dumps(options)}" for rule, options in rules.items())
    return f"{{\n{lines}\n}}\n"
