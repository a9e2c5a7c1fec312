"""Exceptions themselves are judged: one that is expired or cannot be read fails, and the active ones are listed."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from pulumi_policy import EnforcementLevel, Policy, Severity

from .support.declaring import Config, Finding, Resource, amount, counted, resource_policy, stack_policy
from .support.exceptions import FORM, PREFIX, exceptions, today
from .support.kinds import EVERY, kind_of
from .support.secret_values import without_secrets
from .support.values import Props, name

_DAYS = 366


def policies(rules: Sequence[Policy]) -> tuple[Policy, ...]:
    """The policies on exceptions from these rules."""
    names = {rule.name for rule in rules}

    def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
        day, days = today(), counted(config, "maximumDays")
        for exempt in exceptions(props):
            where = f"{kind_of(type_)} {name(props)}: annotation {PREFIX}{exempt.rule}"
            if exempt.rule not in names:
                yield f"{where} must name a rule that can be lifted (got {exempt.rule}). The README lists the rules."
            elif exempt.until is None:
                # Before the quotes are put around it, within which nothing is taken for a value.
                value = without_secrets(exempt.value)
                yield f'{where} must be {FORM} (got "{value}"). As it stands it lifts nothing.'
            elif not exempt.active(day):
                yield (
                    f"{where} must hold still (got until {exempt.until}, today {day}). "
                    f"It lifts nothing any more: mend what it excused ({exempt.reason}), or decide again."
                )
            elif exempt.until > day + timedelta(days=days):
                yield (
                    f"{where} must end within {days} days (got until {exempt.until}, "
                    f"allowed {day + timedelta(days=days)}). An exception for ever belongs into the configuration."
                )

    return (
        resource_policy(
            name="policy-exceptions",
            description="An exception names a rule, a reason and a day until which it holds, and has not expired.",
            types=EVERY,
            can_be_lifted=False,
            violations=violations,
            options={"maximumDays": amount(_DAYS, "most days from now for which an exception may hold")},
            severity=Severity.HIGH,
            remediation_steps="Correct the annotation, or remove it together with what it excused.",
        ),
        stack_policy(
            name="active-exceptions",
            description="The exceptions that hold today.",
            types=EVERY,
            can_be_lifted=False,
            violations=_active,
            severity=Severity.LOW,
            enforcement_level=EnforcementLevel.ADVISORY,
            remediation_steps="Nothing to do until the day that each one names.",
        ),
    )


def _active(resources: Sequence[Resource], _config: Config) -> Iterator[Finding]:
    """A finding for every active exception: it is a list, not a complaint."""
    for resource in resources:
        for exempt in exceptions(resource.props):
            if exempt.active(today()):
                object_ = f"{kind_of(resource.type_)} {name(resource.props)}"
                message = f"{object_}: {exempt.rule} is lifted until {exempt.until}: {exempt.reason}"
                yield Finding(message, resource)
