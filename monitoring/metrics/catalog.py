"""The catalogue: every metric that alerts and dashboards may use, and which of them an expression names."""

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

from monitoring.metrics.kafka import BROKERS, PROCESSES, WORKERS
from monitoring.metrics.model import Exporter, Kind, Metric, Part, together
from monitoring.metrics.programs import OPERATOR, OPS, PROMETHEUS, VERIFICATION
from settings.names import matches

METRICS = together(WORKERS, BROKERS, PROCESSES, OPERATOR, VERIFICATION, OPS, PROMETHEUS)
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

    Knows Grafana's variables and its `label_values`. A name that is matched by a regular expression is not found.
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
            raise ValueError(f"expression {promql!r}: must be whole (it breaks off at {position}). Close what is open.")
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


def held_back(part: Part, allowed: Iterable[str]) -> tuple[str, ...]:
    """Return a part's names in the catalogue that a list of somebody's own does not let through.

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
