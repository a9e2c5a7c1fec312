"""Alertmanager: its configuration, and what a message in Slack says.

Owns routes, inhibitions and texts. Does not own the webhook's address, which stands in a file or a Secret only, nor
the form that the Prometheus Operator wants (`monitoring.alertmanager_config`).
"""

from monitoring.alertmanager.configuration import PAGING_STAGES, TEMPLATES, Channels, configuration, inhibitions

__all__ = ["PAGING_STAGES", "TEMPLATES", "Channels", "configuration", "inhibitions"]
