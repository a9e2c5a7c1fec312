"""Dashboards: every panel says what it shows, fits the grid, and asks for what there is."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from monitoring import dashboards
from monitoring.alerts import ALERT_GROUPS
from monitoring.alerts.recordings import RECORDINGS
from monitoring.catalog import BY_NAME
from monitoring.dashboards.expressions import SPANS, Expression, expressions, expressions_of, panels_of, variables

DOCUMENTS = dashboards.documents()
GRID, CONFIG_MAP_BYTES_MAX, APPLIED_BYTES_MAX = 24, 1_048_576, 262_144
KNOWN = set(BY_NAME) | {recording.name for recording in RECORDINGS}
# Anything else is deprecated, needs a plugin, or asks for no data.
KINDS = {"stat", "timeseries", "state-timeline", "table"}
JUDGED_KINDS = {"stat", "gauge", "bargauge"}
Panel = Mapping[str, Any]
PANELS = [
    pytest.param(panel, id=f"{uid}-{panel['id']}")
    for uid, document in DOCUMENTS.items()
    for panel in panels_of(document)
]
EVERY = pytest.mark.parametrize("panel", PANELS)
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


@EVERY
def test_a_panel_says_what_it_shows(panel: Panel) -> None:
    assert panel["title"]
    assert len(panel["description"]) > 10
    assert panel["description"].endswith((".", "?"))
    assert panel["description"] != panel["title"]
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"]
    assert panel["type"] in KINDS
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert panel["targets"]


@EVERY
def test_a_panel_judges_what_it_shows(panel: Panel) -> None:
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert steps[0]["value"] is None
    values = [step["value"] for step in steps[1:]]
    assert values == sorted(set(values))
    if panel["type"] in JUDGED_KINDS:
        assert len(steps) >= 1
    if panel["type"] == "state-timeline":
        assert panel["fieldConfig"]["defaults"]["mappings"]


@EVERY
def test_series_have_names_and_references_of_their_own(panel: Panel) -> None:
    references = [target["refId"] for target in panel["targets"]]
    assert len(references) == len(set(references))
    assert all(target["legendFormat"] for target in panel["targets"])
    legends = [target["legendFormat"] for target in panel["targets"]]
    assert len(legends) == len(set(legends))


@EVERY
def test_a_number_or_a_table_is_of_this_moment(panel: Panel) -> None:
    wanted = panel["type"] in ("stat", "table")
    assert all(target["instant"] is wanted and target["range"] is not wanted for target in panel["targets"])


@EVERY
def test_a_table_names_columns_that_its_queries_have(panel: Panel) -> None:
    if panel["type"] != "table":
        return
    organized = next(each["options"] for each in panel["transformations"] if each["id"] == "organize")
    shown = set(organized["renameByName"].values())
    assert {each["matcher"]["options"] for each in panel["fieldConfig"]["overrides"]} == shown
    values = {f"Value #{target['refId']}" for target in panel["targets"]} if len(panel["targets"]) > 1 else {"Value"}
    assert values <= set(organized["renameByName"]) | set(organized["excludeByName"])


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
    assert (others["tags"], others["includeVars"], others["keepTime"]) == (["rt-inventory"], True, True)
    assert runbook["url"] == "${runbook:raw}"
    for panel in panels_of(document):
        for override in panel["fieldConfig"]["overrides"]:
            for link in (link for each in override["properties"] if each["id"] == "links" for link in each["value"]):
                assert link["url"].startswith("/d/")
                assert link["url"].removeprefix("/d/").partition("?")[0] in DOCUMENTS


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


@pytest.mark.parametrize("expression", expressions(), ids=lambda each: f"{each.dashboard}-{each.panel}")
def test_expressions_ask_for_what_the_catalogue_has(expression: Expression) -> None:
    assert expression.metrics
    assert expression.metrics <= KNOWN
    assert "$" not in expression.filled().replace("label_values($", "")


def test_a_rate_is_over_as_long_as_the_scrapes_need() -> None:
    spans = {each.text.partition("[")[2].partition("]")[0] for each in expressions() if "[" in each.text}
    assert spans == {"$__rate_interval"}


def test_variables_are_filled_in() -> None:
    written = 'sum(rate(a{stack=~"$stack", mirror=~"${mirror:regex}"}[$__rate_interval]))'
    one = Expression(dashboard="d", panel="p", text=written)
    assert one.filled({"stack": "stg"}) == 'sum(rate(a{stack=~"stg", mirror=~".+"}[1m]))'
    choice = Expression(dashboard="d", panel="p", text='label_values({__name__=~"a|b", stack=~"$stack"}, mirror)')
    assert choice.filled({"stack": "stg"}) == 'group by (mirror) ({__name__=~"a|b", stack=~"stg"})'
    assert choice.metrics == {"a", "b"}


def test_the_runbook_is_found_at_the_given_address() -> None:
    told = dashboards.texts("https://runbooks.example.com/alerts")
    assert set(told) == {f"{uid}.json" for uid in DOCUMENTS}
    assert all('"query": "https://runbooks.example.com/alerts"' in text for text in told.values())
    assert dashboards.texts()[f"{next(iter(DOCUMENTS))}.json"] not in told.values()
