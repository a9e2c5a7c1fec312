"""The commands that the runbook and that of the alerts show and where each is run; procedures that are stack files."""

import ast
import re
import textwrap
from pathlib import Path
from typing import Any

import yaml

from tests.support import page_commands as shown
from tests.support import readme_commands as readme

RUNBOOK = readme.README.parent / "docs" / "runbook.md"
ALERTS = RUNBOOK.with_name("alerts.md")
PAGES = (RUNBOOK, ALERTS, RUNBOOK.with_name("by-hand.md"))
_SANDBOX = "tests/integration"
_RENEW = "strimzi.io/force-renew=true"
# Commands that change something: the test that runs each. Those that only read are run by test_runbook.py in order.
RUN_ELSEWHERE = {
    "venv/bin/python -m ops failover --to stg --exact": f"{_SANDBOX}/recovery/test_recovery.py",
    "venv/bin/python -m ops failover --to stg --unplanned": f"{_SANDBOX}/recovery/test_recovery.py",
    "pulumi up --refresh -s stg": f"{_SANDBOX}/recovery/test_break_glass.py",
    "venv/bin/python -m ops failback --to dev --dry-run": f"{_SANDBOX}/recovery/test_recovery.py",
    "venv/bin/python -m ops failback --to dev": f"{_SANDBOX}/recovery/test_recovery.py",
    "venv/bin/python -m ops offsets set --stack stg --group GROUP --exact --on source": (
        f"{_SANDBOX}/recovery/test_offsets_command.py"
    ),
    "venv/bin/python -m ops promote --from dev --to stg": f"{_SANDBOX}/pipeline/test_promote_command.py",
    f"kubectl annotate secret rt-inventory-dev-cluster-ca-cert --context dev -n rt-inventory-dev {_RENEW}": (
        f"{_SANDBOX}/stacks/test_rotation.py"
    ),
    "kubectl delete kafkatopic TOPIC --context dev -n rt-inventory-dev": f"{_SANDBOX}/stacks/test_changes.py",
    "pulumi state unprotect --all --yes -s stg": f"{_SANDBOX}/stacks/test_destroy.py",
    "pulumi destroy --yes -s stg": f"{_SANDBOX}/stacks/test_destroy.py",
}
_READS = re.compile(
    r"kubectl (?:get|describe|logs|auth can-i) .*|pulumi preview .*|venv/bin/python -m settings check .*"
    r"|venv/bin/python -m ops (?:(?:status|doctor|offsets show|size) .*|failover .* --dry-run)"
)
# How a test starts a program, and on which stack or namespace, stands in the harness and in constants.
_STARTS = re.compile(r"^(?:venv/bin/python -m \S+ |pulumi |kubectl )|(?:-s|--stack|-n|--context) \S+")
_PLACEHOLDER = re.compile(r"[A-Z]+|rt-inventory-\S+")


def commands() -> list[str]:
    """Every command that the pages show, each once, in order."""
    return list(dict.fromkeys(one for page in PAGES for one in (*shown.in_blocks(page), *shown.in_text(page))))


def alerts() -> list[str]:
    """Every section of the alerts' runbook that is one alert's: all behind its introduction."""
    return re.findall(r"^## (.+)$", ALERTS.read_text(encoding="utf-8"), re.MULTILINE)


def read_only() -> list[str]:
    """Commands that no other test runs, for they change nothing."""
    others = {*RUN_ELSEWHERE, *readme.commands()}
    return [command for command in commands() if command not in others and only_reads(command)]


def only_reads(command: str) -> bool:
    """Whether a command changes nothing wherever it is run."""
    return _READS.fullmatch(command) is not None


def words(command: str) -> list[str]:
    """What a test must say to run a command: its words without program, stack, namespace and placeholders."""
    return [word for word in _STARTS.sub("", command).split() if not _PLACEHOLDER.fullmatch(word)]


def said_by(test: Path) -> set[str]:
    """Every word of a test's texts, docstrings left out."""
    tree = ast.parse(test.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone
    ]
    return {word for text in texts for word in text.split()}


def exchange_roles(dev: dict[str, Any], stg: dict[str, Any]) -> None:
    """Change both stacks' settings as the runbook says for mirroring everything again."""
    text = RUNBOOK.read_text(encoding="utf-8")
    blocks = re.findall(r"^( *)```yaml\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    reading, mirror = (yaml.safe_load(textwrap.dedent(block)) for _, block in blocks)
    del stg["rt-inventory:mirrors"]
    _user(stg, "rt-inv-stg-user").pop("acls", None)
    _user(stg, "rt-inv-stg-user").update(reading)
    dev.pop("rt-inventory:fence", None)
    _user(dev, "rt-inv-dev-user")["aclSets"] = [{"set": "mirror-target", "mirror": "home"}]
    dev.update(mirror)


def _user(config: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(user for user in config["rt-inventory:users"] if user["name"] == name)
    return found
