"""The message for Slack: verdict, what fails, counts, and where the report lies."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from spark.report.summary import headline, remedy, totals

DEADLINE_S = 10.0
SHOWN = 8
TEXT_MAX = 2900  # Slack refuses a section of more than 3000 characters
SIGNS = {"pass": ":white_check_mark:", "unknown": ":grey_question:"}


def message(result: Mapping[str, Any], report: Path) -> dict[str, Any]:
    """Return a Block Kit message; `text` is what notifications show."""
    told, verdict = headline(result), result["verdict"]
    title = f"Mirror {result['mirror']}: {verdict}"
    bad = told["failed"] + told["unknown"]
    lines = [
        f"*{_plain(one['name'])}* {'fails' if one['ok'] is False else 'unknown'}: {_plain(one['observed'])}\n"
        f"_{_plain(remedy(one).text)}_"
        for one in bad[:SHOWN]
    ]
    lines += [f"and {len(bad) - SHOWN} more"] if len(bad) > SHOWN else []
    if result.get("error"):
        lines.insert(0, f"```{_plain(result['error'])}```")
    found = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in totals(result).items())
    facts = [
        f"{_plain(result['source']['alias'])} → {_plain(result['target']['alias'])}",
        f"{result.get('records_compared', 0)} records compared in {result['seconds']} s",
        *([found] if found else []),
        f"report {_plain(str(report))}",
    ]
    head = f"{SIGNS.get(verdict, ':red_circle:')} *{_plain(told['title'])}*\n{_plain(told['advice'])}"
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": title[:150]}},
        _section(head),
        *([_section("\n".join(lines))] if lines else []),
        {"type": "context", "elements": [{"type": "mrkdwn", "text": " | ".join(facts)[:TEXT_MAX]}]},
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
