"""Alerts: what is looked at, when somebody has to know, and how Prometheus reads it.

Owns the rules and the numbers that they compare with. Does not own the metrics (`monitoring.catalog`), who is told
(`monitoring.alertmanager`), or what to do then (`docs/alerts.md`).
"""

from monitoring.alerts.catalog import ALERT_GROUPS, ALERTS
from monitoring.alerts.model import Alert, AlertGroup, MonitoredCluster, MonitoredMirror, Severity, Thresholds
from monitoring.alerts.rendering import UnknownAlertError, render, value_of
from monitoring.alerts.scope import Scope

__all__ = [
    "ALERTS",
    "ALERT_GROUPS",
    "Alert",
    "AlertGroup",
    "MonitoredCluster",
    "MonitoredMirror",
    "Scope",
    "Severity",
    "Thresholds",
    "UnknownAlertError",
    "render",
    "value_of",
]
