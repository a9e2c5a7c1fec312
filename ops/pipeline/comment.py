"""The one comment of a pull request that reports its previews: found by a hidden mark and replaced each time."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from ops.errors import OpsError
from ops.pipeline.documents import cut
from ops.pipeline.identity import TIMEOUT_S, RetryPauses, request_json, with_retries

MARK = "<!-- rt-inventory: previews of this pull request -->"
_LENGTH_MAX = 65_000  # GitHub refuses a comment of more than 65,536 characters
_NOTE = "_Cut here: the whole text is in the summary of the run._"
_PAGE = 100


@dataclass(frozen=True, kw_only=True)
class PullRequest:
    """Where the comment goes. `repr` does not show the token."""

    api: str
    repository: str
    number: int
    token: str = field(repr=False)
    run: str = ""
    commit: str = ""


def pull_request(environment: Mapping[str, str]) -> PullRequest:
    """Return the pull request that GitHub's variables describe; all that is missing is reported together."""
    problems = [
        f"{name} must be set"
        for name in ("GITHUB_REPOSITORY", "GITHUB_TOKEN", "GITHUB_EVENT_PATH")
        if not environment.get(name)
    ]
    event: Mapping[str, Any] = {}
    if path := environment.get("GITHUB_EVENT_PATH"):
        try:
            event = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            problems.append(f"GITHUB_EVENT_PATH must name a JSON file ({error})")
    number = (event.get("pull_request") or {}).get("number")
    if event and not isinstance(number, int):
        problems.append("the event must be a pull request's")
    if problems:
        raise OpsError(f"comment: {'; '.join(problems)}. Run it in a job of a workflow on pull_request.")
    repository = environment["GITHUB_REPOSITORY"]
    server, run = environment.get("GITHUB_SERVER_URL"), environment.get("GITHUB_RUN_ID")
    return PullRequest(
        api=environment.get("GITHUB_API_URL") or "https://api.github.com",
        repository=repository,
        number=int(number or 0),
        token=environment["GITHUB_TOKEN"],
        run=f"{server}/{repository}/actions/runs/{run}" if server and run else "",
        commit=str((event["pull_request"].get("head") or {}).get("sha") or "")[:7],
    )


def body(text: str, to: PullRequest) -> str:
    """Return the comment's text: the mark, the report, and where it comes from."""
    of = f" of {to.commit}" if to.commit else ""
    source = f"\n\n[Run]({to.run}){of}. Each run replaces this comment." if to.run else ""
    return f"{MARK}\n{cut(text.strip(), _LENGTH_MAX - len(source), _NOTE)}{source}\n"


def write(text: str, to: PullRequest, pauses: RetryPauses | None = None) -> str:
    """Create the comment, or replace it if it exists, and return its address.

    Searching and writing are repeated together, so that an answer that got lost does not make a second comment.
    """
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {to.token}",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    with httpx.Client(base_url=to.api, headers=headers, timeout=TIMEOUT_S) as client:
        what = f"comment on pull request {to.number} (the job needs `pull-requests: write`)"
        answer = with_retries(lambda: _put(client, to, body(text, to)), what, pauses)
    return str(answer.get("html_url") or "")


def _put(client: httpx.Client, to: PullRequest, text: str) -> Mapping[str, Any]:
    present = next(_own(client, to), None)
    comments = f"/repos/{to.repository}/issues"
    if present is None:
        made: Mapping[str, Any] = request_json(client, "POST", f"{comments}/{to.number}/comments", json={"body": text})
        return made
    if present.get("body") == text:
        return present
    changed: Mapping[str, Any] = request_json(
        client, "PATCH", f"{comments}/comments/{present['id']}", json={"body": text}
    )
    return changed


def _own(client: httpx.Client, to: PullRequest) -> Iterator[Mapping[str, Any]]:
    """The comments that carry the mark and are a program's: anybody may write the mark into a comment of theirs."""
    page = 1
    while True:
        query = {"per_page": _PAGE, "page": page}
        found = request_json(client, "GET", f"/repos/{to.repository}/issues/{to.number}/comments", params=query)
        for comment in found:
            by = (comment.get("user") or {}).get("type")
            if by == "Bot" and str(comment.get("body") or "").startswith(MARK):
                yield comment
        if len(found) < _PAGE:
            return
        page += 1
