"""The rules of the pack, one module each, in groups.

They judge resources alone and share no code with what made them.
"""

from pulumi_policy import Policy

from . import durability, exceptions, mirror, naming, security, size, tenancy

_RULES = {
    "Durability": durability.RULES,
    "Naming": naming.RULES,
    "Mirror correctness": mirror.RULES,
    "Security": security.RULES,
    "Tenancy": tenancy.RULES,
    "Cost and size": size.RULES,
}
_JUDGES = {group: tuple(rule.POLICY for rule in rules) for group, rules in _RULES.items()}
GROUPS: dict[str, tuple[Policy, ...]] = {
    **_JUDGES,
    "Exceptions": exceptions.policies([policy for policies in _JUDGES.values() for policy in policies]),
}
POLICIES = tuple(policy for policies in GROUPS.values() for policy in policies)
