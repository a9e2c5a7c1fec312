"""The dashboards as JSON, made by Grafana's Foundation SDK."""

import json
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from monitoring import dashboards
from monitoring.alerts.plain import RUNBOOK_URL
from monitoring.dashboards import cluster, fleet, groups, mirror, pages, verification

PAGES = (fleet, mirror, groups, verification, cluster)


def built() -> dict[str, dict[str, Any]]:
    """Return every dashboard as it is drawn now, by its file's name."""
    found = {}
    for each in PAGES:
        encoded = json.dumps(pages.finished(each.page(RUNBOOK_URL).build()), cls=JSONEncoder)
        document = json.loads(encoded)
        found[f"{document['uid']}.json"] = document
    return found


def written() -> dict[str, str]:
    """Return what the committed files should hold, by their names."""
    return {name: dashboards.text(document) for name, document in built().items()}
