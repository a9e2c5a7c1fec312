"""What belongs to one line of business only."""

from . import owned_prefixes

RULES = (owned_prefixes,)
