"""How a rule becomes a policy of the pack: its types, its options, its exceptions and, for some, its remedy.

A rule yields messages and knows nothing of the engine. What an exception lifts is not reported; what a preview does not
know yet is skipped and checked by the update.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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

from .exceptions import lifted, today
from .kinds import kind_of
from .secret_values import without_secrets
from .values import Props

Config = Mapping[str, Any]
Option = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource of the stack: Pulumi's type and URN, its properties, and whether Pulumi protects it."""

    type_: str
    props: Props
    urn: str = ""
    protect: bool = False


@dataclass(frozen=True)
class Finding:
    """What a rule over the whole stack found, and the resource to which it belongs, if it is one resource's fault."""

    message: str
    resource: Resource | None = None


def amount(default: int, what: str) -> Option:
    """An option that is a whole number of at least 1; `what` tells what it counts."""
    return {"type": "integer", "minimum": 1, "default": default, "description": what}


def counted(config: Config, option: str) -> int:
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
    """A policy on single resources of these types. It stops an update before the resource is made.

    `violations(type, props, config)` yields messages. `remedy(props, config)` corrects the properties in place and says
    whether it did; it takes effect where the rule's enforcementLevel is `remediate`. Options are JSON schemas with a
    `description` and a `default`, so that `config` holds every option.
    """

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
    """A policy on what resources are to each other. It runs when all are known: at the end of preview and update.

    `violations(resources, config)` gets the stack's resources of these types only, and yields findings.
    """

    def validate(args: StackValidationArgs, report_violation: ReportViolation) -> None:
        resources = [
            Resource(type_=each.resource_type, props=each.props, urn=each.urn, protect=bool(each.opts.protect))
            for each in args.resources
            if each.resource_type in types
        ]
        try:
            for finding in violations(resources, args.get_config()):
                of = finding.resource
                if of is None or not (can_be_lifted and lifted(name, of.props, today())):
                    report_violation(_line(finding.message), of.urn if of else None)
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
    """The message on one line and without secrets, whatever values it tells.

    A pattern of YAML's block form ends with a line break; a password may stand in any field by mistake.
    """
    return without_secrets("\\n".join(message.splitlines()))


def _kinds(types: frozenset[str]) -> list[str]:
    """What the policy reads, for the table of rules."""
    return sorted({kind_of(type_) for type_ in types})


def _schema(options: Mapping[str, Option] | None) -> PolicyConfigSchema | None:
    return PolicyConfigSchema(properties={key: dict(option) for key, option in options.items()}) if options else None
