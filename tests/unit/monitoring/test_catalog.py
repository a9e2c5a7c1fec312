"""The catalogue of metrics, and what it finds in expressions."""

import re

import pytest

from contract import verification_metrics as verification
from monitoring.metrics import together
from monitoring.metrics.catalog import (
    BY_NAME,
    METRICS,
    Exporter,
    Kind,
    Part,
    allow_list,
    blocked_metrics,
    names_in,
    of_part,
)
from tests.support import report_documents as reports


def test_names_are_those_of_prometheus() -> None:
    for metric in METRICS:
        assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", metric.name)
        assert all(re.fullmatch(r"[a-z_][a-z0-9_]*", label) for label in metric.all_labels), metric.name
        assert len(set(metric.all_labels)) == len(metric.all_labels)


def test_what_is_reported_of_a_metric_is_a_sentence() -> None:
    for metric in METRICS:
        assert re.fullmatch(r"[A-Z0-9].*\.", metric.help), metric.name
        assert metric.origin
        assert metric.exporters


def test_counters_end_as_prometheus_wants_it() -> None:
    for metric in METRICS:
        assert (metric.kind is Kind.COUNTER) == metric.name.endswith(("_total", "_seconds_sum")), metric.name


def test_a_name_stands_there_once() -> None:
    with pytest.raises(ValueError, match="metric up: must be in the catalogue once"):
        together([BY_NAME["up"]], [BY_NAME["up"]])


def test_what_the_verification_writes_is_in_it() -> None:
    written = {family.name for family in verification.registry(reports.faulty()).collect()}
    assert written == {metric.name for metric in of_part(Part.VERIFICATION)}


@pytest.mark.parametrize("part", [Part.WORKER, Part.BROKER])
def test_the_reporter_lets_just_the_catalogue_through(part: Part) -> None:
    wanted = {each.name.removesuffix("_total") for each in of_part(part) if each.group}
    everything = {each.name.removesuffix("_total") for each in METRICS}
    expressions = allow_list(part)
    assert {name for name in everything if any(re.fullmatch(each, name) for each in expressions)} == wanted
    assert all(Exporter.REPORTER in BY_NAME[name if name in BY_NAME else f"{name}_total"].exporters for name in wanted)


@pytest.mark.parametrize("part", [Part.WORKER, Part.BROKER])
def test_a_list_of_somebodys_own_is_held_against_the_catalogue(part: Part) -> None:
    whole = allow_list(part)
    assert blocked_metrics(part, whole) == ()
    assert blocked_metrics(part, [".*"]) == ()
    without = blocked_metrics(part, whole[1:])
    assert without
    assert all(re.fullmatch(whole[0], name) for name in without)


@pytest.mark.parametrize(
    ("promql", "names"),
    [
        ("up", {"up"}),
        ('up{job="kafka", stack=~"a|b{2}"} == 0', {"up"}),
        ('sum by (mirror, group) (rate(copied_total{a="}x"}[5m]))', {"copied_total"}),
        ("sum(rate(copied_total[$__rate_interval])) without (pod)", {"copied_total"}),
        ("a / on (mirror) group_left (topic) b", {"a", "b"}),
        ("a > bool 1e3 and ignoring(x) b unless c or vector(0)", {"a", "b", "c"}),
        ("max_over_time(a[5m] offset 1h30m) @ 1700000000", {"a"}),
        ("time() - a > 15m", {"a"}),
        ("histogram_quantile(0.99, sum by (le) (rate(a_bucket[5m])))", {"a_bucket"}),
        ('{__name__="a", stack="b"}', {"a"}),
        ('{__name__=~"a.*"}', set()),
        ("mirror:lag_records:sum + NaN + Inf", {"mirror:lag_records:sum"}),
        ('label_values(a{stack="x,y"}, mirror)', {"a"}),
        ("label_values(mirror)", set()),
        ("a # b is no name\n+ c", {"a", "c"}),
        ("sum(a) by (mirror) / count(b)", {"a", "b"}),
        ('a{x="\\"}"} * -0x1F + .5', {"a"}),
        ("absent(a{b='c'}) or `d`", {"a"}),
        ("topk(3, a) + quantile(0.9, b) + count_values('x', c)", {"a", "b", "c"}),
        ("a[5m:1m]", {"a"}),
        ("quantile_over_time(0.9, (a > $threshold)[${range}:])", {"a"}),
    ],
)
def test_the_names_in_an_expression_are_found(promql: str, names: set[str]) -> None:
    assert names_in(promql) == names


@pytest.mark.parametrize("promql", ['a{b="c"', "a[5m", 'a{b="c', '"a', "a}"])
def test_what_is_not_closed_is_reported(promql: str) -> None:
    with pytest.raises(ValueError, match=r"Close what is open|Add it"):
        names_in(promql)
