"""The catalogue: every metric that alerts and dashboards may use, and which of them an expression names.

Metrics of the operator, of the project's own programs and of Prometheus itself are listed here; those of brokers and
workers in the package itself.
"""

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

from monitoring.metrics import BROKERS, PROCESSES, WORKERS, Exporter, Kind, Metric, Part, together
from settings.names import matches

Definitions = dict[str, tuple[str, str, tuple[str, ...]]]


def _metrics(
    prefix: str,
    definitions: Definitions,
    part: Part,
    exporter: Exporter,
    kind: Kind = Kind.GAUGE,
    *,
    always: bool = True,
) -> list[Metric]:
    """Metrics of one program: unit, help and labels by the name without its prefix."""
    return [
        Metric(
            name=f"{prefix}{name}",
            kind=kind,
            unit=unit,
            help=text,
            labels=labels,
            part=part,
            origin=exporter.value,
            exporters=(exporter,),
            always=always,
        )
        for name, (unit, text, labels) in definitions.items()
    ]


_RECONCILED = ("kind", "resource_namespace")
OPERATOR = together(
    _metrics(
        "strimzi_",
        {
            "resource_state": (
                "",
                "1 while a resource is ready, 0 while it is not, with the reason.",
                ("kind", "name", "resource_namespace", "reason"),
            ),
            "resources": ("resources", "Resources of a kind that the operator watches.", _RECONCILED),
            "certificate_expiration_timestamp_ms": (
                "ms",
                "When an authority of a cluster expires, in milliseconds since 1970.",
                ("cluster", "type", "resource_namespace"),
            ),
        },
        Part.OPERATOR,
        Exporter.OPERATOR,
    ),
    _metrics(
        "strimzi_reconciliations_",
        {
            "successful_total": ("reconciliations", "Reconciliations that succeeded.", _RECONCILED),
            "failed_total": ("reconciliations", "Reconciliations that failed.", _RECONCILED),
        },
        Part.OPERATOR,
        Exporter.OPERATOR,
        Kind.COUNTER,
    ),
)
VERIFICATION = together(
    _metrics(
        "rt_inventory_verification_",
        {
            "verdict": ("", "1 for the verdict of the last run, 0 for the others.", ("verdict",)),
            "finished_timestamp_seconds": ("seconds", "When the last run ended, since 1970.", ()),
            "duration_seconds": ("seconds", "How long the last run took.", ()),
            "exit_code": ("", "Exit code of the last run.", ()),
            "check": ("", "1 where a check holds, 0 where it fails, -1 where it could not be judged.", ("check",)),
            "finding_records": ("records", "Records that were found, by kind of finding.", ("kind",)),
        },
        Part.VERIFICATION,
        Exporter.VERIFICATION,
    ),
    _metrics(
        "rt_inventory_verification_",
        {
            "records_compared": ("records", "Records of the source that have their image at the target.", ()),
            "group_skipped_records": ("records", "Records that a group would skip at its synced offsets.", ("group",)),
            "group_repeated_records": ("records", "Records that a group would read again there.", ("group",)),
            "lag_records": ("records", "Records that the mirror was behind when the run ended.", ()),
            "lag_seconds": ("seconds", "Age of the oldest record that was not copied when the run ended.", ()),
        },
        Part.VERIFICATION,
        Exporter.VERIFICATION,
        always=False,
    ),
)
AUDIT = together(
    _metrics(
        "rt_inventory_audit_",
        {
            "buckets": ("buckets", "Buckets of the last seven days, by topic and state.", ("topic", "state")),
            "missing_records": ("records", "Records of the source that buckets miss at the target.", ("topic",)),
            "extra_records": ("records", "Records that buckets hold beyond those of the source.", ("topic",)),
            "latency_seconds": ("seconds", "Replication latency of complete and late buckets.", ("quantile",)),
            "missed_ratio": ("ratio", "Share of records in buckets that were not complete in time.", ("window",)),
            "read_through_timestamp_seconds": ("seconds", "Up to when a side was read, since 1970.", ("side",)),
            "interval_seconds": ("seconds", "From the start of one reading to the next.", ()),
            "problems": ("sides", "Sides that could not be read the last time.", ()),
        },
        Part.AUDIT,
        Exporter.AUDIT,
        always=False,
    )
)
OPS = together(
    _metrics(
        "rt_inventory_",
        {
            "mirror_up": ("", "1 if resource, connectors and tasks of a mirror that should run do so, else 0.", ()),
            "mirror_state": ("", "1 for the state that is declared of the mirror, 0 for the others.", ("state",)),
            "mirror_unproven": (
                "",
                "1 if the last verification found no record and the source has some now, else 0.",
                (),
            ),
            "mirror_lag_records": ("records", "Records of the source that are not copied yet.", ()),
            "mirror_lag_seconds": ("seconds", "Age of the oldest record that is not copied yet.", ()),
            "topic_until_deletion_seconds": (
                "seconds",
                "How long retention spares the first record that is not copied, in the topic's worst partition.",
                ("topic",),
            ),
            "topic_until_deletion_bytes": (
                "bytes",
                "Bytes that may be written there until retention by size deletes that record, about.",
                ("topic",),
            ),
            "topic_lag_seconds": ("seconds", "Age of the first record there that is not copied yet.", ("topic",)),
            "topic_catch_up_seconds": (
                "seconds",
                "How long the mirror needs there as fast as it copies now; no series while it copies nothing.",
                ("topic",),
            ),
            "cluster_reachable": ("", "1 if a side answers the user of the mirror, else 0.", ("side",)),
            "mirror_active": ("", "1 for the side that applications use, 0 for the other.", ("side",)),
            "connector_running": ("", "1 while a connector runs, else 0.", ("connector",)),
            "task_running": ("", "1 while a task runs, else 0.", ("connector", "task")),
            "group_unsynced_records": (
                "records",
                "Records that a group would read again if the mirror failed over now.",
                ("group",),
            ),
            "group_checkpoint_age_seconds": (
                "seconds",
                "For how long, at most, what a group has read is not in its position at the target.",
                ("group",),
            ),
            "certificate_expiry_timestamp_seconds": (
                "seconds",
                "When a certificate expires, since 1970.",
                ("certificate",),
            ),
            "failover_cost_records": ("records", "Records that all groups would read again at a failover now.", ()),
            "status_timestamp_seconds": ("seconds", "When the mirror was last inspected, since 1970.", ()),
        },
        Part.OPS,
        Exporter.OPS,
        always=False,
    ),
    _metrics(
        "rt_inventory_",
        {
            "mirror_fenced": ("", "1 if no application may write the mirrored topics at the source, 0 if one may.", ()),
            "mirror_target_fenced": (
                "",
                "1 if no application may write the mirrored topics at the active target, 0 if one may.",
                (),
            ),
            "mirror_failed_over_topics": ("topics", "Topics that failed over by themselves and are not copied.", ()),
            "mirror_problems": ("problems", "Problems of the mirror that `ops status` counts.", ()),
            "groups": ("groups", "Groups of the source that the mirror carries.", ()),
            "group_unread_records": ("records", "Records at the source that a group has not read.", ("group",)),
            "group_skipped_records": (
                "records",
                "Records that a group would never read if the mirror failed over now.",
                ("group",),
            ),
            "group_partitions_without_position": (
                "partitions",
                "Partitions in which a group has a position at the source and none at the target.",
                ("group",),
            ),
            "status_duration_seconds": ("seconds", "How long the last snapshot that succeeded took.", ()),
            "status_error": ("", "1 if the last snapshot failed, so that there are no other values now, else 0.", ()),
        },
        Part.OPS,
        Exporter.OPS,
        always=False,
    ),
)
PROMETHEUS = together(
    _metrics(
        "",
        {
            "up": ("", "1 if the target could be scraped, else 0.", ("instance",)),
            "scrape_duration_seconds": ("seconds", "How long the last scrape took.", ("instance",)),
            "ALERTS": ("", "1 for an alert that is pending or firing.", ("alertname", "alertstate", "severity")),
        },
        Part.PROMETHEUS,
        Exporter.PROMETHEUS,
    )
)


