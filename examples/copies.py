"""A project of one's own from an example: as it is, or small enough for a sandbox, kind or a laptop's cluster.

Owns what is made smaller. Does not own what the topology is about: names, users, rights, naming, who mirrors whom.
"""

import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from examples.catalog import FOLDER, Example

PROJECT = FOLDER.parent
KEY = "rt-inventory:"
# Of a small mirror, which waits seconds for what takes minutes in production.
INTERVALS = {
    "refreshTopicsSeconds": 3,
    "refreshGroupsSeconds": 3,
    "emitCheckpointsSeconds": 2,
    "syncGroupOffsetsSeconds": 2,
    "flushOffsetsSeconds": 2,
}
_NOT_COPIED = ("README.md", "expected.*", "venv", "story.sh", "*.py", "__pycache__")
_STRIMZI = {"type": "strimzi", "apiVersion": "kafka.strimzi.io/v1"}
Config = dict[str, Any]


class CopyError(Exception):
    """An example cannot be copied to where it was asked for."""


def copy(example: Example, folder: Path, *, small: bool) -> list[Path]:
    """Make a new folder a project that runs this program with an example's settings; return the files to edit.

    Raises CopyError if the folder is there already, or if an example without a story is to be small.
    """
    if folder.exists():
        raise CopyError(f"folder {folder}: must not exist yet (it does). Give another folder.")
    if small and not example.story.exists():
        raise CopyError(f"example {example.name}: must have a story to be small (got none). Leave --small out.")
    shutil.copytree(example.folder, folder, ignore=shutil.ignore_patterns(*_NOT_COPIED))
    project_file = folder / "Pulumi.yaml"
    text = project_file.read_text(encoding="utf-8")
    text = text.replace("main: ../..", f"main: {PROJECT}").replace(
        "virtualenv: venv #", f"virtualenv: {PROJECT}/venv #"
    )
    project_file.write_text(text, encoding="utf-8")
    files = [folder / f"Pulumi.{stack}.yaml" for stack in example.stacks]
    for file in files if small else ():
        config = smaller(yaml.safe_load(file.read_text(encoding="utf-8"))["config"])
        file.write_text(yaml.safe_dump({"config": config}, sort_keys=False), encoding="utf-8")
    return files


def smaller(config: Config) -> Config:
    """Return settings with one broker, one worker, factors of one, short intervals, and nothing that waits for people.

    Disks end with their pods, nothing is protected, and no `up` verifies. IBM Event Streams becomes Strimzi, for its
    operator runs only where IBM's entitlement key is.
    """
    small = deepcopy(config)
    if small[f"{KEY}platform"]["type"] == "event-streams":
        _on_strimzi(small)
    small[f"{KEY}platform"].pop("version", None)
    for key in ("approval", "startingCsv", "readySeconds"):  # nobody is there to approve
        small[f"{KEY}operator"].pop(key, None)
    cluster = small[f"{KEY}cluster"]
    cluster |= {"brokers": 1, "storage": {"type": "ephemeral"}, "protect": False}
    for key in ("nodePools", "config", "rack", "resources", "metrics", "version"):
        cluster.pop(key, None)
    for topic in small.get(f"{KEY}topics", []):
        topic["replicas"] = 1
        topic.get("config", {}).pop("min.insync.replicas", None)
    for mirror in small.get(f"{KEY}mirrors", []):
        mirror |= {"replicationFactor": 1, "replicas": 1, **INTERVALS}
        for key in ("metrics", "rack", "resources", "jvm", "scaling"):
            mirror.pop(key, None)
    small[f"{KEY}verification"] = {"when": "never"}
    return small


def _on_strimzi(small: Config) -> None:
    """Replace what only Event Streams has, and what its release of Kafka needs."""
    distribution = small[f"{KEY}platform"].get("distribution")
    small[f"{KEY}platform"] = _STRIMZI | ({"distribution": distribution} if distribution else {})
    if small[f"{KEY}operator"]["install"] == "olm":
        small[f"{KEY}operator"] = {"install": "olm", "channel": "strimzi-1.2.x"}
    cluster = small[f"{KEY}cluster"]
    cluster.pop("components", None)
    cluster["nodePool"] = cluster["name"]  # a resource of its own, also where two clusters share a namespace
    for user in small[f"{KEY}users"]:
        for entry in user.get("aclSets", []):
            entry.pop("separator", None)
    for mirror in small.get(f"{KEY}mirrors", []):
        for key in ("version", "separator"):
            mirror.pop(key, None)
