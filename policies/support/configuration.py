"""The pack's configuration for a stack: `config.<stack>.json` in the pack, and all errors of one.

These files configure the stacks of the project around the pack. Another project has stacks of the same names that are
others, such as an example beside this project: its configuration lies beside its stack files and is given by
`--policy-pack-config`.

The file has Pulumi's own form, so that it can be given by `--policy-pack-config` too: a key per rule, whose value is an
enforcement level or an object of options with, maybe, `enforcementLevel`; `all` sets the level of every rule. The
engine checks the options' types and bounds by their schemas, but ignores keys that it does not know. They are refused
here.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pulumi_policy.policy
from pulumi_policy import EnforcementLevel, Policy, ResourceValidationPolicy

LEVEL = "enforcementLevel"
LEVELS = tuple(level.value for level in EnforcementLevel)
STAGE = "stage"
Configuration = dict[str, dict[str, Any]]
_PROJECT_NAME = re.compile(r"^name:\s*[\"']?([^\s\"'#]+)", re.MULTILINE)


class ConfigurationError(Exception):
    """A configuration that cannot be used; the message has every error, a line each."""


def for_stack(folder: Path, project: str, stack: str, policies: Collection[Policy]) -> Configuration:
    """Level and options of every rule in a stack of a project, from the pack's folder.

    They are those of `config.<stack>.json`, if that file is this project's, and the rule's own. Stages are the stack's
    name. Raises ConfigurationError with every mistake of the file.
    """
    file = folder / f"config.{stack}.json"
    return of_file(file if _configures(folder, project) else None, stack, policies)


def of_file(file: Path | None, stack: str, policies: Collection[Policy]) -> Configuration:
    """Level and options of every rule by one file, which may be missing: then the rules' own.

    Raises ConfigurationError with every mistake of the file.
    """
    given = _read(file) if file is not None and file.is_file() else {}
    if file is not None and (found := [*mistakes(given, policies)]):
        raise ConfigurationError("\n".join(f"{file.name}: {mistake}" for mistake in found))
    return {policy.name: _settings(policy, given, stack) for policy in policies}


def mistakes(given: Mapping[str, Any], policies: Collection[Policy]) -> Iterator[str]:
    """What is wrong with the keys and levels of a configuration."""
    by_name = {policy.name: policy for policy in policies}
    for name, settings in given.items():
        policy = by_name.get(name)
        if policy is None and name != "all":
            yield f"{name} must be a rule of this pack (got {name}). README.md lists them."
            continue
        known = [LEVEL, *(options(policy) if policy else ())]
        if isinstance(settings, Mapping):
            for key in settings:
                if key not in known:
                    yield f"{name}.{key} must be a known key (got {key}, allowed {', '.join(known)}). Correct it."
        elif not isinstance(settings, str):
            yield f"{name} must be a level or an object (got {settings!r})."
            continue
        yield from _level(name, settings if isinstance(settings, str) else settings.get(LEVEL), policy)


def options(policy: Policy) -> Mapping[str, Mapping[str, Any]]:
    """The policy's options by name, each a JSON schema."""
    return policy.config_schema.properties if policy.config_schema else {}


def levels(policy: Policy | None) -> tuple[str, ...]:
    """Levels that the policy can have; only a policy with a remedy can have `remediate`."""
    fixes = policy is None or (isinstance(policy, ResourceValidationPolicy) and policy.has_remediation())
    return tuple(level for level in LEVELS if fixes or level != EnforcementLevel.REMEDIATE.value)


def refuse_unknown_keys(policies: Collection[Policy]) -> None:
    """Make the pack reject a configuration with unknown keys, wherever it came from.

    The SDK has no hook for that: its servicer takes whatever the engine passes.
    """
    servicer: Any = pulumi_policy.policy._PolicyAnalyzerServicer
    configure = servicer.Configure

    def checked(self: Any, request: Any, context: Any) -> Any:
        given = {name: dict(settings.properties) for name, settings in request.policyConfig.items()}
        if found := [*mistakes(given, policies)]:
            raise ConfigurationError("policy configuration: " + " ".join(found))
        return configure(self, request, context)

    servicer.Configure = checked


def _configures(folder: Path, project: str) -> bool:
    """Whether the pack's files are for stacks of that project. They are for any if the pack lies in no project."""
    around = folder.resolve().parent / "Pulumi.yaml"
    found = _PROJECT_NAME.search(around.read_text(encoding="utf-8")) if around.is_file() else None
    return found is None or not project or found[1] == project


def _settings(policy: Policy, given: Mapping[str, Any], stack: str) -> dict[str, Any]:
    """Options and level of one rule. The level is always present: the SDK reads options without one as advisory."""
    settings = given.get(policy.name, {})
    settings = {LEVEL: settings} if isinstance(settings, str) else dict(settings)
    level = (
        settings.get(LEVEL) or _level_of_all(given) or (policy.enforcement_level or EnforcementLevel.MANDATORY).value
    )
    settings[LEVEL] = EnforcementLevel(level)
    if STAGE in options(policy):
        settings.setdefault(STAGE, stack)
    return settings


def _level_of_all(given: Mapping[str, Any]) -> str | None:
    settings = given.get("all")
    level = settings.get(LEVEL) if isinstance(settings, Mapping) else settings
    return None if level is None else str(level)


def _read(file: Path) -> dict[str, Any]:
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{file.name}: must be JSON ({error}). Correct it.") from None
    if not isinstance(given, dict):
        raise ConfigurationError(f"{file.name}: must be an object with a key per rule (got {given!r}).")
    return given


def _level(name: str, level: object, policy: Policy | None) -> Iterator[str]:
    if level is not None and level not in levels(policy):
        yield f"{name}: {LEVEL} must be one of {', '.join(levels(policy))} (got {level})."
