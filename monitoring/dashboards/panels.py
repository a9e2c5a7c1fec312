"""Panels as this project draws them: a function a kind, each with a title, a description, a unit and thresholds.

Also the value mappings (the texts shown for 0, 1 and 2) and the thresholds (the colours of numbers and cells). A panel
is wide and high in the grid's cells (24 in a row). Numbers and tables query the present moment alone: what is gone is
not shown as if it were still there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from grafana_foundation_sdk.builders import common as shared
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common, dashboard, units
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from monitoring.alerts import Thresholds
from monitoring.alerts.audit import FAST, SLOW, burn_rate
from settings.monitoring import Monitoring


class Colour(StrEnum):
    """Colours as Grafana names them; each means the same everywhere."""

    GOOD = "green"
    WARNING = "orange"
    BAD = "red"
    PLANNED = "blue"
    UNKNOWN = "purple"
    NEUTRAL = "text"


ValueMappings = Mapping[int, tuple[str, Colour]]
LabelValues = Mapping[str, Colour]

# Values of a label, from the least to the most grave: see queries.coded.
CONNECTOR_STATES: LabelValues = {
    "running": Colour.GOOD,
    "paused": Colour.PLANNED,
    "stopped": Colour.PLANNED,
    "restarting": Colour.WARNING,
    "unassigned": Colour.WARNING,
    "destroyed": Colour.BAD,
    "failed": Colour.BAD,
}
MIRROR_STATES: LabelValues = {"running": Colour.GOOD, "paused": Colour.PLANNED, "stopped": Colour.PLANNED}
SIDES: LabelValues = {"source": Colour.GOOD, "target": Colour.WARNING}
VERDICTS: LabelValues = {
    "pass": Colour.GOOD,
    "stopped": Colour.UNKNOWN,
    "unknown": Colour.WARNING,
    "error": Colour.BAD,
    "fail": Colour.BAD,
}

UP: ValueMappings = {0: ("down", Colour.BAD), 1: ("up", Colour.GOOD)}
RUNNING: ValueMappings = {0: ("not running", Colour.BAD), 1: ("running", Colour.GOOD)}
REACHED: ValueMappings = {0: ("no answer", Colour.BAD), 1: ("answers", Colour.GOOD)}
STATUS_RUN: ValueMappings = {0: ("good", Colour.GOOD), 1: ("failed", Colour.BAD)}
READY: ValueMappings = {0: ("not ready", Colour.BAD), 1: ("ready", Colour.GOOD)}
CHECK: ValueMappings = {-1: ("unknown", Colour.WARNING), 0: ("fails", Colour.BAD), 1: ("holds", Colour.GOOD)}
NEVER: ValueMappings = {-1: ("never", Colour.GOOD)}
REBALANCING: ValueMappings = {0: ("steady", Colour.GOOD), 1: ("rebalancing", Colour.WARNING)}


def numbered(label_values: LabelValues) -> ValueMappings:
    """Return the words under the numbers that queries.coded gives them."""
    return {number: (word, colour) for number, (word, colour) in enumerate(label_values.items(), start=1)}


Steps = Sequence[tuple[float, Colour]]


def limits(warning: float, bad: float) -> Steps:
    """Return steps for what must stay small."""
    return ((0, Colour.GOOD), (warning, Colour.WARNING), (bad, Colour.BAD))


def at_least(warning: float, good: float) -> Steps:
    """Return steps for what must not be less."""
    return ((0, Colour.BAD), (warning, Colour.WARNING), (good, Colour.GOOD))


PLAIN: Steps = ((0, Colour.NEUTRAL),)
NONE_ALLOWED: Steps = ((0, Colour.GOOD), (1, Colour.BAD))
NONE_WISHED: Steps = ((0, Colour.GOOD), (1, Colour.WARNING))
ONE_EXACTLY: Steps = ((0, Colour.BAD), (1, Colour.GOOD), (2, Colour.BAD))

_SECOND_MS, _HOUR, _DAY = 1_000, 3_600, 86_400
# Where an alert compares with a number, a panel shows the same one; a stack may have its own, see its settings.
_ALERTS = Thresholds()
LAG_RECORDS = limits(_ALERTS.lag_rising_records, 10 * _ALERTS.lag_rising_records)
LAG_SECONDS = limits(_ALERTS.lag_seconds, _ALERTS.lag_critical_seconds)
LATENCY_MS = limits(_ALERTS.replication_latency_p99_ms, 5 * _ALERTS.replication_latency_p99_ms)
CHECKPOINT_AGE_SECONDS = limits(_ALERTS.checkpoint_age_seconds, 4 * _ALERTS.checkpoint_age_seconds)
CHECKPOINT_LATENCY_MS = limits(10 * _SECOND_MS, 60 * _SECOND_MS)
UNSYNCED_RECORDS = limits(_ALERTS.group_unsynced_records, 10 * _ALERTS.group_unsynced_records)
VERIFIED_SECONDS = limits(_HOUR * _ALERTS.verification_age_hours, 3 * _HOUR * _ALERTS.verification_age_hours)
MISSED = limits(burn_rate(SLOW), burn_rate(FAST))
STATUS_SECONDS = limits(_ALERTS.status_age_seconds, 4 * _ALERTS.status_age_seconds)
EXPIRY_SECONDS = at_least(_DAY * _ALERTS.certificate_critical_days, _DAY * _ALERTS.certificate_warning_days)
COMMIT_FAILURES = limits(_ALERTS.offset_commit_failure_ratio, 5 * _ALERTS.offset_commit_failure_ratio)
COMMIT_MS = limits(5 * _SECOND_MS, 30 * _SECOND_MS)
REBALANCE_MS = limits(30 * _SECOND_MS, 120 * _SECOND_MS)
IDLE = at_least(0.1, 0.3)
MEMORY = limits(0.8, 0.95)
GARBAGE = limits(0.1, 0.3)
SOME: Steps = ((0, Colour.BAD), (1, Colour.NEUTRAL))


DATASOURCE = dashboard.DataSourceRef(type_val="prometheus", uid="${datasource}")
REFERENCES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
WIDTH = 24
MIN_STEP = f"{Monitoring().scrape_seconds}s"

SECONDS, MILLISECONDS, BYTES = units.Seconds, units.Milliseconds, units.BytesIEC
RECORDS, NUMBER, NONE = units.Short, units.Short, units.NoUnit
RECORDS_PER_SECOND, BYTES_PER_SECOND = units.RecordsPerSecond, units.BytesPerSecondIEC
FRACTION = units.PercentUnit

Panel = Builder[dashboard.Panel]
Kind = TypeVar("Kind", stat.Panel, timeseries.Panel, statetimeline.Panel, table.Panel)


@dataclass(frozen=True)
class Series:
    """An expression and how its series are called; {{label}} stands for a label's value."""

    expression: str
    legend: str


