"""Tables for people: what was sent, what was read, what the verification found."""

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ops.accounting import Account
from ops.adaptive_table import AdaptiveTable, Column
from ops.consumer import Read
from ops.producer import Sent
from ops.size_clients import count
from ops.size_model import Size
from ops.verify import Verdict


def _partitions(title: str, account: Account) -> Table:
    table = Table(title=title, title_justify="left")
    for column in ("partition", "records", "first offset", "last offset"):
        table.add_column(column, justify="right")
    for row in account.as_json():
        table.add_row(*(str(row[key]) for key in ("partition", "records", "firstOffset", "lastOffset")))
    return table


def sent(outcome: Sent) -> RenderableType:
    """Return what was delivered per partition, and why deliveries failed."""
    title = f"{outcome.topic}: {outcome.account.total} delivered, {outcome.failed} failed, {outcome.seconds:.1f} s"
    reasons = [f"[red]{count} failed: {escape(reason)}[/red]" for reason, count in outcome.failures.items()]
    return Group(_partitions(title, outcome.account), *reasons)


def read(outcome: Read) -> RenderableType:
    """Return what was read per partition and whether it was committed."""
    committed = "committed" if outcome.committed else "no commit at the end"
    title = f"{outcome.topic} as {outcome.group}: {outcome.account.total} records, {committed}, {outcome.seconds:.1f} s"
    return _partitions(title, outcome.account)


def verdict(outcome: Verdict) -> RenderableType:
    """Return the checks with what was expected and observed, the verdict and the report's path."""
    columns = Column("check", name=True), Column("holds"), Column("expected"), Column("observed")
    table = AdaptiveTable(f"mirror {outcome.mirror}", columns)
    for check in outcome.report.get("checks", []):
        table.add_row(
            str(check.get("name")),
            _mark(check.get("ok")),
            str(check.get("expected")),
            str(check.get("observed")),
        )
    runs = [f"all runs: {outcome.index}"] if outcome.index is not None else []
    return Group(table, f"verdict: [bold]{outcome.report.get('verdict')}[/bold]", f"report: {outcome.html}", *runs)


def sizing(mirror: str, size: Size) -> RenderableType:
    """Return the steps that lead to a mirror's size, the size, advice and the measurement that it rests on."""
    title = f"mirror {mirror}: {count(size.tasks, 'task')}, {count(size.replicas, 'replica')}"
    table = Table(title=title if size.feasible else f"mirror {mirror}: too few partitions", title_justify="left")
    for column in ("step", "calculation", "result"):
        table.add_column(column, overflow="fold")
    for step in size.steps:
        table.add_row(step.about, escape(step.calculation), step.result)
    worker = (
        f"a worker: {size.cpu_per_worker:g} cores requested, {size.cpu_limit:g} at most, "
        f"{size.memory_mib} MiB of memory, heap {size.heap_mib} MiB"
    )
    return Group(table, worker, *map(escape, size.advice), f"measured: {escape(size.measured)}")


def _mark(ok: Any) -> Text:
    if ok is None:
        return Text("unknown", "yellow")
    return Text("yes", "green") if ok else Text("no", "red")
