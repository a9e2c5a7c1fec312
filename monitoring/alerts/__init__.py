"""Alerts: their expressions and thresholds, and Prometheus' rule files made of them.

Owns the rules and their thresholds. Does not own the metrics (`monitoring.metrics.catalog`), the receivers
(`monitoring.alert_routes`), or the runbook (`docs/alerts.md`).
"""

from monitoring.alerts.model import Alert, AlertGroup, MonitoredCluster, MonitoredMirror, Severity, Thresholds
from monitoring.alerts.rendering import ALERT_GROUPS, ALERTS, Scope, UnknownAlertError, render, value_of

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
