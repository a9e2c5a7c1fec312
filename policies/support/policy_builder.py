"""The builder of policies: `resource_policy` and `stack_policy` turn a rule's function into a policy of the pack.

A rule yields messages and does not depend on the engine. The builder adds types, options and remedy, skips what is
unknown in a preview (the update checks it), and honours exceptions: an annotation on a resource lifts one rule from it,
with a reason, until a day: `exception.rt-inventory/<rule>: "until 2027-03-31: one broker until the new rack is there"`.
It is valid through that day, in UTC. One that is expired or cannot be read lifts nothing.

Options may have regular expressions: of values that a rule exempts, or a pattern that names must match. An expression
matches a value as a whole; an invalid one matches nothing and is reported. A pattern of names may contain `{stage}`,
which stands for the stage of the stack.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    PolicyConfigSchema,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import UnknownValueError

from policies.support.resources import Props, each, items, kind_of, sequence, text, within
from policies.support.secret_values import redact_secrets

Config = Mapping[str, Any]
Option = Mapping[str, Any]
_liftable: set[str] = set()


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource of the stack: Pulumi's type and URN, its properties, and whether Pulumi protects it."""

    type_: str
    props: Props
    urn: str = ""
    protect: bool = False


@dataclass(frozen=True)
class Finding:
    """A violation of a rule over the stack, and the resource to which it belongs, if it is one resource's.

    What several resources have in common is `shared`: it is reported once, at the first without an exception.
    """

    message: str
    resource: Resource | None = None
    shared: bool = False


def liftable_rules() -> frozenset[str]:
    """Return the names of the rules that an exception can lift: of all policies that are built by now."""
    return frozenset(_liftable)


def count_option(default: int, what: str) -> Option:
    """An option that is a whole number of at least 1; `what` is what it counts."""
    return {"type": "integer", "minimum": 1, "default": default, "description": what}


def count(config: Config, option: str) -> int:
    """The value of such an option. The engine has checked it by its schema, and sends it as a float."""
    return int(config[option])


