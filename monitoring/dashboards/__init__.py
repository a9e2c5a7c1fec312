"""Grafana's dashboards: JSON that is committed and shipped, and what writes it.

Here the committed JSON is read, with every PromQL expression in it, its panel, and Grafana's variables filled in. Only
the modules that draw dashboards need Grafana's Foundation SDK.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitoring.metrics.catalog import names_in

FOLDER = Path(__file__).parent / "json"
RUNBOOK = "runbook"
Document = dict[str, Any]
Documents = Mapping[str, Document]


def documents() -> Documents:
    """Return each committed dashboard by its uid, in the order of their names."""
    found = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json")))
    return {document["uid"]: document for document in found}


def panels_of(document: Mapping[str, Any]) -> Iterator[Document]:
    """Every panel of a dashboard, also those in folded rows; rows themselves are none."""
    for panel in document["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def texts(runbook_url: str | None = None, scrape_seconds: int | None = None) -> dict[str, str]:
    """Return each dashboard as JSON by its file's name, with the runbook and the scrapes where they are given."""
    return {
        f"{uid}.json": text(with_scrapes(with_runbook(each, runbook_url), scrape_seconds))
        for uid, each in documents().items()
    }


def text(document: Mapping[str, Any]) -> str:
    """Return a document as it is committed: the same for the same content."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def with_scrapes(document: Document, seconds: int | None) -> Document:
    """Return a dashboard whose rates span several scrapes of this interval; None leaves them as they are."""
    if seconds is not None:
        for panel in panels_of(document):
            for target in panel["targets"]:
                target["interval"] = f"{seconds}s"
    return document


def with_runbook(document: Document, url: str | None) -> Document:
    """Return a dashboard whose runbook is found at the address; None leaves it where it is."""
    if url is not None:
        for variable in document["templating"]["list"]:
            if variable["name"] == RUNBOOK:
                variable["query"] = url
    return document


# Default of a variable: any value, and a span of time that contains several scrapes.
ANY = ".+"
SPANS = {"__rate_interval": "1m", "__interval": "30s", "__range": "1h"}
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::\w+)?\}|(\w+))")
_LABEL_VALUES = re.compile(r"label_values\((?P<series>.*), (?P<label>\w+)\)", re.DOTALL)
_NAMES = re.compile(r'__name__=~"([^"]*)"')


@dataclass(frozen=True, kw_only=True)
class Expression:
    """One expression as it is written, and where: a panel, a variable or the marks in graphs."""

    dashboard: str
    panel: str
    text: str

    @property
    def metrics(self) -> set[str]:
        """Names of the metrics that it reads, also of those that a pattern lists."""
        listed = {name for names in _NAMES.findall(self.text) for name in names.split("|")}
        return names_in(self.text) | listed

    @property
    def variables(self) -> set[str]:
        """Names of Grafana's variables in it."""
        return variables(self.text)

    def filled(self, values: Mapping[str, str] | None = None) -> str:
        """Return PromQL that Prometheus understands; a choice of labels becomes the series that it is made of."""
        known = {**SPANS, **(values or {})}
        asked = _LABEL_VALUES.fullmatch(self.text)
        promql = f"group by ({asked['label']}) ({asked['series']})" if asked else self.text
        return _VARIABLE.sub(lambda found: known.get(found[1] or found[2], ANY), promql)


def expressions(found: Documents | None = None) -> Iterator[Expression]:
    """Every expression of every dashboard; of the committed ones unless others are given."""
    for document in (documents() if found is None else found).values():
        yield from expressions_of(document)


def expressions_of(document: Mapping[str, Any]) -> Iterator[Expression]:
    """Every expression of one dashboard: its panels', its variables' and those of its marks."""
    for panel in panels_of(document):
        yield from of_panel(document, panel)
    uid = document["uid"]
    for variable in document["templating"]["list"]:
        if variable["type"] == "query":
            yield Expression(dashboard=uid, panel=f"variable {variable['name']}", text=variable["query"]["query"])
    for marks in document["annotations"]["list"]:
        yield Expression(dashboard=uid, panel=f"marks {marks['name']}", text=marks["expr"])


def of_panel(document: Mapping[str, Any], panel: Mapping[str, Any]) -> Iterator[Expression]:
    """Every expression of one panel."""
    for target in panel["targets"]:
        yield Expression(dashboard=document["uid"], panel=panel["title"], text=target["expr"])


def variables(text: str) -> set[str]:
    """Return the names of Grafana's variables in a text."""
    return {found[1] or found[2] for found in _VARIABLE.finditer(text)}
