"""The dashboards as JSON, made by Grafana's Foundation SDK."""

import json

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from monitoring.alerts.rendering import RUNBOOK_URL
from monitoring.dashboards import Document, Documents, cluster, fleet, groups, mirror, pages, verification

PAGES = (fleet, mirror, groups, verification, cluster)


def built() -> Documents:
    """Return every dashboard as it is drawn now, by its uid and in the order of the committed ones."""
    drawn = (pages.finished(each.page(RUNBOOK_URL).build()) for each in PAGES)
    found = (_with_annotation_texts(json.loads(json.dumps(each, cls=JSONEncoder))) for each in drawn)
    return {document["uid"]: document for document in sorted(found, key=lambda each: str(each["uid"]))}


def _with_annotation_texts(document: Document) -> Document:
    """Return a dashboard whose marks say what they stand for; the SDK does not know how."""
    for marks in document["annotations"]["list"]:
        marks |= pages.ANNOTATION_TEXTS
    return document
