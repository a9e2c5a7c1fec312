"""The stack: the exceptions that are active today are listed. A finding is information, not a violation."""

from collections.abc import Iterator, Sequence

from pulumi_policy import EnforcementLevel, Severity

from policies.support.policy_builder import Config, Finding, Resource, exceptions, stack_policy, today
from policies.support.resources import EVERY, each, kind_of, name


def violations(resources: Sequence[Resource], _config: Config) -> Iterator[Finding]:
    """A finding for every active exception."""

    def check(resource: Resource) -> Iterator[Finding]:
        for exception in exceptions(resource.props):
            if exception.active(today()):
                subject = f"{kind_of(resource.type_)} {name(resource.props)}"
                message = f"{subject}: {exception.rule} is lifted until {exception.until}: {exception.reason}"
                yield Finding(message, resource)

    yield from each(resources, check)


POLICY = stack_policy(
    name="active-exceptions",
    description="The exceptions that are active today.",
    types=EVERY,
    can_be_lifted=False,
    violations=violations,
    severity=Severity.LOW,
    enforcement_level=EnforcementLevel.ADVISORY,
    remediation_steps="Nothing to do until the day that each one names.",
)
