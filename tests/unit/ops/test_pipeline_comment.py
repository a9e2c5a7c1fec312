"""The pull request's comment against a server that behaves as GitHub's API: created once, then replaced."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ops.errors import OpsError
from ops.pipeline import comment
from ops.pipeline.comment import MARK, PullRequest, pull_request, write
from ops.pipeline.identity import RetryPauses
from tests.support.make_targets import make

TOKEN = "token-of-the-job-4711"
AT_ONCE = RetryPauses(first_s=0.0, longest_s=0.01)
Comment = dict[str, Any]


@dataclass
class GitHub:
    """The comments of one pull request, the requests that came, and answers to give before the right ones."""

    url: str = ""
    comments: list[Comment] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    lose_the_next_answer: bool = False

    def by(self, type_: str, body: str) -> Comment:
        number = len(self.comments) + 1
        made = {"id": number, "body": body, "user": {"type": type_}, "html_url": f"https://github/comments/{number}"}
        self.comments.append(made)
        return made

    def target(self) -> PullRequest:
        return PullRequest(
            api=self.url, repository="acme/kafka", number=7, token=TOKEN, run="https://run/1", commit="c0ffee1"
        )


def handler(github: GitHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def refused(self) -> bool:
            github.requests.append(self.command)
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                self.answer(401, {"message": "Bad credentials"})
            elif github.answers:
                status, headers = github.answers.pop(0)
                self.answer(status, {"message": "not now"}, headers)
            else:
                return False
            return True

        def do_GET(self) -> None:
            if self.refused():
                return
            url = urlsplit(self.path)
            assert url.path == "/repos/acme/kafka/issues/7/comments"
            query = parse_qs(url.query)
            size, page = int(query["per_page"][0]), int(query["page"][0])
            self.answer(200, github.comments[(page - 1) * size : page * size])

        def do_POST(self) -> None:
            body = self.body()
            if self.refused():
                return
            made = github.by("Bot", body)
            if github.lose_the_next_answer:
                github.lose_the_next_answer = False
                self.answer(502, {"message": "bad gateway"})
            else:
                self.answer(201, made)

        def do_PATCH(self) -> None:
            body = self.body()
            if self.refused():
                return
            number = int(self.path.rsplit("/", 1)[1])
            github.comments[number - 1]["body"] = body
            self.answer(200, github.comments[number - 1])

        def body(self) -> str:
            text: str = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
            return text

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def github() -> Iterator[GitHub]:
    made = GitHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(made))
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    thread.join(10)


def test_the_first_run_makes_the_comment_and_the_next_writes_it_anew(github: GitHub) -> None:
    address = write("one", github.target())
    assert address == "https://github/comments/1"
    assert github.comments[0]["body"].startswith(f"{MARK}\none\n\n[Run](https://run/1) of c0ffee1.")
    assert write("two", github.target()) == address
    assert len(github.comments) == 1
    assert "two" in github.comments[0]["body"]
    assert "one" not in github.comments[0]["body"]


def test_the_same_text_is_not_written_again(github: GitHub) -> None:
    write("one", github.target())
    write("one", github.target())
    assert "PATCH" not in github.requests


def test_the_comment_is_found_behind_many_others(github: GitHub) -> None:
    for number in range(230):
        github.by("User", f"comment {number}")
    write("one", github.target())
    write("two", github.target())
    assert len(github.comments) == 231


def test_a_comment_in_which_somebody_wrote_the_mark_is_left_alone(github: GitHub) -> None:
    theirs = github.by("User", f"{MARK}\ntheirs")
    quoting = github.by("Bot", f"as said before: {MARK}")
    write("one", github.target())
    assert (theirs["body"], quoting["body"]) == (f"{MARK}\ntheirs", f"as said before: {MARK}")
    assert len(github.comments) == 3


@pytest.mark.parametrize("answer", [(502, {}), (429, {}), (403, {"retry-after": "1"})])
def test_what_passes_by_itself_is_tried_again(github: GitHub, answer: tuple[int, dict[str, str]]) -> None:
    github.answers = [answer, answer]
    write("one", github.target(), AT_ONCE)
    assert len(github.comments) == 1


def test_a_lost_answer_makes_no_second_comment(github: GitHub) -> None:
    github.lose_the_next_answer = True
    write("one", github.target(), AT_ONCE)
    assert len(github.comments) == 1


def test_what_does_not_pass_is_one_message_without_the_token(github: GitHub) -> None:
    github.answers = [(403, {})]
    with pytest.raises(OpsError, match=r"pull request 7 .*`pull-requests: write`.*got 403 .*not now") as refused:
        write("one", github.target(), AT_ONCE)
    assert len(github.requests) == 1
    assert TOKEN not in str(refused.value) + repr(github.target())
    github.answers = [(503, {})] * 9
    with pytest.raises(OpsError, match="503"):
        write("one", github.target(), AT_ONCE)
    assert len(github.requests) == 1 + 5


def test_a_server_that_is_not_there_is_one_message() -> None:
    nowhere = PullRequest(api="http://127.0.0.1:9", repository="acme/kafka", number=7, token=TOKEN)
    with pytest.raises(OpsError, match=r"must be reachable \(ConnectError\)"):
        write("one", nowhere, AT_ONCE)


def test_a_text_that_is_too_long_is_cut_and_says_so(github: GitHub) -> None:
    write("| a line of a table |\n" * 5_000, github.target())
    body = github.comments[0]["body"]
    assert len(body) < 65_536
    assert comment._NOTE in body
    assert body.rstrip().endswith("Each run replaces this comment.")


def event(folder: Path, **content: Any) -> Path:
    file = folder / "event.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def test_everything_that_is_missing_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(OpsError) as missing:
        pull_request({"GITHUB_EVENT_PATH": str(event(tmp_path, ref="refs/heads/main"))})
    message = str(missing.value)
    assert "GITHUB_REPOSITORY must be set; GITHUB_TOKEN must be set; the event must be a pull request's" in message


def test_the_target_writes_the_comment_of_the_event(github: GitHub, tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    environment = {
        "PATH": "/usr/bin:/bin",
        "GITHUB_API_URL": github.url,
        "GITHUB_REPOSITORY": "acme/kafka",
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_EVENT_PATH": str(event(tmp_path, pull_request={"number": 7, "head": {"sha": "c0ffee1234"}})),
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_RUN_ID": "1",
    }
    before = make("comment", f"DOCUMENTS={documents}", environment=environment)
    assert before.returncode == 2
    assert "must have a diff" in before.stderr
    preview = {"stack": "stg", "changes": [], "findings": [], "exceptions": [], "summary": {"passed": True}}
    (documents / "preview-stg.json").write_text(json.dumps(preview), encoding="utf-8")
    (documents / "preview-dev.json").write_text("{", encoding="utf-8")
    result = make("comment", f"DOCUMENTS={documents}", environment=environment)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "https://github/comments/1\n"
    body = github.comments[0]["body"]
    assert "| stg | none | passed |" in body
    assert "| dev | preview failed | not judged |" in body
    assert "[Run](https://github.example/acme/kafka/actions/runs/1) of c0ffee1." in body
    assert TOKEN not in body + result.stdout + result.stderr
