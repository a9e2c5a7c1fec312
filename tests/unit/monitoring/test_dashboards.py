"""Dashboards: every panel says what it shows, fits the grid, and asks for what there is."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from grafana_foundation_sdk.models import units

from monitoring import dashboards
from monitoring.alerts.mirror import RECORDINGS
from monitoring.alerts.rendering import ALERT_GROUPS
from monitoring.dashboards import SPANS, Expression, expressions, expressions_of, panels_of, variables
from monitoring.metrics.catalog import BY_NAME

DOCUMENTS = dashboards.documents()
GRID, CONFIG_MAP_BYTES_MAX, APPLIED_BYTES_MAX = 24, 1_048_576, 262_144
KNOWN = set(BY_NAME) | {recording.name for recording in RECORDINGS}
# Anything else is deprecated, needs a plugin, or asks for no data.
UNITS = {value for name, value in vars(units).items() if not name.startswith("_") and isinstance(value, str)}
KINDS = {"stat", "timeseries", "state-timeline", "table"}
Panel = Mapping[str, Any]
EACH = pytest.mark.parametrize("uid", sorted(DOCUMENTS))


def overlaps(panels: list[Panel]) -> Iterator[tuple[str, str]]:
    for number, one in enumerate(panels):
        for other in panels[number + 1 :]:
            a, b = one["gridPos"], other["gridPos"]
            aside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
            if not aside and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]:
                yield one["title"], other["title"]


def test_there_is_one_for_every_question() -> None:
    assert set(DOCUMENTS) == {
        f"rt-inventory-{name}" for name in ("fleet", "mirror", "groups", "verification", "cluster")
    }
    assert {group.dashboard for group in ALERT_GROUPS} <= set(DOCUMENTS)


def test_a_file_is_named_as_its_dashboard() -> None:
    assert {path.stem for path in dashboards.FOLDER.iterdir()} == set(DOCUMENTS)


def described(panel: Panel) -> bool:
    return bool(panel["title"]) and len(panel["description"]) > len(panel["title"]) and panel["description"][-1] == "."


def judged(panel: Panel) -> bool:
    """Steps begin at the lowest value and rise; a number has some, a bar has words for its values."""
    defaults = panel["fieldConfig"]["defaults"]
    lowest, *others = (step["value"] for step in defaults["thresholds"]["steps"])
    rises = lowest is None and others == sorted(set(others))
    return rises and (panel["type"] != "state-timeline" or bool(defaults["mappings"]))


def distinguishable(panel: Panel) -> bool:
    """Series have names and references of their own."""
    found = {(target["refId"], target["legendFormat"]) for target in panel["targets"] if target["legendFormat"]}
    return all(len({each[part] for each in found}) == len(panel["targets"]) for part in (0, 1))


def of_its_time(panel: Panel) -> bool:
    """A number or a table is of this moment, all else of the chosen span."""
    now = panel["type"] in ("stat", "table")
    return all(target["instant"] is now and target["range"] is not now for target in panel["targets"])


def named(panel: Panel) -> bool:
    """A table shows columns that its queries have, and each has a look."""
    if panel["type"] != "table":
        return True
    organized = next(each["options"] for each in panel["transformations"] if each["id"] == "organize")
    values = {f"Value #{target['refId']}" for target in panel["targets"]} if len(panel["targets"]) > 1 else {"Value"}
    mapped = {each["matcher"]["options"] for each in panel["fieldConfig"]["overrides"]}
    shown = organized["renameByName"]
    return values <= {*shown, *organized["excludeByName"]} and mapped == set(shown.values())


def asked(panel: Panel) -> bool:
    return panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"} and bool(panel["targets"])


@EACH
@pytest.mark.parametrize(
    "good", [described, judged, distinguishable, of_its_time, named, asked], ids=lambda each: each.__name__
)
def test_every_panel_is(good: Callable[[Panel], bool], uid: str) -> None:
    assert not [panel["title"] for panel in panels_of(DOCUMENTS[uid]) if not good(panel)]


@EACH
def test_every_panel_is_of_a_kind_that_stays_and_has_a_unit(uid: str) -> None:
    for panel in panels_of(DOCUMENTS[uid]):
        assert panel["type"] in KINDS
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS


@EACH
def test_no_two_panels_overlap(uid: str) -> None:
    panels: list[Panel] = DOCUMENTS[uid]["panels"]
    assert not [*overlaps(panels)]
    for row in (panel for panel in panels if panel["type"] == "row"):
        assert not [*overlaps(row["panels"])]
        assert row["collapsed"] is bool(row["panels"])
    for panel in panels_of(DOCUMENTS[uid]):
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= GRID


@EACH
def test_every_line_of_the_grid_is_full(uid: str) -> None:
    folded = [row["panels"] for row in DOCUMENTS[uid]["panels"] if row["type"] == "row" and row["panels"]]
    for panels in (DOCUMENTS[uid]["panels"], *folded):
        wide: Counter[int] = Counter()
        for panel in panels:
            wide[panel["gridPos"]["y"]] += panel["gridPos"]["w"]
        assert set(wide.values()) == {GRID}


@EACH
def test_panels_have_numbers_and_titles_of_their_own(uid: str) -> None:
    rows = [panel for panel in DOCUMENTS[uid]["panels"] if panel["type"] == "row"]
    numbers = [panel["id"] for panel in (*rows, *panels_of(DOCUMENTS[uid]))]
    assert sorted(numbers) == [*range(1, len(numbers) + 1)]
    titles = Counter(panel["title"] for panel in panels_of(DOCUMENTS[uid]))
    assert set(titles.values()) == {1}


@EACH
def test_variables_are_defined_before_they_are_used(uid: str) -> None:
    defined: set[str] = set()
    for variable in DOCUMENTS[uid]["templating"]["list"]:
        if variable["type"] == "query":
            text = f"{variable['query']['query']} ${{{variable['datasource']['uid'].strip('${}')}}}"
            assert variables(text) <= defined, variable["name"]
        assert variable["name"] not in defined
        defined.add(variable["name"])
    used = {name for each in expressions_of(DOCUMENTS[uid]) for name in each.variables}
    repeated = {row["repeat"] for row in DOCUMENTS[uid]["panels"] if row.get("repeat")}
    titles = {name for row in DOCUMENTS[uid]["panels"] for name in variables(row["title"])}
    assert used | repeated | titles <= defined | set(SPANS)
    assert defined <= used | {"datasource", "runbook"}, "a choice that changes nothing"


@EACH
def test_a_repeated_row_stands_for_a_choice_of_several(uid: str) -> None:
    many = {variable["name"] for variable in DOCUMENTS[uid]["templating"]["list"] if variable.get("multi")}
    for row in DOCUMENTS[uid]["panels"]:
        if row.get("repeat"):
            assert row["repeat"] in many
            assert f"${row['repeat']}" in row["title"]


@EACH
def test_dashboards_lead_to_each_other_and_to_the_runbook(uid: str) -> None:
    document = DOCUMENTS[uid]
    assert "rt-inventory" in document["tags"]
    others, runbook = document["links"]
    assert (others["tags"], others["keepTime"]) == (["rt-inventory"], True)
    assert runbook["url"] == "${runbook:raw}"
    for panel in panels_of(document):
        for override in panel["fieldConfig"]["overrides"]:
            for link in (link for each in override["properties"] if each["id"] == "links" for link in each["value"]):
                assert link["url"].startswith("/d/")
                assert link["url"].removeprefix("/d/").partition("?")[0] in DOCUMENTS


@EACH
def test_all_stacks_or_mirrors_are_not_taken_along_to_where_one_is_chosen(uid: str) -> None:
    places = [each for each in DOCUMENTS[uid]["templating"]["list"] if each["name"] in ("stack", "mirror", "cluster")]
    others, _ = DOCUMENTS[uid]["links"]
    assert others["includeVars"] is not any(each.get("includeAll") for each in places)


@EACH
def test_a_mark_says_which_alert_it_is(uid: str) -> None:
    for marks in DOCUMENTS[uid]["annotations"]["list"]:
        assert marks["titleFormat"] == "{{alertname}}"
        assert {"{{severity}}", "{{mirror}}", "{{cluster}}"} <= set(marks["textFormat"].split())


@EACH
def test_it_is_looked_at_often_enough_and_not_too_often(uid: str) -> None:
    document = DOCUMENTS[uid]
    assert document["refresh"] in ("30s", "1m")
    assert document["time"]["to"] == "now"
    assert document["editable"] is True


def test_a_dashboard_fits_where_it_is_put() -> None:
    sizes = [len(text.encode()) for text in dashboards.texts().values()]
    assert sum(sizes) < CONFIG_MAP_BYTES_MAX
    # kubectl keeps what it applied in an annotation, which is not longer.
    assert max(sizes) < APPLIED_BYTES_MAX


@EACH
def test_expressions_ask_for_what_the_catalogue_has(uid: str) -> None:
    for expression in expressions_of(DOCUMENTS[uid]):
        assert expression.metrics, expression
        assert not expression.metrics - KNOWN, expression
        assert "$" not in expression.filled(), expression


def test_a_rate_is_over_as_long_as_the_scrapes_need() -> None:
    spans = {each.text.partition("[")[2].partition("]")[0] for each in expressions() if "[" in each.text}
    assert spans == {"$__rate_interval"}


def steps(document: Mapping[str, Any]) -> set[str]:
    return {target["interval"] for panel in panels_of(document) for target in panel["targets"]}


@pytest.mark.parametrize(("seconds", "step"), [(None, "30s"), (120, "120s")], ids=["as committed", "of a stack"])
def test_a_step_is_no_shorter_than_the_time_between_scrapes(seconds: int | None, step: str) -> None:
    for text in dashboards.texts(scrape_seconds=seconds).values():
        assert steps(json.loads(text)) == {step}


def test_variables_are_filled_in() -> None:
    written = 'sum(rate(a{stack=~"$stack", mirror=~"${mirror:regex}"}[$__rate_interval]))'
    one = Expression(dashboard="d", panel="p", text=written)
    assert one.filled({"stack": "stg"}) == 'sum(rate(a{stack=~"stg", mirror=~".+"}[1m]))'
    choice = Expression(dashboard="d", panel="p", text='label_values({__name__=~"a|b", stack=~"$stack"}, mirror)')
    assert choice.filled({"stack": "stg"}) == 'group by (mirror) ({__name__=~"a|b", stack=~"stg"})'
    assert choice.metrics == {"a", "b"}


def test_the_runbook_is_found_at_the_given_address() -> None:
    reported = dashboards.texts("https://runbooks.example.com/alerts")
    assert set(reported) == {f"{uid}.json" for uid in DOCUMENTS}
    assert all('"query": "https://runbooks.example.com/alerts"' in text for text in reported.values())
    assert dashboards.texts()[f"{next(iter(DOCUMENTS))}.json"] not in reported.values()
