"""Certificates: their end in seconds since the moment 0 in which a case begins, from the operator in milliseconds."""

from tests.support.alert_cases.case import CLUSTER, MIRROR, STACK, Case, Fired, of_broker, of_certificate, of_operator

_DAY_S = 86400
_BROKERS = of_certificate("source-brokers")
_AUTHORITY = of_operator("strimzi_certificate_expiration_timestamp_ms", cluster=CLUSTER, type="cluster-ca")
_TELLS = {"stack": STACK, "mirror": MIRROR, "certificate": "source-brokers"}


def _of_authority(severity: str) -> Fired:
    return Fired(
        labels={"stack": STACK, "cluster": CLUSTER, "certificate": "cluster-ca"},
        severity=severity,
        summary=f"Certificate cluster-ca of cluster {CLUSTER} expires in 4.9 days",
    )


CERTIFICATE_CASES = (
    Case(
        alert="CertificateExpiresSoon",
        name="nobody renewed it",
        series={_BROKERS: f"{20 * _DAY_S}x130"},
        at="2h",
        fires=(
            Fired(
                labels=_TELLS,
                severity="warning",
                summary="Certificate source-brokers of mirror mm2 expires in 19.9 days",
            ),
        ),
    ),
    Case(
        alert="CertificateExpiresSoon",
        name="an authority, as the operator reports it",
        series={_AUTHORITY: f"{5 * _DAY_S * 1000}x130"},
        at="2h",
        fires=(_of_authority("warning"), _of_authority("critical")),
    ),
    Case(
        alert="CertificateExpiresSoon",
        name="plain rules learn the stack from the pods",
        series={_AUTHORITY: f"{5 * _DAY_S * 1000}x130", of_broker("up"): "1x130"},
        at="2h",
        rules="plain",
        fires=(_of_authority("warning"), _of_authority("critical")),
    ),
    Case(
        alert="CertificateExpiresSoon",
        name="a month is left, and another cluster's is near its end",
        series={
            _BROKERS: f"{30 * _DAY_S}x130",
            _AUTHORITY.replace(f'cluster="{CLUSTER}"', 'cluster="other"'): f"{5 * _DAY_S * 1000}x130",
        },
        at="2h",
    ),
    Case(
        alert="CertificateExpiresSoon",
        name="renewed within the hour",
        series={_BROKERS: f"{20 * _DAY_S}x50 {365 * _DAY_S}x90"},
        at="50m",
    ),
)