METRICS = together(WORKERS, BROKERS, PROCESSES, OPERATOR, VERIFICATION, AUDIT, OPS, PROMETHEUS)
BY_NAME = {metric.name: metric for metric in METRICS}

__all__ = ["BY_NAME", "METRICS", "Exporter", "Kind", "Metric", "Part", "names_in", "of_part"]

_TOKEN = re.compile(
    r"""
      (?P<skip> \s+ | \#[^\n]*
        | \[ [^\]]* \]                                                   # a range, with whatever variable is in it
        | \$ (?: \{ [^}]* \} | \w+ )                                     # a variable of Grafana
        | (?: \d+ (?: ms|[smhdwy] ) )+ \b                                # a duration
        | 0[xX][\da-fA-F]+ | (?: \d+\.?\d* | \.\d+ ) (?: [eE][+-]?\d+ )? # a number
        | "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | `[^`]*` )
    | (?P<word> [a-zA-Z_:][\w:]* )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_LISTS_LABELS = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_KEYWORDS = _LISTS_LABELS | {"and", "or", "unless", "bool", "offset", "atan2", "inf", "nan"}
_AGGREGATES = frozenset(
    {
        *("sum", "min", "max", "avg", "group", "count", "stddev", "stdvar", "topk", "bottomk", "quantile"),
        *("count_values", "limitk", "limit_ratio"),
    }
)
_NAME_MATCHER = re.compile(r"""__name__\s*=\s*(["'`])(?P<name>[a-zA-Z_:][\w:]*)\1""")
_STRING_OR_END = re.compile(r"""[^"'`}]*(?:("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)[^"'`}]*)*\}""")
_LABEL_VALUES = re.compile(r"\s*label_values\(\s*(?:(?P<series>.*),)?\s*\w+\s*\)\s*", re.DOTALL)


def of_part(*parts: Part) -> tuple[Metric, ...]:
    """Return the metrics of some parts."""
    return tuple(metric for metric in METRICS if metric.part in parts)


def names_in(promql: str) -> set[str]:
    """Return the metrics that an expression reads, recording rules too; raises ValueError for broken text.

    Grafana's variables and its `label_values` are understood. A name that a regular expression matches is not found.
    """
    if asked := _LABEL_VALUES.fullmatch(promql):
        return names_in(asked["series"] or "")
    names, position, lists_labels = set[str](), 0, False
    while position < len(promql):
        if promql[position] == "{":
            position, name = _matchers(promql, position)
            names |= name
            continue
        token = _TOKEN.match(promql, position)
        if token is None or token.group() in ('"', "'", "`", "[", "}"):
            raise ValueError(
                f"expression {promql!r}: must be complete (it breaks off at {position}). Close what is open."
            )
        position = token.end()
        word = token["word"]
        if lists_labels and token.group() == "(":
            position = promql.find(")", position) + 1 or len(promql)
        if token["skip"] is None or word is not None:
            lists_labels = word is not None and word.lower() in _LISTS_LABELS
        if word is not None and not _is_function(word, promql, position):
            names.add(word)
    return names


def _is_function(word: str, promql: str, end: int) -> bool:
    """Whether a word is a keyword, an aggregate or a function, that is, no metric."""
    follows = promql[end:].lstrip()
    return follows.startswith("(") or word.lower() in _KEYWORDS or word.lower() in _AGGREGATES


def _matchers(promql: str, start: int) -> tuple[int, set[str]]:
    """Return where matchers in braces end, and the name that is among them."""
    found = _STRING_OR_END.match(promql, start + 1)
    if found is None:
        raise ValueError(f"expression {promql!r}: must close the brace at {start}. Add it.")
    name = _NAME_MATCHER.search(found.group())
    return found.end(), {name["name"]} if name else set()


_JMX_FOLDER = Path(__file__).parents[1] / "jmx"
JMX_WORKERS, JMX_BROKERS = "mirror-maker-2.yaml", "kafka.yaml"
_LAG = "kafka_consumer_consumer_fetch_manager_metrics_records_lag(?:_max)?"
_CLUSTERS = rf"{_LAG};(.+?)->([^|]+)\|.*"
_OWN_LAG = "__tmp_own_lag"
# Rules of `metric_relabel_configs`; they change nothing of what the JMX exporter's rules name.
RELABELLINGS: tuple[dict[str, Any], ...] = (
    # Texts are written as `<name>_info`.
    {"source_labels": ["__name__"], "regex": "(.+_status)_info", "target_label": "__name__", "replacement": "$1"},
    # Lag is that of MirrorMaker's own consumers, not of Connect's, and a topic with dots is exported twice.
    {
        "source_labels": ["__name__", "client_id", "topic"],
        "regex": rf"{_LAG};.+\|replication-consumer;[^.]+",
        "target_label": _OWN_LAG,
        "replacement": "yes",
    },
    {"source_labels": ["__name__", _OWN_LAG], "regex": f"{_LAG};", "action": "drop"},
    {"action": "labeldrop", "regex": _OWN_LAG},
    {"source_labels": ["__name__", "client_id"], "regex": _CLUSTERS, "target_label": "source", "replacement": "$1"},
    {"source_labels": ["__name__", "client_id"], "regex": _CLUSTERS, "target_label": "target", "replacement": "$2"},
)


def consumer_config() -> dict[str, str | bool]:
    """Return the configuration by which MirrorMaker's own consumers report their lag; the operator leaves them out.

    Their metrics appear where the worker serves its own. The class is that of Strimzi 1.0 and later.
    """
    return {
        "metric.reporters": "io.strimzi.kafka.metrics.prometheus.ClientMetricsReporter",
        "prometheus.metrics.reporter.listener.enable": False,
        "prometheus.metrics.reporter.allowlist": _LAG,
    }


def allow_list(part: Part) -> tuple[str, ...]:
    """Return expressions that fit just a part's names in the catalogue, one for each kind of MBean.

    The reporter compares them with names before their type adds a suffix.
    """
    metrics = sorted((each for each in of_part(part) if each.group), key=lambda each: each.name)
    found = []
    for group, members in groupby(metrics, key=lambda each: each.group):
        names = [each.name.removeprefix(f"{group}_").removesuffix("_total") for each in members]
        found.append(f"{group}_({'|'.join(names)})" if len(names) > 1 else f"{group}_{names[0]}")
    return tuple(found)


def blocked_metrics(part: Part, allowed: Iterable[str]) -> tuple[str, ...]:
    """Return a part's names in the catalogue that an allowList of the settings does not allow.

    The lag is not among them: MirrorMaker's consumers report it by a list of theirs.
    """
    expressions = tuple(allowed)
    names = (each.name.removesuffix("_total") for each in of_part(part) if each.group)
    return tuple(
        name for name in names if not re.fullmatch(_LAG, name) and not any(matches(each, name) for each in expressions)
    )


def jmx_rules(file: str) -> str:
    """Return the text of one of the two rule files of the JMX exporter."""
    return (_JMX_FOLDER / file).read_text(encoding="utf-8")
