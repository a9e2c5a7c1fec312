"""The last verification of a mirror: that of the last `up` in the stack's outputs, or a newer report on this machine.

Owns which of them is the last.
"""

import glob
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ops import verify
from ops.recovery.mirror_context import MirrorContext

REPORTS = Path("reports")
REPORTS_MAX = 200
_PAGE = "page"
_NEVER = datetime.min.replace(tzinfo=UTC)


def latest(pair: MirrorContext, reports: Path = REPORTS) -> Mapping[str, Any] | None:
    """Return the last run whose end is known, by the report's names; None if there is none."""
    runs = [one for one in (_of_outputs(pair), *_reports(pair, reports)) if _finished(one) is not None]
    return max(runs, key=lambda one: (_finished(one) or _NEVER, "seconds" in one), default=None)


def latest_proof(pair: MirrorContext, reports: Path = REPORTS) -> Mapping[str, Any] | None:
    """Return the same by the names of the stack's outputs: what an `up` reported, unless a run here is newer."""
    last = latest(pair, reports)
    if last is None or "seconds" not in last or last.get("finished_at") == (pair.proof or {}).get("finishedAt"):
        return pair.proof
    names = {ok: [check["name"] for check in verify.checks_of(last) if check["ok"] is ok] for ok in (False, None)}
    return {
        "verdict": last.get("verdict"),
        "finishedAt": last.get("finished_at"),
        "recordsCompared": last.get("records_compared"),
        "failed": ", ".join(names[False]),
        "unknown": ", ".join(names[None]),
        "report": str(last[_PAGE]),
    }


def _of_outputs(pair: MirrorContext) -> dict[str, Any]:
    """Return the verification in the outputs, by the names of a report; {} if there is none."""
    proof = pair.proof or {}
    names = {"verdict": "verdict", "finishedAt": "finished_at", "recordsCompared": "records_compared"}
    known = {ours: proof[theirs] for theirs, ours in names.items() if proof.get(theirs) is not None}
    return {**known, "checks": verify.checks_of(proof)} if "verdict" in known else {}


def _reports(pair: MirrorContext, folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield reports of this mirror: of the latest `up`, and of the latest run of `ops verify`."""
    named = (pair.proof or {}).get("report")
    own = f"{glob.escape(f'{pair.stack}-{pair.mirror}')}-[0-9]*T[0-9]*Z/report.json"
    newest = sorted(folder.glob(own), reverse=True)[:REPORTS_MAX]
    for path in [*([pair.project / str(named)] if named else []), *newest]:
        try:
            found = json.loads(path.with_name("report.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(found, dict) and _is_of(found, pair):
            yield {**found, _PAGE: path.with_name("report.html")}
            if path in newest:
                return


def _is_of(found: Mapping[str, Any], pair: MirrorContext) -> bool:
    """Whether a report is of this mirror between these clusters: the folder may have reports of other stacks.

    A stack of the same name may be deployed elsewhere, or may have been before: only the addresses differ.
    """
    if found.get("mirror") != pair.mirror or found.get("stack") not in (None, pair.label):
        return False
    for role in ("source", "target"):
        side = found.get(role)
        address = side.get("bootstrap_servers") if isinstance(side, dict) else None
        if address not in (None, getattr(pair.request, role).client_config["bootstrap.servers"]):
            return False
    return True


def _finished(run: Mapping[str, Any]) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(run["finished_at"]))
    except (KeyError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
