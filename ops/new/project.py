"""The files of a new pair: its two stack files, Pulumi's project, the policy pack's configuration, the pipeline.

Stack files have the form in which Pulumi writes them. What no answer decides keeps the settings' default, or is a value
for production that a comment explains. Does not check what it writes.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ops.connection import PROJECT
from ops.new import Answers, operator_pin
from settings import NAMESPACE, SettingsError, parse
from settings.files import parse_yaml
from settings.names import SEPARATOR
from settings.platform import SINCE

# What the policy pack asks of topics' names unless it is configured otherwise.
_TOPIC_NAMES = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
_PROJECT_FILE = """\
name: {name}
description: The pair {source} and {target}, with the mirror {mirror} between them
main: {main}
runtime:
  name: python
  options:
    virtualenv: venv # a link to the program's, which Pulumi expects here and beside the program
options:
  refresh: always
config:
  # A Secret or ConfigMap that changes is updated in place: replaced, it would be missing for a moment, and protected
  # ones could not change at all.
  kubernetes:enableSecretMutable: true
  kubernetes:enableConfigMapMutable: true
"""
_WORKFLOW = """\
# Written by `ops new` for the pair {name}: diffs of pull requests, deployments of what was merged. docs/new-pair.md
# lists the environments and variables that it needs.
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
    """Return the errors of the pair's stack files, each checked beside the other."""
    values = {stack: _values(text) for stack in answers.stacks for file, text in files.items() if _is_of(file, stack)}
    contexts = {stack: answers.context(stack) for stack in answers.stacks}
    found = []
    for stack, own in values.items():
        others = {name: other for name, other in values.items() if name != stack}
        try:
            parse(own, stack, others, require_siblings=True, contexts=contexts)
        except SettingsError as error:
            found += [f"Pulumi.{stack}.yaml: {problem}" for problem in error.problems]
    return found


def _is_of(file: Path, stack: str) -> bool:
    return file.name == f"Pulumi.{stack}.yaml"


def _values(text: str) -> dict[str, Any]:
    config = parse_yaml(text)["config"]
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


_FLOW_MAX = 100  # characters of a line with a list
# On a fresh pair there is nothing to compare.
ALLOW_UNKNOWN = (
    *("records_complete", "records_unique", "records_intact", "records_ordered", "records_foreign"),
    *("groups_synced", "groups_no_loss", "groups_reread_bounded", "checkpoints_consistent"),
)


def stack_file(answers: Answers, stack: str) -> str:
    """Return the content of Pulumi.<stack>.yaml."""
    parts = _source(answers) if stack == answers.source else _target(answers)
    return "\n".join(parts) + "\n"


def _source(answers: Answers) -> Iterator[str]:
    stack = answers.source
    yield f"# The source (active) site of the pair {answers.name}. All keys: docs/settings.md."
    yield from _site(answers, stack)
    yield "  rt-inventory:users:"
    yield f"    - name: {_mirror_user(answers, stack)} # the mirror, which only reads{_until_failback(answers)}"
    yield "      aclSets:"
    yield "        - set: mirror-source"
    yield from _list(10, "topics", answers.topics)
    yield '          groups: ["*"]'
    if _comes_back(answers):
        yield "        - set: failback # granted only after a failover; take it out if no records are to come back"
        yield f"          failbackOf: {answers.mirror}"
        yield f"          failbackFrom: {answers.target}"
        yield from _list(10, "topics", answers.topics)
        yield '          groups: ["*"]'
    yield from _application(answers)
    yield from _topics(answers)


def _target(answers: Answers) -> Iterator[str]:
    stack, prefixed = answers.target, answers.naming == "prefixed"
    remote = tuple(f"{answers.source}{SEPARATOR}{topic}" for topic in answers.topics)
    yield f"# The target (passive) site of the pair {answers.name} and the mirror into it. All keys: docs/settings.md."
    if not prefixed:
        yield "# The mirror creates the mirrored topics, so none is declared here."
    yield from _site(answers, stack)
    yield "  rt-inventory:users:"
    yield f"    - name: {_mirror_user(answers, stack)} # the mirror"
    yield "      aclSets:"
    yield "        - set: mirror-target"
    yield f"          mirror: {answers.mirror}"
    yield from _application(answers, remote if prefixed else ())
    if prefixed:
        yield from _topics(answers)
    yield from _mirror(answers)
    yield "  rt-inventory:verification:"
    yield "    when: on-change"
    yield "    # On a fresh pair there is nothing to compare yet. Take these out once records flow."
    yield from _list(4, "allowUnknown", ALLOW_UNKNOWN)


