"""`python -m policies.judging --resources FILE --stack STACK [--config FILE]`: judges resources without an engine.

For a program whose resources are known without a preview, such as manifests that were rendered. FILE is a JSON list of
`{type, urn, props, protect}`, with properties as Pulumi's SDK sends them. Prints the violations as a JSON list of
`{rule, severity, level, urn, message, description}`. Exit 0 whatever is found, 2 with every mistake of the
configuration.
"""

import argparse
import copy
import gc
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    gc.disable()  # it ends in seconds, and would spend a sixth of them on collecting garbage while it imports

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.deserialize import deserialize_properties
from pulumi_policy.policy import PolicyCustomTimeouts, PolicyResource, PolicyResourceOptions
from pulumi_policy.proxy import unknown_checking_proxy
from pulumi_policy.secret import secrets_preserving_proxy

from policies.rules import POLICIES
from policies.support.configuration import LEVEL, ConfigurationError, of_file, options

Resource = Mapping[str, Any]
Violation = dict[str, str]


def violations(resources: Sequence[Resource], configuration: Mapping[str, Mapping[str, Any]]) -> Iterator[Violation]:
    """Yield what every rule finds in these resources, at the level that the configuration gives the rule.

    A violation that the engine would correct by itself has the level `remediate`.
    """
    for policy in POLICIES:
        settings = {**{key: option["default"] for key, option in options(policy).items()}, **configuration[policy.name]}
        level = settings.pop(LEVEL)
        if level is EnforcementLevel.DISABLED:
            continue
        for message, urn, found_at in _found(policy, resources, settings, level):
            yield {
                "rule": policy.name,
                "severity": policy.severity.value if policy.severity else "",
                "level": found_at.value,
                "urn": urn,
                "message": message,
                "description": policy.description,
            }


def _found(
    policy: Policy, resources: Sequence[Resource], settings: Mapping[str, Any], level: EnforcementLevel
) -> Iterator[tuple[str, str, EnforcementLevel]]:
    found: list[tuple[str, str | None]] = []

    def report(message: str, urn: str | None = None) -> None:
        found.append((message, urn))

    if isinstance(policy, StackValidationPolicy):
        policy.validate(StackValidationArgs([*map(_of_stack, resources)], {**settings}, {}), report)
        yield from ((message, urn or "", level) for message, urn in found)
    if not isinstance(policy, ResourceValidationPolicy):
        return
    for resource in resources:
        found.clear()
        policy.validate(_alone(resource, _sent(resource), settings), report)
        found_at = level
        if found and level is EnforcementLevel.REMEDIATE:
            props = secrets_preserving_proxy(deserialize_properties(copy.deepcopy(resource["props"])))
            corrected = policy.remediate(_alone(resource, props, settings)) is not None
            found_at = level if corrected else EnforcementLevel.MANDATORY
        yield from ((message, resource["urn"], found_at) for message, _ in found)


def _alone(resource: Resource, props: Any, settings: Mapping[str, Any]) -> ResourceValidationArgs:
    protect = _protection(resource)
    return ResourceValidationArgs(
        resource["type"], props, resource["urn"], _name(resource), protect, None, {**settings}, {}
    )


def _of_stack(resource: Resource) -> PolicyResource:
    protect = _protection(resource)
    return PolicyResource(
        resource["type"], _sent(resource), resource["urn"], _name(resource), protect, None, None, [], {}
    )


def _sent(resource: Resource) -> Any:
    return unknown_checking_proxy(deserialize_properties(resource["props"]))


def _name(resource: Resource) -> str:
    return str(resource["urn"]).rsplit("::", 1)[-1]


def _protection(resource: Resource) -> PolicyResourceOptions:
    return PolicyResourceOptions(resource["protect"], [], None, [], PolicyCustomTimeouts(0, 0, 0), [], None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the violations; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m policies.judging", description="Judge resources without an engine."
    )
    parser.add_argument("--resources", required=True, type=Path, metavar="FILE", help="JSON list of the resources")
    parser.add_argument("--stack", required=True, help="name of the stack, whose stage names must carry")
    parser.add_argument("--config", type=Path, metavar="FILE", help="JSON file that configures the rules")
    given = parser.parse_args(arguments)
    try:
        configuration = of_file(given.config, given.stack, POLICIES)
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    resources = json.loads(given.resources.read_text(encoding="utf-8"))
    sys.stdout.write(json.dumps([*violations(resources, configuration)]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
