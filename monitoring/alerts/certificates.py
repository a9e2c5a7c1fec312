"""Certificates that nobody renewed: of brokers and authorities, on both sides as far as somebody looks at them."""

from monitoring.alerts.model import Alert, AlertGroup, Severity

_LABELS = ("stack", "mirror", "cluster", "certificate")
_DAYS_LEFT = (
    "(min by (stack, mirror, cluster, certificate)"
    " (rt_inventory_certificate_expiry_timestamp_seconds{<stack>} or <authorities>) - time()) / 86400"
)
_WHERE = "{{ with $labels.mirror }} of mirror {{ . }}{{ end }}{{ with $labels.cluster }} of cluster {{ . }}{{ end }}"
_SUMMARY = "Certificate {{ $labels.certificate }}" + _WHERE + ' expires in {{ $value | printf "%.1f" }} days'


def _expires(severity: Severity, threshold: str) -> Alert:
    return Alert(
        name="CertificateExpiresSoon",
        severity=severity,
        value=_DAYS_LEFT,
        comparison="<",
        threshold=threshold,
        hold="1h",
        labels=_LABELS,
        mirrors=None,
        summary=_SUMMARY,
        description=f"Fewer than <{threshold}> days are left, in stack {{{{ $labels.stack }}}}. An operator renews "
        "its own 30 days before. Once it has expired no client connects, a mirror neither.",
    )


CERTIFICATES = AlertGroup(
    name="certificates",
    dashboard="rt-inventory-cluster",
    alerts=(
        _expires(Severity.WARNING, "certificate_warning_days"),
        _expires(Severity.CRITICAL, "certificate_critical_days"),
    ),
)
