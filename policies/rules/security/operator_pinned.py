"""Subscription: the Kafka operator changes its version only when somebody decides it.

A new operator restarts every broker and mirror that it manages, and may demand another API version. OLM installs what a
channel offers as soon as it offers it, unless approval is manual. A channel without a version leads across releases.
`startingCSV` is not demanded: it decides the first version only, and with manual approval that is approved too.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.policy_builder import Config, matches, resource_policy, unreadable
from policies.support.resources import SUBSCRIPTION, Props, each, mapping, name, sequence, text

_AUTOMATIC = "Automatic"


def violations(_type: str, props: Props, config: Config) -> Iterator[str]:
    """A message for the channel and one for the approval."""
    yield from unreadable(_described(props), config, "packages", "channel")
    if matches(config, "packages", text(mapping(props.get("spec")).get("name")) or ""):
        yield from each((_channel, _approval), lambda check: check(props, config))


def _described(props: Props) -> str:
    return f"subscription {name(props)}"


def _channel(props: Props, config: Config) -> Iterator[str]:
    channel = text(mapping(props.get("spec")).get("channel")) or ""
    if not channel or not matches(config, "channel", channel):
        yield (
            f"{_described(props)}: channel must match {config['channel']} "
            f"(got {channel or 'nothing, which means the default of the package'}). "
            "A channel without a version leads to the next release, which can restart every broker."
        )


def _approval(props: Props, config: Config) -> Iterator[str]:
    approval = text(mapping(props.get("spec")).get("installPlanApproval"))
    approvals = [str(allowed) for allowed in sequence(config["approvals"])]
    if (approval or _AUTOMATIC) not in approvals:
        yield (
            f"{_described(props)}: installPlanApproval must be {' or '.join(approvals)} "
            f"(got {approval or f'nothing, which means {_AUTOMATIC}'}). "
            "Otherwise an upgrade of the operator can restart every broker at any time."
        )


POLICY = resource_policy(
    name="operator-pinned",
    description="A Kafka operator is subscribed to a channel with a version, and upgrades need approval.",
    types=SUBSCRIPTION,
    violations=violations,
    options={
        "channel": {
            "type": "string",
            "default": r".*\d.*",
            "description": "allowed channels (regular expression of the whole name)",
        },
        "approvals": {
            "type": "array",
            "items": {"type": "string", "enum": ["Manual", _AUTOMATIC]},
            "minItems": 1,
            "default": ["Manual"],
            "description": "allowed values of installPlanApproval",
        },
        "packages": {
            "type": "array",
            "items": {"type": "string"},
            "default": [".*kafka.*", ".*strimzi.*", ".*eventstreams.*", "amq-streams.*"],
            "description": "packages whose subscriptions are judged (regular expressions of the whole name)",
        },
    },
    severity=Severity.MEDIUM,
    remediation_steps="Set a channel that names a version, and `installPlanApproval: Manual`.",
)
