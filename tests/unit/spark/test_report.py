"""The report's page and document, without a browser."""

import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from contract.check_names import CHECK_NAMES
from contract.verification_metrics import JUDGED_BY
from contract.verification_request import ClusterConfig, Limits, Mirror, Request, Resource
from kafka.group_positions import GroupPosition
from kafka.groups import Groups
from kafka.mirror_position import CutState
from spark.checks.registry import Check, definitions
from spark.comparison.findings import Finding, PartitionResult, Sample
from spark.report import html, publish, summary
from spark.report.html import as_html, grid, groups
from spark.report.publish import document
from spark.report.summary import findings
from spark.run_context import RunContext

from ...support import report_documents as made

SCHEMA = json.loads((Path(publish.__file__).parent / "report.schema.json").read_text(encoding="utf-8"))
FOLLOWING = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
FOLLOWING.check_schema(SCHEMA)  # once: `jsonschema.validate` checks the schema itself for every document
DOCUMENTS = {"clean": made.clean, "faulty": made.faulty, "stopped": made.stopped}
VOID = {"meta", "link", "input", "br"}


class Tree(HTMLParser):
    """Fails on tags that do not match; collects identifiers, links to them and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if name := given.get("id"):
            self.ids.append(name)
        if (link := given.get("href") or "").startswith("#"):
            self.links.append(link[1:])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Shapes of a plot open nothing."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data


def words(page: str) -> str:
    """The text of a page, with one blank between what stands in different tags."""
    return " ".join(Tree(page.replace("<", " <")).text.split())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_page_is_well_formed_and_every_link_in_it_leads_somewhere(name: str) -> None:
    tree = Tree(as_html(DOCUMENTS[name]()))
    assert len(set(tree.ids)) == len(tree.ids)
    assert set(tree.links) <= set(tree.ids)


def test_the_page_says_first_what_fails_and_what_to_do() -> None:
    text = Tree(as_html(made.faulty())).text
    first = text.index("Do not fail over on this mirror")
    assert first < text.index("records_complete") < text.index("groups_no_loss") < text.index("topic_config")
    for check in summary.headline(made.faulty())["failed"]:
        assert text.index(definitions()[check["name"]].remedy.text) < text.index("Topics and partitions")


def test_every_check_has_its_remedy() -> None:
    assert set(CHECK_NAMES) == set(definitions())
    assert set(JUDGED_BY.values()) <= set(definitions())


def test_what_could_not_be_judged_is_never_shown_as_holding() -> None:
    check = made.check("records_complete", None)
    assert summary.state_of(check) == "unknown"
    assert summary.remedy(check) != definitions()["records_complete"].remedy


def test_the_head_names_clusters_stacks_namespaces_and_the_mirror() -> None:
    for made_up in DOCUMENTS.values():
        text = words(as_html(made_up()))
        first = text[: text.index("UTC")]
        for name in ("rt-inventory-dev stack dev namespace rt-inventory-dev alias es-src read as rt-inv-dev-user",
                     "rt-inventory-stg stack stg namespace rt-inventory-stg", "mirror mm2 of stack stg",
                     "KafkaMirrorMaker2 mm2 context stg-cluster"):  # fmt: skip
            assert name in first


def test_a_request_that_names_only_aliases_shows_these() -> None:
    document = made.faulty()
    for name in ("stack", "resource"):
        del document[name]
    document |= {role: {"alias": document[role]["alias"]} for role in ("source", "target")}
    text = words(as_html(document))
    assert "Source es-src Target es-tgt Mirror mm2" in text
    assert "python -m ops doctor --stack STACK --mirror mm2" in text
    assert "STACK is the stack that declares the mirror" in text


def test_the_findings_hold_groups_that_would_skip_records_with_their_numbers() -> None:
    document = made.faulty()
    document["groups"].append(made.group("billing", 1, synced=980, skipped=80, repeated=0))
    document["groups"].append(made.group("moved", 1, synced=980, skipped=7, unclaimed=True))
    found = {(one["kind"], one.get("group")): one for one in findings(document)}
    billing = found["skipped", "billing"]
    assert (billing["count"], billing["sign"], len(billing["positions"])) == (130, "bad", 2)
    assert found["skipped", "moved"]["sign"] == "unknown"
    assert [one["kind"] for one in findings(document)][:2] == ["lost", "skipped"]
    text = words(as_html(document))
    assert "130 records skipped by group billing in orders-1 and 1 more" in text
    assert "Skipped 130 records" in text


def test_a_group_whose_check_holds_is_no_finding() -> None:
    document = made.faulty()
    next(check for check in document["checks"] if check["name"] == "groups_no_loss")["ok"] = True
    assert not [one for one in findings(document) if "group" in one]


def test_groups_over_the_limit_and_positions_that_are_not_synced_are_findings() -> None:
    document = made.faulty()
    rows = [{"group": "billing", "repeated": 10}, {"group": "shipping", "repeated": 60_000}]
    document["limits"]["reread_records_max"] = 50_000
    document["checks"] += [
        made.check("groups_synced", False, "not synced: reporting on orders-2"),
        made.check("groups_reread_bounded", False, "shipping would read 60000 again", evidence=rows),
    ]
    document["groups"][1]["repeated"] = 60_000
    found = {(one["kind"], one["group"]): one["count"] for one in findings(document) if "group" in one}
    assert found == {("skipped", "billing"): 50, ("not_synced", "reporting"): 1, ("read_again", "shipping"): 60_000}


def test_a_finding_shows_partition_offsets_digest_runs_and_what_differs() -> None:
    text = Tree(as_html(made.faulty())).text
    for shown in ("gap", "tail", "1\N{NARROW NO-BREAK SPACE}299", f"{1:016x}", "value", "5 → 4", "orders-0"):
        assert shown in text


def test_values_are_escaped_wherever_they_come_from() -> None:
    document = made.faulty()
    evil = "<script>alert(1)</script>"
    document["groups"][0]["group"] = evil
    document["checks"][0]["observed"] = evil
    document |= {"error": evil, "mirror": evil}
    page = as_html(document)
    assert evil not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4


def test_the_page_asks_nothing_of_any_other_place() -> None:
    document = made.clean()
    page = as_html(document)
    assert "default-src 'none'" in page
    assert "://" not in page
    assert "src=" not in page.replace("default-src", "")


def test_a_run_that_could_not_judge_shows_its_error_and_no_empty_section() -> None:
    document = made.stopped()
    page = as_html(document)
    assert document["error"] in Tree(page).text
    assert 'id="checks"' not in page
    assert 'id="grid"' not in page


def test_states_of_partitions_are_reported_apart_by_sign_and_word_not_only_by_colour() -> None:
    document = made.faulty()
    table = grid(document, findings(document))
    states = {cell["state"] for row in table["rows"] for cell in row["cells"]}
    assert states == {"bad", "unknown", "note", "empty", "good"}
    assert len(set(table["signs"].values())) == 5
    assert table["rows"][0]["topic"] == "orders", "the topic with faults comes first"
    assert all(cell["text"].startswith("orders-") for cell in table["rows"][0]["cells"])


def test_a_partition_that_an_earlier_run_verified_to_the_cut_holds() -> None:
    document = made.clean()
    document["partitions"][0] |= {"compared": 0, "verified_from": 1000, "cut": 1000}
    assert grid(document, [])["counts"] == {"bad": 0, "unknown": 0, "note": 0, "empty": 0, "good": 12}


def test_a_grid_is_drawn_only_where_partitions_differ_or_topics_are_to_be_seen() -> None:
    document = made.clean()
    page = as_html(document)
    assert "All 12 partitions of 2 topics hold." in Tree(page).text
    assert '<details class="fold"><summary>Each partition of each topic' in page
    document["partitions"] = document["partitions"][:6]
    page = as_html(document)
    assert "All 6 partitions of items hold." in Tree(page).text
    assert '<table class="grid' not in page
    document["partitions"] = document["partitions"][:1]
    assert "The only partition, items-0, holds." in Tree(as_html(document)).text
    document["partitions"] = [made.partition("items", 0), made.partition("items", 1, compared=0)]
    page = as_html(document)
    assert '<table class="grid' in page
    assert '<details class="fold" open><summary>Each partition of each topic' in page


def test_partitions_added_later_leave_holes_in_the_grid_not_shifted_cells() -> None:
    document = made.clean()
    document["partitions"] = [made.partition("a", 0), made.partition("b", 2)]
    rows = grid(document, [])["rows"]
    assert [[bool(cell) for cell in row["cells"]] for row in rows] == [[True, False, False], [False, False, True]]


def test_doubled_records_within_the_limit_are_a_note_and_beyond_it_a_fault() -> None:
    document = made.faulty()
    within = {one["kind"]: one["fails"] for one in findings(document)}
    assert within["doubled"] is False
    assert within["lost"] is True
    next(check for check in document["checks"] if check["name"] == "records_unique")["ok"] = False
    assert {one["kind"]: one["fails"] for one in findings(document)}["doubled"] is True


def test_plots_stay_inside_their_frame_and_are_left_out_without_data() -> None:
    assert html.lag_plot(None) is None
    assert html.lag_plot({"series": [[0.0, 5]]}) is None
    assert html.latency_plot({"records": 0, "latencies_ms": []}) is None
    for series in ([[0.0, 0], [0.0, 1], [0.0, 0]], [[3.0, 7], [4.5, 0], [9.5, 123_456_789]]):
        figure = html.lag_plot({"series": series})
        assert figure is not None
        for point in figure["line"].split():
            x, y = (float(value) for value in point.split(","))
            assert html.LEFT <= x <= html.WIDTH - html.RIGHT
            assert html.TOP <= y <= html.HEIGHT - html.BOTTOM
    values = [3.0] * 9 + [900.0]
    figure = html.latency_plot({"records": 10, "p50_ms": 3.0, "p95_ms": 900.0, "p99_ms": 900.0, "latencies_ms": values})
    assert figure is not None
    assert [bar["x"] for bar in figure["bars"]] == sorted(bar["x"] for bar in figure["bars"])
    assert "p99 900 ms" in figure["text"]


@pytest.mark.parametrize("series", [[[0.0, 4], [9.0, 0]], [[0.0, 0], [1.0, 0], [2.0, 0], [3.0, 0]]])
def test_a_line_of_two_points_or_of_equal_ones_is_not_drawn(series: list[list[float]]) -> None:
    assert html.lag_plot({"series": series}) is None


@pytest.mark.parametrize("values", [[5.0, 9.0], [5.0] * 60])
def test_a_histogram_of_a_few_or_of_equal_latencies_is_not_drawn(values: list[float]) -> None:
    assert html.latency_plot({"records": len(values), "p50_ms": 5.0, "latencies_ms": values}) is None


def test_bars_of_steps_are_as_long_as_their_share_and_none_is_drawn_of_a_short_run() -> None:
    def percents(*seconds: float) -> list[float | None]:
        return [bar["percent"] for bar in html.step_bars([{"step": "s", "seconds": one} for one in seconds])]

    assert percents(0.1, 40, 10) == [0.25, 100, 25]
    assert percents(0.1, 0.9) == percents(2, 2) == [None, None]
    assert percents() == []
    style = (Path(publish.__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    meter = re.search(r"\.meter span \{([^}]*)\}", style)
    assert meter is not None
    assert "min-width" not in meter[1]


def test_bars_of_a_histogram_are_as_high_as_their_numbers() -> None:
    figure = html.latency_plot({"records": 40, "p50_ms": 1.0, "latencies_ms": [1.0] * 10 + [90.0] * 30})
    assert figure is not None
    low, high = (bar["h"] for bar in figure["bars"])
    assert high == pytest.approx(3 * low, abs=0.2)


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (950, "950"), (1500, "1.5k"), (3_200_000, "3.2M")])
def test_numbers_on_axes_are_short(number: float, text: str) -> None:
    assert html.short_number(number) == text


@pytest.mark.parametrize("name", DOCUMENTS)
def test_made_up_documents_follow_the_schema(name: str) -> None:
    FOLLOWING.validate(DOCUMENTS[name]())


def context() -> RunContext:
    names = {"cluster": "kafka", "stack": "dev"}
    sides = {role: ClusterConfig(role=role, alias=role, client_config={}, **names) for role in ("source", "target")}
    resource = Resource(api_version="kafka.strimzi.io/v1", kind="KafkaMirrorMaker2", namespace="kafka", name="mm2")
    mirror = Mirror(name="mm2", source_alias="a", target_alias="b", topics=("items",), resource=resource)
    findings = [Finding("lost", "items", 0, 1, (Sample(4, None, "ab" * 32),))]
    part = PartitionResult("items", 0, 0, 10, 0, 9, source_records=10, target_records=9, compared=9, findings=findings)
    cut = CutState(cut={("items", 0): 10}, positions={("items", 0): 10}, behind=[], waited_s=0.5)
    group = GroupPosition(group="g", topic="items", partition=0, committed=5, synced=4, judged=True)
    request = Request(**sides, mirror=mirror, limits=Limits())
    return RunContext(
        request=request, source_topics={}, target_topics={}, cut=cut, partitions=[part], groups=Groups([group])
    )


def test_what_a_run_writes_follows_the_schema() -> None:
    check = Check(name="records_complete", ok=False, expected="all", observed="1 lost")
    made_of_facts = document(context(), [check], datetime.now(UTC), [{"step": "compare", "seconds": 1.0}])
    plain = json.loads(publish.as_json(made_of_facts))
    FOLLOWING.validate(plain)
    assert plain["version"] == SCHEMA["properties"]["version"]["const"]
    assert plain["limits"]["duplicates_max"] == 0
    assert plain["scope"]["topics"] == ["items"]
    assert plain["source"] == {"alias": "source", "user": "no user", "cluster": "kafka", "stack": "dev"}
    assert plain["resource"] == {"kind": "KafkaMirrorMaker2", "namespace": "kafka", "name": "mm2", "context": None}
    Tree(as_html(made_of_facts))


@pytest.mark.parametrize(
    ("path", "value"),
    [(["verdict"], "green"), (["partitions", 0, "compared"], -1), (["checks", 0, "colour"], 1), (["surplus"], 1)],
)
def test_the_schema_refuses_what_it_does_not_describe(path: list[Any], value: Any) -> None:
    document: Any = made.clean()
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        FOLLOWING.validate(document)


@pytest.mark.parametrize(
    ("changes", "state", "sign"),
    [
        ({"skipped": 3}, "skips records", "bad"),
        ({"skipped": 3, "unclaimed": True}, "ahead, unexplained", "unknown"),
        ({"skipped": 3, "unclaimed": True, "active": True}, "active on target", "note"),
        ({"unclaimed": True}, "synced", "good"),
        ({"synced": None}, "not synced", "unknown"),
    ],
)
def test_a_groups_row_shows_what_can_be_reported_of_it(changes: dict[str, Any], state: str, sign: str) -> None:
    (row,) = groups([made.group("g", **changes)])
    assert (row["state"], row["sign"]) == (state, sign)
