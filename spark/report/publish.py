"""Writes the files of a report (report.json, report.html, junit.xml, metrics.prom) and sends its result elsewhere.

Owns the content of report.json: of a run with a verdict, and of one that ended before it could judge. Destinations are
a metrics file, a Prometheus Pushgateway and Slack; one that fails never changes the verdict. The result holds no
secret: `kafka.errors` has removed them.
"""

import argparse
import json
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from prometheus_client import generate_latest, push_to_gateway, write_to_textfile

from contract.fields import RequestError, url_problem
from contract.files import NewFile, replace_files
from contract.report_rows import LazyRows
from contract.verification_metrics import JOB, registry, totals
from contract.verification_request import ClusterConfig, Limits, Mirror, Request, Resource
from kafka.errors import visible, visible_document
from kafka.topic_partition import TopicPartition
from spark.checks.registry import Check, expired, judge_part, not_judged, verdict
from spark.report.group_rows import GroupRows
from spark.report.html import Links, as_html
from spark.report.index import PAGE
from spark.report.summary import headline, remedy
from spark.run_context import RunContext

VERSION = 1
"""Of the shape that report.schema.json describes: higher when a field goes or changes its meaning."""
NOT_REPORTED = ("findings", "anchors", "read_at_source", "read_at_target")
SCOPE = ("topics", "topics_exclude", "groups", "groups_exclude", "failed_over", "naming")


