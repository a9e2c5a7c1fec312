"""PromQL of the dashboards: selectors of what the variables choose, and expressions that NaN cannot spoil.

Kafka exports NaN for averages over a window in which nothing passed. One NaN makes a sum NaN, so every aggregation
takes real values only.
"""

from monitoring.alerts.verification import latest_verification
from monitoring.dashboards.panels import VERDICTS, LabelValues

SOURCE = "kafka_connect_mirror_mirrorsourceconnector_"
CHECKPOINT = "kafka_connect_mirror_mirrorcheckpointconnector_"
CONNECT = "kafka_connect_"
VERIFICATION = "rt_inventory_verification_"
AUDIT = "rt_inventory_audit_"
OPS = "rt_inventory_"

MIRROR = 'stack=~"$stack", mirror=~"$mirror"'
CLUSTER = 'stack=~"$stack", cluster=~"$cluster"'
TOPIC = 'topic=~"$topic"'
GROUP = 'group=~"$group"'


def selector(metric: str, *matchers: str) -> str:
    """Return a selector."""
    return f"{metric}{{{', '.join(matchers)}}}"


def of_mirror(metric: str, *more: str) -> str:
    """Return a selector of a metric of the chosen mirrors."""
    return selector(metric, MIRROR, *more)


def of_run(metric: str, *more: str) -> str:
    """Return a metric of the latest verification of each of the chosen mirrors."""
    return _latest(of_mirror(f"{VERIFICATION}{metric}", *more))


def of_cluster(metric: str, *more: str) -> str:
    """Return a selector of a metric of the chosen cluster's brokers."""
    return selector(metric, CLUSTER, *more)


def largest(series: str, *by: str) -> str:
    """Return the largest real value of each of the labels."""
    return _aggregate("max", _real(series), by)


def smallest(series: str, *by: str) -> str:
    """Return the smallest real value of each of the labels."""
    return _aggregate("min", _real(series), by)


def mean(series: str, *by: str) -> str:
    """Return the mean of the real values of each of the labels."""
    return _aggregate("avg", _real(series), by)


def total(series: str, *by: str) -> str:
    """Return the sum of the real values of each of the labels."""
    return _aggregate("sum", _real(series), by)


def found_by_runs(series: str, label: str, *by: str) -> str:
    """Return the sum of what the verifications of mirrors found, by their label; a run counts once.

    A push gateway and `ops` may both export it.
    """
    return _aggregate("sum", largest(series, "stack", "mirror", label), by)


def rate(series: str, *by: str) -> str:
    """Return how much a count grows each second, of each of the labels; the restart of a process is no fall."""
    return _aggregate("sum", f"rate({series}[$__rate_interval])", by)


def growth(series: str, *by: str) -> str:
    """Return by how much a count grew around each point of a graph, of each of the labels."""
    return _aggregate("sum", f"increase({series}[$__rate_interval])", by)


def coded(metric: str, label: str, label_values: LabelValues, *by: str) -> str:
    """Return the number of the label's value, see panels.numbered; the metric is 1 for the value that is true.

    The gravest wins where several are true, as with the tasks of a connector.
    """
    return _aggregate("max", _numbered(metric, label, label_values), by)


def verdict(*by: str) -> str:
    """Return the number of the verdict of the newest verification, see panels.numbered."""
    return _aggregate("max", _latest(f"({_numbered(f'{VERIFICATION}verdict', 'verdict', VERDICTS)})"), by)


def holding(series: str, *by: str) -> str:
    """Return 1 for each of the labels' values that hold."""
    return f"{_aggregate('max', series, by)} == 1"


def seconds_since(timestamp: str, *by: str) -> str:
    """Return how long ago the latest of the times was, of each of the labels."""
    return f"time() - {largest(timestamp, *by)}"


def counted(wrong: str, known: str, *by: str) -> str:
    """Return how many series are wrong, and 0 only where the known ones are scraped: missing data is not health."""
    return f"{_aggregate('count', wrong, by)} or 0 * {_aggregate('count', known, by)}"


def lag_records(*by: str) -> str:
    """Return how many records are not copied yet, of each of the labels; without `ops`, what the workers report.

    Without labels it is that of the mirror that has most: `ops` may measure one mirror and not another.
    """
    if not by:
        return f"max({lag_records('stack', 'mirror')})"
    measured, recorded = of_mirror(f"{OPS}mirror_lag_records"), of_mirror("mirror:lag_records:sum")
    return f"{largest(measured, *by)} or {largest(recorded, *by)}"


def _latest(series: str) -> str:
    return f"({latest_verification(series, of_mirror(f'{VERIFICATION}finished_timestamp_seconds'))})"


def _numbered(metric: str, label: str, label_values: LabelValues) -> str:
    return " or ".join(
        f"({of_mirror(metric, f'{label}={chr(34)}{word}{chr(34)}')} == 1) * {number}"
        for number, word in enumerate(label_values, start=1)
    )


def _real(series: str) -> str:
    """NaN is greater than nothing; the maximum of an empty window is minus infinity."""
    return f"{series} > -Inf"


def _aggregate(operator: str, expression: str, by: tuple[str, ...]) -> str:
    return f"{operator} by ({', '.join(by)}) ({expression})" if by else f"{operator}({expression})"
