"""Every resource: an exception from a rule must be readable, end within a year and not have expired."""

from collections.abc import Iterator
from datetime import timedelta

from pulumi_policy import Severity

from policies.support.policy_builder import (
    EXCEPTION_FORM,
    EXCEPTION_PREFIX,
    Config,
    count,
    count_option,
    exceptions,
    liftable_rules,
    resource_policy,
    today,
)
from policies.support.resources import EVERY, Props, kind_of, name
from policies.support.secret_values import redact_secrets


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """At most one message for each exception."""
    day, days = today(), count(config, "maximumDays")
    for exception in exceptions(props):
        where = f"{kind_of(type_)} {name(props)}: annotation {EXCEPTION_PREFIX}{exception.rule}"
        if exception.rule not in liftable_rules():
            yield f"{where} must name a rule that can be lifted (got {exception.rule}). The README lists the rules."
        elif exception.until is None:
            # Redacted before it is quoted: within quotes nothing is taken for a value.
            value = redact_secrets(exception.value)
            yield f'{where} must be {EXCEPTION_FORM} (got "{value}"). It lifts nothing until it is corrected.'
        elif not exception.active(day):
            yield (
                f"{where} must not have expired (got until {exception.until}, today {day}). It lifts nothing any more: "
                f"correct what it excused ({exception.reason}), or decide again."
            )
        elif exception.until > day + timedelta(days=days):
            yield (
                f"{where} must end within {days} days (got until {exception.until}, "
                f"allowed {day + timedelta(days=days)}). A permanent exception belongs in the configuration."
            )


POLICY = resource_policy(
    name="policy-exceptions",
    description="An exception names a rule, a reason and a day until which it is valid, and has not expired.",
    types=EVERY,
    can_be_lifted=False,
    violations=violations,
    options={"maximumDays": count_option(366, "most days from now for which an exception may be valid")},
    severity=Severity.HIGH,
    remediation_steps="Correct the annotation, or remove it together with what it excused.",
)
