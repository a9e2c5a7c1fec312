"""The table of rules in the README and the schema of a stack's configuration: `python -m policies.rules.reference`.

Both are made of the policies themselves. `--check` writes nothing and exits with 1 if one of them is out of date.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pulumi_policy import Policy

from policies.rules import GROUPS, POLICIES
from policies.support.configuration import LEVEL, STAGE, levels, options
from policies.support.resources import EVERY, kind_of

PACK = Path(__file__).parents[1]
README = PACK / "README.md"
SCHEMA = PACK / "config.schema.json"
_BEGIN, _END = "<!-- rules: begin -->", "<!-- rules: end -->"


def table() -> str:
    """Every rule in its group: what it asks for, of which resources, how severe it is, its options and the remedy."""
    return "\n\n".join(
        f"### {group}\n\n"
        "| rule | what it asks for | judges | severity | options and defaults | what to do |\n"
        "|---|---|---|---|---|---|\n" + "\n".join(_row(policy) for policy in policies)
        for group, policies in GROUPS.items()
    )


def schema() -> dict[str, Any]:
    """JSON Schema of `config.<stack>.json`."""
    levels_of_all = {"description": "enforcement level of every rule", "enum": list(levels(None))}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Configuration of the rt-inventory policy pack for one stack",
        "type": "object",
        "additionalProperties": False,
        "properties": {"all": levels_of_all, **{policy.name: _schema_of(policy) for policy in POLICIES}},
    }


def documents() -> Iterator[tuple[Path, str]]:
    """Yield each file with the text that it must have."""
    text = README.read_text(encoding="utf-8")
    head, _, rest = text.partition(_BEGIN)
    yield README, f"{head}{_BEGIN}\n{table()}\n{_END}{rest.partition(_END)[2]}"
    yield SCHEMA, json.dumps(schema(), indent=2) + "\n"


def main(arguments: list[str]) -> int:
    """Write both files, or check them."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m policies.rules.reference [--check]\n")
        return 2
    stale = [file for file, text in documents() if not file.is_file() or file.read_text(encoding="utf-8") != text]
    if arguments:
        for file in stale:
            sys.stderr.write(f"{file.name}: is out of date. Run: python -m policies.rules.reference\n")
        return 1 if stale else 0
    for file, text in documents():
        file.write_text(text, encoding="utf-8")
    return 0


def _row(policy: Policy) -> str:
    level = policy.enforcement_level.value if policy.enforcement_level else ""
    severity = policy.severity.value if policy.severity else ""
    cells = (
        f"`{policy.name}`",
        policy.description,
        _judged(policy),
        f"{severity}, {level}" + (", can remediate" if "remediate" in levels(policy) else ""),
        "<br>".join(f"`{key}`: {_default(key, option)}" for key, option in options(policy).items()),
        policy.remediation_steps or "",
    )
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _judged(policy: Policy) -> str:
    kinds = policy.tags or []
    return "every kind" if {kind_of(type_) for type_ in EVERY} <= set(kinds) else ", ".join(kinds)


def _default(key: str, option: Any) -> str:
    return "the stack's name" if key == STAGE else f"`{json.dumps(option['default'])}`"


def _schema_of(policy: Policy) -> dict[str, Any]:
    level = {"description": "what a violation does", "enum": list(levels(policy))}
    settings = {
        "type": "object",
        "additionalProperties": False,
        "properties": {LEVEL: level, **options(policy)},
    }
    description = f"{policy.description} {policy.remediation_steps or ''}".strip()
    return {"description": description, "oneOf": [{"enum": list(levels(policy))}, settings]}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
