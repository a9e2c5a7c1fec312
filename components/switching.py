"""Changes of who is active, which only a failover or a failback makes.

Somebody's old checkout would otherwise send applications back to a side that lacks records. Owns the comparison with
what the stack exported when it was last up. Does not own the switch itself.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from settings.mirrors import SWITCH_VARIABLE, Mirror

_WORDS = {"source": "the source's cluster", "target": "this stack's cluster"}


def switches(mirrors: Iterable[Mirror], before: Mapping[str, Any], environment: Mapping[str, str]) -> list[str]:
    """Return every change of `active` that nobody asked for: neither a command, by a variable, nor the mirror itself.

    `before` are the mirrors' facts as they were exported. The last line says what to do.
    """
    problems = [
        f"mirror {mirror.name}: active must stay {known!r} (got {mirror.active!r}): applications use "
        f"{_WORDS.get(known, known)}."
        for mirror in mirrors
        if (known := (before.get(mirror.name) or {}).get("active")) not in (None, mirror.active)
        and not mirror.accept_switch
        and environment.get(SWITCH_VARIABLE) != mirror.name
    ]
    if not problems:
        return []
    return [
        *problems,
        "Applications would change sides, and the other one may lack their records and positions. If the stack file "
        "is an old one, bring it up to date. Else switch with `python -m ops failover` or `python -m ops failback`, "
        "or set acceptSwitch: true on the mirror for one `pulumi up`.",
    ]
