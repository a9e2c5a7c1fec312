"""The tables of docs/monitoring.md name every metric, alert and panel."""

import re

import pytest

from monitoring import __main__ as generated
from monitoring.alerts.mirror import RECORDINGS
from monitoring.alerts.rendering import ALERTS
from monitoring.dashboards import documents, panels_of
from monitoring.metrics.catalog import METRICS

PAGE = generated.PAGE.read_text(encoding="utf-8")
LINK = re.compile(r"\]\(([^)]+)\)")


def lines(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines() if line[:1] == "|"]


def test_the_page_has_the_present_tables() -> None:
    assert generated.with_tables(PAGE, documents()) == PAGE, "run `python -m monitoring write`"


def test_every_metric_is_there_with_who_uses_it() -> None:
    rows = {cells[0]: cells for cells in lines(generated.metrics_table(documents()))}
    assert {f"`{metric.name}`" for metric in METRICS} <= set(rows)
    lag = rows["`rt_inventory_mirror_lag_seconds`"]
    assert lag[1:4] == ["gauge", "seconds", "-"]
    assert "MirrorLagSeconds" in lag[5]
    assert "`rt-inventory-fleet`" in lag[5]
    copied = rows["`kafka_connect_mirror_mirrorsourceconnector_record_count`"]
    assert "kafka.connect.mirror:type=MirrorSourceConnector" in copied[4]
    assert "mirror:records_copied:rate5m" in copied[5]


def test_every_alert_is_there_with_its_limit() -> None:
    rows = lines(generated.alerts_table(documents()))[2:]
    assert len(rows) == len(ALERTS)
    wanted = [(f"[{alert.name}](alerts.md#{alert.anchor})", alert.severity.value) for alert in ALERTS]
    assert [(cells[0], cells[1]) for cells in rows] == wanted
    late = next(cells for cells in rows if "MirrorLagSeconds" in cells[0])
    assert late[3] == "> 300 (`lagSeconds`)"
    # What only a condition beside the comparison asks for stands there too.
    assert "`kafka_connect_mirror_mirrorsourceconnector_record_count`" in next(
        cells[4] for cells in rows if "MirrorStalled" in cells[0]
    )


def test_every_recording_rule_is_there() -> None:
    assert [cells[0] for cells in lines(generated.recordings_table(documents()))[2:]] == [
        f"`{each.name}`" for each in RECORDINGS
    ]


def test_every_panel_is_there_with_its_metrics() -> None:
    table = generated.panels_table(documents())
    for document in documents().values():
        assert f"### {document['title']}\n" in table
        for panel in panels_of(document):
            assert f"| {panel['title']} | {panel['description']} | `" in table


def test_a_table_has_as_many_cells_in_each_line() -> None:
    for table in generated.TABLES.values():
        found = {len(re.findall(r"(?<!\\)\|", line)) for line in table(documents()).splitlines() if line[:1] == "|"}
        assert found <= {4, 5, 7}


@pytest.mark.parametrize("name", sorted(generated.TABLES))
def test_a_page_without_a_mark_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"`<!-- {name}: begin -->` and `<!-- {name}: end -->` once each"):
        generated.with_tables(PAGE.replace(f"<!-- {name}: end -->", ""), documents())


def test_pages_that_it_links_to_are_there() -> None:
    written = PAGE.split("<!-- alerts: begin -->")[0]
    for target in LINK.findall(written):
        path, _, anchor = target.partition("#")
        if path and path != "alerts.md":
            assert (generated.PAGE.parent / path).exists(), target
        if not path:
            assert anchor in {title.lower().replace(" ", "-") for title in re.findall(r"^#+ (.+)$", PAGE, re.M)}
