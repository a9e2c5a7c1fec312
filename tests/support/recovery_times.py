"""What the runbook says that applications wait in a failover, which clients must live through."""

import re

from .runbook_commands import RUNBOOK

_ROW = re.compile(r"^\| (?:planned|unplanned)\b[^|]*\|[^|]*\| (\d+) s\b", re.MULTILINE)


def measured_rto_s() -> float:
    """The longer wait of both failovers, in seconds."""
    found = _ROW.findall(RUNBOOK.read_text(encoding="utf-8"))
    assert len(found) == 2, f"docs/runbook.md: a wait of each failover (got {found})"
    return max(map(float, found))
