"""Options that hold regular expressions: lists of values that a rule exempts, and patterns that names must match.

A value matches an expression as a whole. An invalid expression matches nothing and is reported. A pattern of names may
contain `{stage}`, which stands for the stage of the stack.
"""

import re
from collections.abc import Iterator

from policies.support.policy_builder import Config, Option
from policies.support.traversal import sequence, text


def matches(config: Config, option: str, value: str) -> bool:
    """Whether one of the option's expressions matches the value."""
    return any_matches(config[option], value)


def any_matches(given: object, value: str) -> bool:
    """Whether one of these expressions matches the value."""
    return any(not isinstance(each, re.error) and each.fullmatch(value) for _, each in _compiled(given))


def unreadable(subject: str, config: Config, *options: str) -> Iterator[str]:
    """A message for each expression of these options that cannot be read."""
    for option in options:
        for pattern, each in _compiled(config[option]):
            if isinstance(each, re.error):
                yield (
                    f"{subject}: option {option} must hold regular expressions (got {pattern}: {each}). "
                    "It matches nothing."
                )


def _compiled(given: object) -> Iterator[tuple[str, re.Pattern[str] | re.error]]:
    for pattern in [given] if isinstance(given, str) else map(str, sequence(given)):
        try:
            yield pattern, re.compile(pattern, re.IGNORECASE)
        except re.error as reason:
            yield pattern, reason


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


def misnamed(subject: str, field: str, value: str, config: Config, *, option: str = "pattern") -> Iterator[str]:
    """A message if the value does not match the pattern of that option. Without a stage, any lower-case word is one."""
    pattern, stage = str(config[option]), stage_of(config)
    asked = pattern.replace(_PLACEHOLDER, stage) if stage else pattern
    try:
        matches = re.fullmatch(pattern.replace(_PLACEHOLDER, re.escape(stage) if stage else _ANY_STAGE), value)
    except re.error as reason:
        yield f"{subject}: option {option} must be a regular expression (got {pattern}: {reason}). No name matches."
        return
    if not matches:
        yield f"{subject}: {field} must match {asked} (got {value}). People, alerts and other stacks go by it."
