"""What rules on names share: patterns that may ask for the stage, and the options that every such rule has."""

import re
from collections.abc import Iterator

from .declaring import Config, Option
from .values import text

_PLACEHOLDER = "{stage}"
_ANY_STAGE = "[a-z][a-z0-9]*"
WORDS = "[a-z][a-z0-9]*(-[a-z0-9]+)*"
"""Lower-case words with hyphens between them: what Kubernetes takes, and no convention of anybody's."""


def stage_option() -> Option:
    """The option `stage`; the pack fills it in."""
    return {
        "type": "string",
        "default": "",
        "description": "the stage that names must carry; the stack's name unless set",
    }


def pattern_option(default: str, names: str) -> Option:
    """An option with a pattern for these names."""
    return {
        "type": "string",
        "default": default,
        "description": f"regular expression that {names} must match as a whole; {_PLACEHOLDER} stands for the stage",
    }


def stage_of(config: Config) -> str:
    """The stage that names must carry; empty if it is not known."""
    return text(config["stage"]) or ""


def misnamed(described: str, field: str, value: str, config: Config, *, option: str = "pattern") -> Iterator[str]:
    """A message if the value does not match the pattern of that option. Without a stage, any lower-case word is one."""
    pattern, stage = str(config[option]), stage_of(config)
    asked = pattern.replace(_PLACEHOLDER, stage) if stage else pattern
    try:
        matches = re.fullmatch(pattern.replace(_PLACEHOLDER, re.escape(stage) if stage else _ANY_STAGE), value)
    except re.error as reason:
        yield f"{described}: option {option} must be a regular expression (got {pattern}: {reason}). No name matches."
        return
    if not matches:
        yield f"{described}: {field} must match {asked} (got {value}). People, alerts and other stacks go by it."
