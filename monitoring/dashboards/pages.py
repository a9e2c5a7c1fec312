"""What all dashboards share: addresses, variables, links, alerts drawn into graphs, and their JSON."""

import json
from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard

from monitoring.dashboards import Document
from monitoring.dashboards.panels import DATASOURCE, Panel
from monitoring.dashboards.queries import selector

TAG = "rt-inventory"
FLEET, MIRROR, GROUPS, VERIFICATION, CLUSTER = (
    f"{TAG}-{name}" for name in ("fleet", "mirror", "groups", "verification", "cluster")
)
# What a table's link carries along: the chosen data source and time, and the row's own stack and mirror.
_CARRIED = "${datasource:queryparam}&${__url_time_range}"
_OF_ROW = "var-stack=${__data.fields.Stack}&var-mirror=${__data.fields.Mirror}"
# Any of these has a mirror's labels: without its workers, without `ops`, and before its first verification.
_WITH_MIRRORS = (
    "rt_inventory_mirror_state",
    "kafka_connect_connect_worker_metrics_task_count",
    "rt_inventory_verification_verdict",
)
MIRRORS = f'__name__=~"{"|".join(_WITH_MIRRORS)}"'
# What Grafana's data source for Prometheus writes at a mark, of the labels of its series.
ANNOTATION_TEXTS = {
    "titleFormat": "{{alertname}}",
    "textFormat": "{{severity}} {{mirror}} {{cluster}}",
    "tagKeys": "stack,stage",
}
CLUSTERS = "kafka_server_replicamanager_partitioncount"
# A stack may have a cluster and no mirror, as that of a source has, or only an alert about what is not there.
STACKS = f'__name__=~"{"|".join((*_WITH_MIRRORS, CLUSTERS, "ALERTS"))}"'


def page_of_row(uid: str) -> str:
    """Return the address of a dashboard for the mirror of the table row that has the link."""
    return f"/d/{uid}?{_OF_ROW}&{_CARRIED}"


def blank(
    uid: str, title: str, about: str, *, since: str = "now-6h", refresh: str = "30s", of_one: bool = True
) -> build.Dashboard:
    """Return a dashboard without panels and variables, linked with the others.

    One that is of a single mirror or cluster takes its choice along. All of them would be no choice elsewhere.
    """
    others = build.DashboardLink("Kafka mirrors").type(dashboard.DashboardLinkType.DASHBOARDS).tags([TAG])
    runbook = build.DashboardLink("Runbook").type(dashboard.DashboardLinkType.LINK).icon("doc").url("${runbook:raw}")
    return (
        build.Dashboard(title)
        .uid(uid)
        .description(about)
        .tags([TAG, "kafka"])
        .time(since, "now")
        .refresh(refresh)
        .timezone("browser")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .link(others.keep_time(True).include_vars(of_one))
        .link(runbook.tooltip("What to do, alert by alert").target_blank(True))
    )


def datasource() -> build.DatasourceVariable:
    """Return the variable of the Prometheus data source."""
    return build.DatasourceVariable("datasource").label("Prometheus").type("prometheus")


def runbook(url: str) -> build.ConstantVariable:
    """Return a hidden variable with the runbook's address, which all links of a dashboard use."""
    return build.ConstantVariable("runbook").label("Runbook").value(url)


def choice(name: str, label: str, series: str, *, many: bool = False, key: str = "") -> build.QueryVariable:
    """Return a choice among the values that a label of the series has; several at once, or all, where it makes sense.

    All means each value by its name, not any value: a metric may have series without the label, or of no interest.
    """
    query = f"label_values({series}, {key or name})"
    variable = (
        build.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query({"query": query, "refId": f"choice-{name}"})
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.ALPHABETICAL_ASC)
    )
    if not many:
        return variable
    everything = dashboard.VariableOption(selected=True, text=["All"], value=["$__all"])
    return variable.multi(True).include_all(True).current(everything)


def hidden(variable: build.QueryVariable) -> build.QueryVariable:
    """Return the variable hidden: other variables determine it."""
    return variable.hide(dashboard.VariableHide.HIDE_VARIABLE)


def choose_mirror(page: build.Dashboard, address: str, *, many: bool = False) -> None:
    """Add the choice of data source, stack and mirror, the runbook's address and the alerts of what is chosen."""
    page.with_variable(datasource()).with_variable(runbook(address))
    page.with_variable(choice("stack", "Stack", f"{{{MIRRORS}}}", many=many))
    page.with_variable(choice("mirror", "Mirror", f'{{{MIRRORS}, stack=~"$stack"}}', many=many))
    page.annotation(alerts_drawn('stack=~"$stack"', 'mirror=~"($mirror)|"'))


def alerts_drawn(*matchers: str) -> build.AnnotationQuery:
    """Return marks in every graph for as long as an alert fires."""
    firing = selector("ALERTS", 'alertstate="firing"', *matchers)
    return build.AnnotationQuery().name("Alerts").datasource(DATASOURCE).icon_color("red").enable(True).expr(firing)


def section(
    page: build.Dashboard,
    title: str,
    panels: Sequence[Panel],
    *,
    folded: bool = False,
    each: str = "",
) -> None:
    """Add a row with its panels; a folded one queries nothing until it is opened. `each` repeats it by a variable."""
    row = build.Row(title)
    if each:
        row.repeat(each)
    if folded:
        for panel in panels:
            row.with_panel(panel)
    page.with_row(row)
    if not folded:
        for panel in panels:
            page.with_panel(panel)


def finished(page: dashboard.Dashboard) -> Document:
    """Return the dashboard as JSON: panels numbered from 1 on, as links to panels need it; constants hidden."""
    count = 0
    for panel in page.panels or []:
        inner: Sequence[dashboard.Panel] = panel.panels if isinstance(panel, dashboard.RowPanel) else ()
        for one in (panel, *inner):
            count += 1
            one.id_val = count
    for variable in page.templating.list_val or []:
        if variable.type_val is dashboard.VariableType.CONSTANT:
            variable.hide = dashboard.VariableHide.HIDE_VARIABLE
    document: Document = json.loads(json.dumps(page, cls=JSONEncoder))
    for marks in document["annotations"]["list"]:
        marks |= ANNOTATION_TEXTS  # the SDK cannot write them
    return document