def resource_policy(
    *,
    name: str,
    description: str,
    types: frozenset[str],
    violations: Callable[[str, Props, Config], Iterable[str]],
    severity: Severity,
    remediation_steps: str,
    options: Mapping[str, Option] | None = None,
    enforcement_level: EnforcementLevel = EnforcementLevel.MANDATORY,
    remedy: Callable[[Props, Config], bool] | None = None,
    can_be_lifted: bool = True,
) -> ResourceValidationPolicy:
    """Return a policy on single resources. It stops an update before the resource is created.

    Args:
        name: name of the rule, that of its file with hyphens.
        description: what the rule asks for, one sentence.
        types: Pulumi types of the resources that it judges.
        violations: yields the messages of a resource, from its type, its properties and the rule's options.
        severity: how grave a violation is.
        remediation_steps: what a person does about a violation.
        options: JSON schemas of the options, each with a `description` and a `default`, so that none is ever missing.
        enforcement_level: the level unless the configuration sets another.
        remedy: corrects the properties in place and returns whether it did; runs at the level `remediate` only.
        can_be_lifted: whether an exception on a resource lifts the rule from it.
    """

    if can_be_lifted:
        _liftable.add(name)

    def applies(args: ResourceValidationArgs) -> bool:
        if args.resource_type not in types:
            return False
        return not (can_be_lifted and lifted(name, args.props, today()))

    def validate(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
        try:
            if applies(args):
                for message in violations(args.resource_type, args.props, args.get_config()):
                    report_violation(_line(message), None)
        except UnknownValueError:
            return

    def remediate(args: ResourceValidationArgs) -> Props | None:
        if remedy is not None and applies(args) and remedy(args.props, args.get_config()):
            return args.props
        return None

    return ResourceValidationPolicy(
        name=name,
        description=description,
        validate=validate,
        remediate=remediate if remedy else None,  # type: ignore[arg-type] # None is a valid answer of the SDK's
        enforcement_level=enforcement_level,
        config_schema=_schema(options),
        severity=severity,
        remediation_steps=remediation_steps,
        tags=_kinds(types),
    )


def stack_policy(
    *,
    name: str,
    description: str,
    types: frozenset[str],
    violations: Callable[[Sequence[Resource], Config], Iterable[Finding]],
    severity: Severity,
    remediation_steps: str,
    options: Mapping[str, Option] | None = None,
    enforcement_level: EnforcementLevel = EnforcementLevel.MANDATORY,
    can_be_lifted: bool = True,
) -> StackValidationPolicy:
    """Return a policy on resources together. It runs when all are known: at the end of preview and update.

    `violations` yields findings, from the stack's resources of these types and the rule's options. All other arguments
    are those of `resource_policy`.
    """

    if can_be_lifted:
        _liftable.add(name)

    def validate(args: StackValidationArgs, report_violation: ReportViolation) -> None:
        resources = [
            Resource(type_=one.resource_type, props=one.props, urn=one.urn, protect=bool(one.opts.protect))
            for one in args.resources
            if one.resource_type in types
        ]
        shared: set[str] = set()

        def stays(finding: Finding) -> Iterator[Finding]:
            if finding.message in shared or (
                can_be_lifted and finding.resource and lifted(name, finding.resource.props, today())
            ):
                return
            if finding.shared:
                shared.add(finding.message)
            yield finding

        try:
            for finding in each(violations(resources, args.get_config()), stays):
                report_violation(_line(finding.message), finding.resource.urn if finding.resource else None)
        except UnknownValueError:
            return

    return StackValidationPolicy(
        name=name,
        description=description,
        validate=validate,
        enforcement_level=enforcement_level,
        config_schema=_schema(options),
        severity=severity,
        remediation_steps=remediation_steps,
        tags=_kinds(types),
    )


def _line(message: str) -> str:
    """The message on one line and without secrets, whatever values it contains.

    A pattern of YAML's block form ends with a line break; a password may stand in any field by mistake.
    """
    return redact_secrets("\\n".join(message.splitlines()))


def _kinds(types: frozenset[str]) -> list[str]:
    """Kinds of the resources that a policy judges, for the table of rules."""
    return sorted({kind_of(type_) for type_ in types})


def _schema(options: Mapping[str, Option] | None) -> PolicyConfigSchema | None:
    return PolicyConfigSchema(properties={key: dict(option) for key, option in options.items()}) if options else None


EXCEPTION_PREFIX = "exception.rt-inventory/"
EXCEPTION_FORM = '"until YYYY-MM-DD: reason"'
_VALUE = re.compile(r"until (\d{4}-\d{2}-\d{2}): *(\S.*)", re.DOTALL)


@dataclass(frozen=True)
class PolicyException:
    """One exception; `until` is None where its value cannot be read, and `value` is the annotation's value."""

    rule: str
    value: str
    until: date | None
    reason: str

    def active(self, today: date) -> bool:
        """Whether it lifts its rule on that day."""
        return self.until is not None and today <= self.until


def today() -> date:
    """The current day in UTC."""
    return datetime.now(UTC).date()


def exceptions(props: Props) -> Iterator[PolicyException]:
    """Every exception in the annotations of the resource."""
    for key, value in items(within(props, "metadata", "annotations")):
        if key.startswith(EXCEPTION_PREFIX):
            yield _read(key.removeprefix(EXCEPTION_PREFIX), str(value))


def lifted(rule: str, props: Props, day: date) -> bool:
    """Whether an active exception lifts the rule from the resource."""
    return any(exception.rule == rule and exception.active(day) for exception in exceptions(props))


def _read(rule: str, value: str) -> PolicyException:
    match = _VALUE.fullmatch(value.strip())
    try:
        until = date.fromisoformat(match[1]) if match else None
    except ValueError:
        until = None
    return PolicyException(rule, value, until, match[2].strip() if match else "")


def matches(config: Config, option: str, value: str) -> bool:
    """Whether one of the option's expressions matches the value."""
    return any_matches(config[option], value)


def any_matches(given: object, value: str) -> bool:
    """Whether one of these expressions matches the value."""
    return any(not isinstance(each, re.error) and each.fullmatch(value) for _, each in _compiled(given))


def unreadable(subject: str, config: Config, *options: str) -> Iterator[str]:
    """A message for each expression of these options that cannot be read."""
    for option in options:
        for pattern, read in _compiled(config[option]):
            if isinstance(read, re.error):
                yield (
                    f"{subject}: option {option} must hold regular expressions (got {pattern}: {read}). "
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