@dataclass(frozen=True, kw_only=True)
class FieldConfig:
    """How values are shown. The first step's colour holds for everything below the second one."""

    unit: str
    steps: Steps = PLAIN
    mappings: ValueMappings | None = None
    decimals: int | None = None


@dataclass(frozen=True)
class Column:
    """A column of a table: the values of an expression, or of one of its labels instead."""

    title: str
    expression: str
    field: FieldConfig
    label: str = ""
    label_values: Mapping[str, Colour] | None = None


@dataclass(frozen=True)
class Key:
    """A label that names the rows of a table, with the page that it leads to."""

    label: str
    title: str
    page: str = ""


def number(title: str, about: str, series: Series, field: FieldConfig, *, wide: int = 4, high: int = 4) -> Panel:
    """Return a panel with the present value of each series."""
    panel = _framed(stat.Panel(), title, about, field, wide, high)
    return (
        panel.with_target(_query(series.expression, series.legend, 0).instant())
        .reduce_options(shared.ReduceDataOptions().calcs(["lastNotNull"]))
        .graph_mode(common.BigValueGraphMode.NONE)
        .color_mode(common.BigValueColorMode.VALUE)
        .no_value("no data")
    )


def graph(
    title: str,
    about: str,
    series: Sequence[Series],
    field: FieldConfig,
    *,
    wide: int = 12,
    high: int = 8,
    stacked: bool = False,
    right: Mapping[str, str] | None = None,
) -> Panel:
    """Return a panel with values over time; thresholds are dashed lines, `right` lists what has the right axis."""
    panel = _framed(timeseries.Panel(), title, about, field, wide, high)
    for place, one in enumerate(series):
        panel.with_target(_query(one.expression, one.legend, place).range())
    shown = shared.VizLegendOptions().show_legend(True).calcs(["lastNotNull", "max"])
    shown.display_mode(common.LegendDisplayMode.TABLE).placement(common.LegendPlacement.BOTTOM)
    tooltip = shared.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)
    panel.legend(shown).tooltip(tooltip).color_scheme(_palette()).line_width(1).fill_opacity(10)
    panel.show_points(common.VisibilityMode.AUTO).span_nulls(False)
    if stacked:
        panel.stacking(shared.StackingConfig().mode(common.StackingMode.NORMAL)).fill_opacity(40)
    for legend, unit in (right or {}).items():
        at_right = dashboard.DynamicConfigValue(id_val="custom.axisPlacement", value=common.AxisPlacement.RIGHT)
        panel.override_by_name(legend, [at_right, dashboard.DynamicConfigValue(id_val="unit", value=unit)])
    if len(field.steps) > 1:
        panel.thresholds_style(shared.GraphThresholdsStyleConfig().mode(common.GraphTresholdsStyleMode.DASHED))
    return panel