def _site(answers: Answers, stack: str) -> Iterator[str]:
    """What both sites have: the platform, its operator and a cluster that others reach."""
    platform = answers.release
    is_strimzi = platform.type == "strimzi"
    yield "config:"
    yield f"  kubernetes:context: {_text(answers.context(stack))} # of the kubeconfig: this site's Kubernetes cluster"
    yield "  rt-inventory:platform:"
    yield f"    type: {platform.type}"
    yield f"    version: {platform.full_version}"
    if answers.is_openshift:
        yield "    distribution: openshift"
    if not is_strimzi:
        yield "    license:"
        yield "      accept: true # IBM's terms"
        yield "      use: CloudPakForIntegrationNonProduction # as bought; releases after 11.0 ask for `id` too"
    yield "  rt-inventory:operator:"
    if is_strimzi:
        channel, version = operator_pin(platform)
        yield "    install: olm # or none where it is there already; yaml without OLM"
        yield f"    channel: {channel}"
        yield "    approval: Manual # approve its install plan while `pulumi up` waits for it"
        yield f"    startingCsv: {version}"
        yield "    readySeconds: 1800"
    else:
        yield "    install: none # subscribe to it once, for all namespaces"
    yield "  rt-inventory:cluster:"
    yield "    # Protected: before `pulumi destroy`, run `pulumi state unprotect --all`."
    yield f"    name: {answers.cluster(stack)}"
    yield f"    namespace: {answers.cluster(stack)}"
    yield "    brokers: 3"
    yield from _expose(answers, stack)
    yield "    storage:"
    yield "      type: persistent-claim"
    yield "      sizeGib: 100"
    yield "    resources: # of each broker"
    yield '      requests: {cpu: "1", memory: 4Gi}'
    yield "      limits: {memory: 4Gi}"
    if not is_strimzi:
        yield "    components: # beside the brokers; without them it is a bare Kafka"
        yield "      adminApi: {replicas: 1}"
        yield "      adminUI: {replicas: 1}"
        yield "      apicurioRegistry: {replicas: 1}"
        yield "      restProducer: {replicas: 1}"


def _expose(answers: Answers, stack: str) -> Iterator[str]:
    yield "    expose: # to the other site, and to who runs Pulumi and `ops`"
    yield f"      type: {answers.expose}"
    host = answers.hosts.get(stack)
    if host is None:
        return
    yield f"      host: {_text(host)}"
    if answers.expose != "nodeport" and not re.fullmatch(r"[\d.]+", host):  # an address has no names below it
        first, dot, rest = host.partition(".")
        yield f"      hostTemplate: {first}-{{nodeId}}{dot}{rest}"


def _application(answers: Answers, remote: tuple[str, ...] = ()) -> Iterator[str]:
    """The user of applications, which has the same name on both sides; it reads prefixed remote topics too."""
    literal = all(re.fullmatch(r"(?:[A-Za-z0-9_-]|\\\.)+", group) for group in answers.groups)
    groups = tuple(group.replace("\\", "") for group in answers.groups) if literal else ("*",)
    yield f"    - name: {answers.name}-app # applications; make one user for each of them"
    yield "      aclSets:"
    yield "        - set: producer"
    yield from _list(10, "topics", answers.topics)
    yield "        - set: consumer"
    yield from _list(10, "topics", (*answers.topics, *remote))
    yield from _list(10, "groups", groups)


def _topics(answers: Answers) -> Iterator[str]:
    yield "  rt-inventory:topics:"
    for topic in answers.topics:
        yield f"    - name: {_text(topic)}"
        yield f"      partitions: {answers.partitions}"
        yield "      replicas: 3"


def _mirror(answers: Answers) -> Iterator[str]:
    yield "  rt-inventory:mirrors:"
    yield f"    - name: {answers.mirror}"
    yield "      source:"
    yield f"        stack: {_text(answers.source)}"
    yield f"        alias: {_text(answers.source)}"
    yield f"        user: {_mirror_user(answers, answers.source)}"
    yield "      target:"
    yield f"        alias: {_text(answers.target)}"
    yield f"        user: {_mirror_user(answers, answers.target)}"
    yield "      active: source # the side that applications use: `ops failover` and `ops failback` change it"
    yield f"      clients: # as whom; what they need to reach that side is in the Secret {answers.mirror}-clients"
    yield f"        source: {answers.name}-app"
    yield f"        target: {answers.name}-app"
    yield from _list(6, "topics", [topic.replace(".", "\\.") for topic in answers.topics])
    yield from _list(6, "groups", answers.groups)
    yield f"      naming: {answers.naming}"
    yield "      replicas: 2 # a worker that stops leaves its tasks to the other"
    yield "      sourceTasksMax: 3"
    yield "      replicationFactor: 3"
    yield "      refreshTopicsSeconds: 60"
    yield "      refreshGroupsSeconds: 60"
    yield "      emitCheckpointsSeconds: 10"
    yield "      syncGroupOffsetsSeconds: 10"
    if answers.release.base >= SINCE["autoRestart"][0]:
        yield "      autoRestart:"
        yield "        maxRestarts: 10"
    yield "      resources: # of each worker"
    yield '        requests: {cpu: "1", memory: 2Gi}'
    yield "        limits: {memory: 2Gi}"


def _mirror_user(answers: Answers, stack: str) -> str:
    return f"{answers.cluster(stack)}-mirror"


def _comes_back(answers: Answers) -> bool:
    """Whether `ops failback` can bring records back: names are kept, and the operator alters connectors' offsets."""
    return answers.naming == "identity" and answers.release.has_connector_offsets


def _until_failback(answers: Answers) -> str:
    return " until records come back" if _comes_back(answers) else ""


def _list(indent: int, key: str, values: Iterable[str]) -> Iterator[str]:
    """A list in one line if that is short, else an entry a line."""
    texts, space = [_text(value) for value in values], " " * indent
    line = f"{space}{key}: [{', '.join(texts)}]"
    if len(line) <= _FLOW_MAX:
        yield line
        return
    yield f"{space}{key}:"
    yield from (f"{space}  - {text}" for text in texts)


@cache  # the same few names occur in many places, and YAML is slow
def _text(value: str) -> str:
    """A string as YAML, quoted where it would be read as something else."""
    plain = re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9._*+/-]*", value) is not None and yaml.safe_load(value) == value
    return value if plain else "'" + value.replace("'", "''") + "'"
