"""The rules of the pack, one module each, in groups.

They judge resources alone and share no code with what made them.
"""

from . import durability, mirror, naming, security, size, tenancy

GROUPS = {
    "Durability": durability.RULES,
    "Naming": naming.RULES,
    "Mirror correctness": mirror.RULES,
    "Security": security.RULES,
    "Tenancy": tenancy.RULES,
    "Cost and size": size.RULES,
}
POLICIES = tuple(rule.POLICY for rules in GROUPS.values() for rule in rules)
