"""From what was seen to the troubles: no look, no wait, the same findings for the same facts."""

import re
from collections.abc import Iterable
from dataclasses import replace

from ops.doctor.cluster_troubles import cluster_troubles
from ops.doctor.connect_troubles import connect_troubles
from ops.doctor.seen import Seen
from ops.doctor.topic_troubles import topic_troubles
from ops.doctor.troubles import TROUBLES, Finding
from spark.redaction import HIDDEN, hidden

_LOGIN = re.compile(r"(?<=://)[^/\s@]+@")


def examine(seen: Seen, secrets: list[str] | None = None) -> list[Finding]:
    """Return every trouble that what was seen shows, the worst first, each once; `secrets` stand in none of them."""
    all_of_them = [*cluster_troubles(seen), *connect_troubles(seen), *topic_troubles(seen)]
    order = list(TROUBLES)
    clean = {
        Finding(
            trouble=one.trouble,
            where=one.where,
            what=_line(_clean(one.what, secrets or ())),
            remedy=_line(_clean(one.remedy, secrets or ())),
            severity=one.severity,
        ): None
        for one in all_of_them
    }
    return sorted(clean, key=lambda one: (one.severity != "error", order.index(one.trouble), one.where))


def cleaned(seen: Seen, secrets: Iterable[str]) -> Seen:
    """Return what was seen with no secret in what is told of the looks themselves."""
    unseen, notes = (tuple(_clean(one, secrets) for one in told) for told in (seen.unseen, seen.notes))
    return replace(seen, unseen=unseen, notes=notes)


def _clean(text: str, secrets: Iterable[str]) -> str:
    """Without these secrets, and without the login that an address may hold."""
    return _LOGIN.sub(f"{HIDDEN}@", hidden(text, secrets))


def _line(text: str) -> str:
    return " ".join(text.split())