def document(
    context: RunContext, checks: Sequence[Check], started_at: datetime, steps: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what report.json holds: JSON values only, the verdict and the exit code among them."""
    request, state = context.request, context.cut
    past = expired(context, checks)
    word, exit_code = verdict(checks, request.limits, past)
    finished_at = datetime.now(UTC)
    return {
        "version": VERSION,
        "verdict": word,
        "exit_code": exit_code,
        "error": None,
        "warnings": list(context.warnings),
        "stack": request.stack,
        "mirror": request.mirror.name,
        "source": _side(request.source),
        "target": _side(request.target),
        "resource": _resource(request.mirror.resource),
        "source_topic_ids": {name: topic.id for name, topic in sorted(context.source_topics.items()) if topic.id},
        "started_at": started_at.isoformat(timespec="seconds"),
        "finished_at": finished_at.isoformat(timespec="seconds"),
        "seconds": round((finished_at - started_at).total_seconds(), 1),
        "cut": {
            "waited_seconds": round(state.waited_s, 1),
            "position_known": state.positions is not None,
            "behind": [f"{topic}-{partition}" for topic, partition in state.behind],
            "offsets": {f"{topic}-{partition}": end for (topic, partition), end in sorted(state.cut.items())},
        },
        "records_compared": sum(result.compared for result in context.partitions),
        "allowed_unknown": [name for name in request.limits.allow_unknown if name not in past],
        "limits": {name: _json_value(value) for name, value in vars(request.limits).items()},
        "scope": {name: _json_value(getattr(request.mirror, name)) for name in SCOPE},
        "checks": [check.document() for check in checks],
        "not_judged": not_judged(request.mirror),
        "partitions": [
            {
                **{name: value for name, value in vars(result).items() if name not in NOT_REPORTED},
                "position": (state.positions or {}).get(TopicPartition(result.topic, result.partition)),
                "findings": [finding.document() for finding in result.findings],
            }
            for result in context.partitions
        ],
        "lag": context.lag.document(),
        "state": context.state,
        "canary": context.canary.document() if context.canary else None,
        "groups": GroupRows(context.groups, request.mirror),
        "positions": [dict(row) for row in context.translated],
        "steps": list(steps),
    }


def _side(side: ClusterConfig) -> dict[str, str]:
    address = side.client_config.get("bootstrap.servers")
    known = {"bootstrap_servers": address} if address else {}
    return {"alias": side.alias, "user": side.user, **known, **side.names}


def _resource(resource: Resource | None) -> dict[str, str | None] | None:
    if resource is None:
        return None
    return {key: getattr(resource, key) for key in ("kind", "namespace", "name", "context")}


def _json_value(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def stopped_document(
    context: RunContext, error: str, exit_code: int, started_at: datetime, steps: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what report.json holds when a run ended early: verdict `error`, or `stopped` if somebody ended it."""
    checks = judge_part(context)
    return document(context, checks, started_at, steps) | _end(error, exit_code)


def refused_document(path: Path, error: str, exit_code: int, started_at: datetime) -> dict[str, Any]:
    """Return what report.json holds when the request itself is wrong; names are taken from it if it has any."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        found = {}
    sides = {
        role: ClusterConfig.model_construct(
            role=role,
            alias=_text(found, role, "alias"),
            client_config={"sasl.username": ""},
            cluster=_text(found, role, "cluster"),
            stack=_text(found, role, "stack"),
            namespace=_text(found, role, "namespace"),
        )
        for role in ("source", "target")
    }
    mirror = Mirror.model_construct(
        name=_text(found, "mirror", "name") or "mirror",
        source_alias=sides["source"].alias,
        target_alias=sides["target"].alias,
        topics=(),
    )
    nothing = RunContext(
        request=Request.model_construct(
            source=sides["source"],
            target=sides["target"],
            mirror=mirror,
            limits=Limits(),
            stack=_text(found, "stack") or None,
        )
    )
    return document(nothing, [], started_at, []) | _end(error, exit_code) | {"not_judged": []}


def _end(error: str, exit_code: int) -> dict[str, Any]:
    return {"verdict": "error" if exit_code == 2 else "stopped", "exit_code": exit_code, "error": error}


def _text(found: object, *path: str) -> str:
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return visible(found) if isinstance(found, str) else ""


def write_report(folder: Path, result: Mapping[str, Any], index: Path | None = None) -> None:
    """Write the files into a folder that is made when missing; raises OSError. `index` is the folder of the index.

    All are of this run, or, if one does not fit on the disk, all of the one before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = [
        NewFile(path=folder / "report.json", parts=json_lines(result)),
        NewFile(path=folder / "metrics.prom", parts=[generate_latest(registry(visible_document(result)))], mode=0o644),
    ]
    links = Links(folder=folder, index=index / PAGE if index is not None else None)
    try:
        files.append(NewFile(path=folder / "report.html", parts=[as_html(result, links)]))
        files.append(NewFile(path=folder / "junit.xml", parts=[as_junit(result)]))
    finally:
        replace_files(files)  # a page that cannot be made takes nothing with it


def as_json(result: Mapping[str, Any]) -> str:
    """Return the result as JSON text."""
    return "".join(json_lines(result))


def json_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the result as JSON text, part by part: of rows that are made when they are read, a line each."""
    first = True
    for key, value in result.items():
        yield f"{'{' if first else ','}\n  {json.dumps(key)}: "
        first = False
        if isinstance(value, LazyRows):
            between = "["
            for row in value.json_lines():
                yield f"{between}\n    {row}"
                between = ","
            yield "\n  ]" if len(value) else "[]"
        else:
            yield json.dumps(value, indent=2).replace("\n", "\n  ")
    yield "{}\n" if first else "\n}\n"


def as_junit(result: Mapping[str, Any]) -> str:
    """Return the checks as a JUnit test suite: a failed check is a failure, an unknown one is an error.

    A run that could not judge has an error of its own, named `verification`.
    """
    checks, error, mirror = result["checks"], result.get("error"), visible(result["mirror"])
    suite = ElementTree.Element(
        "testsuite",
        name=f"verification {mirror}",
        tests=str(len(checks) + (error is not None)),
        failures=str(sum(check["ok"] is False for check in checks)),
        errors=str(sum(check["ok"] is None for check in checks) + (error is not None)),
        time=str(result["seconds"]),
        timestamp=result["started_at"],
    )
    if error is not None:
        case = ElementTree.SubElement(suite, "testcase", classname=f"mirror.{mirror}", name="verification")
        ElementTree.SubElement(case, "error", message=visible(error))
    for check in checks:
        case = ElementTree.SubElement(suite, "testcase", classname=f"mirror.{mirror}", name=check["name"])
        if check["ok"] is not True:
            kind = "failure" if check["ok"] is False else "error"
            problem = ElementTree.SubElement(case, kind, message=visible(check["observed"]))
            problem.text = f"expected {visible(check['expected'])}\n{json.dumps(check['evidence'], indent=1)}"
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


PUSH_DEADLINE_S = 10.0


def to_file(path: Path, result: Mapping[str, Any]) -> None:
    """Replace a file in the text exposition format at once; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_to_textfile(str(path), registry(visible_document(result)))


def push(url: str, result: Mapping[str, Any]) -> None:
    """Replace the group of this stack's mirror on a push gateway; raises OSError, of which urllib's errors are a kind.

    Stacks may have mirrors of the same name: only with the stack in its key a group is of one of them.
    """
    stack = {"stack": str(result["stack"])} if result.get("stack") else {}
    key = {**stack, "mirror": str(result["mirror"])}
    push_to_gateway(url, JOB, registry(visible_document(result)), grouping_key=key, timeout=PUSH_DEADLINE_S)


@dataclass(frozen=True, kw_only=True)
class Destinations:
    """Where to send the result, None for nowhere. The webhook's address is a secret."""

    metrics_file: Path | None = None
    push_gateway: str | None = None
    slack_webhook: str | None = field(default=None, repr=False)

    @property
    def secrets(self) -> list[str]:
        """Values that must never be shown."""
        return [self.slack_webhook] if self.slack_webhook else []


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name destinations."""
    parser.add_argument("--metrics-file", type=Path, help="write Prometheus metrics to this file, NAME.prom")
    parser.add_argument("--push-gateway", metavar="URL", help="push Prometheus metrics to this gateway")
    parser.add_argument("--slack-webhook", metavar="env:NAME|file:PATH", help="where the webhook's address is found")


def destinations(options: argparse.Namespace, environment: Mapping[str, str]) -> Destinations:
    """Return the destinations of a command line; raises RequestError naming the option that is wrong."""
    reference = options.slack_webhook
    if options.push_gateway and (problem := url_problem(options.push_gateway)):
        raise RequestError([f"--push-gateway: {problem}"])
    return Destinations(
        metrics_file=options.metrics_file,
        push_gateway=options.push_gateway,
        slack_webhook=_secret(reference, environment) if reference else None,
    )


def _secret(reference: str, environment: Mapping[str, str]) -> str:
    kind, _, name = reference.partition(":")
    if kind == "env" and name:
        if environment.get(name):
            return environment[name]
        raise RequestError([f"--slack-webhook: needs the environment variable {name} (got none)."])
    if kind == "file" and name:
        try:
            return Path(name).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise RequestError([f"--slack-webhook: needs the file {name} ({error.strerror})."]) from None
    raise RequestError(
        ["--slack-webhook: must be env:NAME or file:PATH (got something else, not shown). The address is a secret."]
    )


def publish(result: Mapping[str, Any], report: Path, wanted: Destinations) -> None:
    """Send the result to every destination; a failure is printed on standard error, without the webhook's address."""
    ways: dict[str, Callable[[], None]] = {}
    if wanted.metrics_file:
        ways[f"--metrics-file {wanted.metrics_file}"] = partial(to_file, wanted.metrics_file, result)
    if wanted.push_gateway:
        ways[f"--push-gateway {wanted.push_gateway}"] = partial(push, wanted.push_gateway, result)
    if wanted.slack_webhook:
        ways["--slack-webhook"] = partial(send, wanted.slack_webhook, result, report)
    for name, add in ways.items():
        try:
            add()
        except Exception as error:
            why = error if isinstance(error, OSError | ValueError) else type(error).__name__
            sys.stderr.write(f"{name}: not published ({why}). The verdict stays as it is.\n")


DEADLINE_S = 10.0
SHOWN = 8
TEXT_MAX = 2900  # Slack refuses a section of more than 3000 characters
SIGNS = {"pass": ":white_check_mark:", "unknown": ":grey_question:"}


def message(result: Mapping[str, Any], report: Path) -> dict[str, Any]:
    """Return a Block Kit message; `text` is what notifications show."""
    summary, verdict = headline(result), result["verdict"]
    title = f"Mirror {result['mirror']}: {verdict}"
    bad = summary["failed"] + summary["unknown"]
    lines = [
        f"*{_plain(one['name'])}* {'fails' if one['ok'] is False else 'unknown'}: {_plain(one['observed'])}\n"
        f"_{_plain(remedy(one).text)}_"
        for one in bad[:SHOWN]
    ]
    lines += [f"and {len(bad) - SHOWN} more"] if len(bad) > SHOWN else []
    if result.get("error"):
        lines.insert(0, f"```{_plain(result['error'])}```")
    found = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in totals(result).items())
    context = [
        f"{_plain(result['source']['alias'])} → {_plain(result['target']['alias'])}",
        f"{result.get('records_compared', 0)} records compared in {result['seconds']} s",
        *([found] if found else []),
        f"report {_plain(str(report))}",
    ]
    head = f"{SIGNS.get(verdict, ':red_circle:')} *{_plain(summary['title'])}*\n{_plain(summary['advice'])}"
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": title[:150]}},
        _section(head),
        *([_section("\n".join(lines))] if lines else []),
        {"type": "context", "elements": [{"type": "mrkdwn", "text": " | ".join(context)[:TEXT_MAX]}]},
    ]
    return {"text": title, "blocks": blocks}


def send(url: str, result: Mapping[str, Any], report: Path) -> None:
    """Post the message; raises OSError without the address, which is a secret."""
    try:
        answer = httpx.post(url, json=message(result, report), timeout=DEADLINE_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise OSError(type(error).__name__) from None
    if answer.status_code >= 300:
        raise OSError(f"HTTP {answer.status_code}")


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text[:TEXT_MAX]}}


def _plain(text: str) -> str:
    """Return text in which nothing is a link or a mention (Slack's three control characters)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
