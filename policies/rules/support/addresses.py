"""Bootstrap servers: the hosts in them, and the options that name hosts for which a rule makes an exemption."""

import re
from collections.abc import Iterable, Sequence

from .declaring import Option
from .values import sequence, text


def hosts(bootstrap_servers: object) -> list[str]:
    """Hosts of a list `host:port,host:port`, in its order, in lower case and without brackets around IPv6."""
    addresses = [address.strip() for address in (text(bootstrap_servers) or "").split(",")]
    return [re.sub(r":\d+$", "", address).strip("[]").lower() for address in addresses if address]


def hosts_option(description: str) -> Option:
    """An option that is a list of regular expressions, none by default, each for whole hosts."""
    return {
        "type": "array",
        "items": {"type": "string", "format": "regex"},
        "default": [],
        "description": f"{description}; regular expressions, each of which must match a whole host",
    }


def all_match(names: Sequence[str], patterns: object) -> bool:
    """Whether there are hosts and each matches one of the patterns. A pattern that cannot be read matches none."""
    expressions = [*_read(str(pattern) for pattern in sequence(patterns))]
    return bool(names) and all(any(each.fullmatch(name) for each in expressions) for name in names)


def _read(patterns: Iterable[str]) -> Iterable[re.Pattern[str]]:
    for pattern in patterns:
        try:
            yield re.compile(pattern, re.IGNORECASE)
        except re.error:
            continue