def states(title: str, about: str, series: Series, mappings: ValueMappings, *, wide: int = 12, high: int = 8) -> Panel:
    """Return a panel with a bar for each series, whose state changes over time."""
    panel = _framed(statetimeline.Panel(), title, about, FieldConfig(unit=NONE, mappings=mappings), wide, high)
    return (
        panel.with_target(_query(series.expression, series.legend, 0).range())
        .color_scheme(build.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS))
        .show_value(common.VisibilityMode.AUTO)
        .merge_values(True)
        .line_width(0)
        .fill_opacity(70)
        .legend(shared.VizLegendOptions().show_legend(False))
        .no_value("no data")
    )


def listing(
    title: str, about: str, keys: Sequence[Key], columns: Sequence[Column], *, wide: int = WIDTH, high: int = 9
) -> Panel:
    """Return a table with a row for each combination of the keys, whichever column has it."""
    panel = _framed(table.Panel(), title, about, FieldConfig(unit=NONE), wide, high)
    hidden: dict[str, bool] = {"Time": True}
    names = {key.label: key.title for key in keys}
    for place, column in enumerate(columns):
        query = _query(column.expression, column.title, place).instant().format(PromQueryFormat.TABLE)
        panel.with_target(query)
        # One query alone has its values in `Value`, several in `Value #A`.
        value = f"Value #{REFERENCES[place]}" if len(columns) > 1 else "Value"
        if column.label:
            hidden[value] = True
        names[column.label or value] = column.title
        panel.override_by_name(column.title, _column_look(column))
    for key in keys:
        panel.override_by_name(key.title, _key_look(key))
    order = {name: place for place, name in enumerate(names)}
    panel.with_transformation(dashboard.DataTransformerConfig(id_val="merge", options={}))
    organized = {"excludeByName": hidden, "indexByName": order, "renameByName": names}
    panel.with_transformation(dashboard.DataTransformerConfig(id_val="organize", options=organized))
    return panel.show_header(True).cell_height(common.TableCellHeight.SM).no_value("no data")


def _framed(panel: Kind, title: str, about: str, field: FieldConfig, wide: int, high: int) -> Kind:
    """What every panel has."""
    panel.title(title).description(about).datasource(DATASOURCE).span(wide).height(high).unit(field.unit)
    panel.thresholds(build.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(_steps(field.steps)))
    if field.mappings is not None:
        panel.mappings([_mapping(field.mappings)])
    if field.decimals is not None:
        panel.decimals(field.decimals)
    return panel


def _query(expression: str, legend: str, place: int) -> prometheus.Dataquery:
    """The SDK's own reference would be missing, and tables name their values by it.

    `$__rate_interval` is four times the least step; without one it follows the data source, which may be set to 15 s.
    """
    query = prometheus.Dataquery().expr(expression).legend_format(legend).interval(MIN_STEP)
    return query.ref_id(REFERENCES[place])


def _steps(steps: Steps) -> list[dashboard.Threshold]:
    (_, lowest), *higher = steps
    first = dashboard.Threshold(value=None, color=lowest)
    return [first, *(dashboard.Threshold(value=value, color=colour) for value, colour in higher)]


def _mapping(mappings: ValueMappings) -> dashboard.ValueMap:
    shown = {
        str(value): dashboard.ValueMappingResult(text=text, color=colour, index=place)
        for place, (value, (text, colour)) in enumerate(mappings.items())
    }
    return dashboard.ValueMap(options=shown)


def _palette() -> build.FieldColor:
    """A series keeps its colour for as long as it has its name."""
    return build.FieldColor().mode(dashboard.FieldColorModeId.PALETTE_CLASSIC_BY_NAME)


def _column_look(column: Column) -> list[dashboard.DynamicConfigValue]:
    field = column.field
    thresholds = dashboard.ThresholdsConfig(mode=dashboard.ThresholdsMode.ABSOLUTE, steps=_steps(field.steps))
    found = [
        dashboard.DynamicConfigValue(id_val="unit", value=field.unit),
        dashboard.DynamicConfigValue(id_val="thresholds", value=thresholds),
    ]
    if field.decimals is not None:
        found.append(dashboard.DynamicConfigValue(id_val="decimals", value=field.decimals))
    if field.mappings is not None:
        found.append(dashboard.DynamicConfigValue(id_val="mappings", value=[_mapping(field.mappings)]))
    if column.label_values is not None:
        shown = {
            word: dashboard.ValueMappingResult(text=word, color=colour) for word, colour in column.label_values.items()
        }
        found.append(dashboard.DynamicConfigValue(id_val="mappings", value=[dashboard.ValueMap(options=shown)]))
    if len(field.steps) > 1 or field.mappings is not None or column.label_values is not None:
        found.append(dashboard.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}))
    return found


def _key_look(key: Key) -> list[dashboard.DynamicConfigValue]:
    if not key.page:
        return [dashboard.DynamicConfigValue(id_val="custom.filterable", value=True)]
    link = {"title": f"Open {key.title.lower()} ${{__value.text}}", "url": key.page}
    return [dashboard.DynamicConfigValue(id_val="links", value=[link])]
