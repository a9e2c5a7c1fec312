"""Every PromQL expression of the dashboards, with the panel that asks it, and with Grafana's variables filled in."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monitoring.dashboards import Documents, documents, panels_of
from monitoring.metrics.catalog import names_in

# What a variable is while nobody says otherwise: any value, and a span of time that holds several scrapes.
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
        """Names of the metrics that it asks for, also of those that a pattern lists."""
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
