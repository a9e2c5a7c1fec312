"""The index of runs: what it holds, what it survives, and how it is shown."""

import json
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from contract import files
from spark.command import main
from spark.report import html, index
from spark.report.index import RUNS_MAX, Run, merged, parse, run_of

from ...support import report_documents as made
from .test_report import Tree, words

BEGAN = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)


def document(number: int = 0, kind: str = "clean", **fields: Any) -> made.Document:
    """The report of the run that ended `number` hours later."""
    found: made.Document = getattr(made, kind)()
    moment = BEGAN + timedelta(hours=number)
    times = {"started_at": moment.isoformat(), "finished_at": (moment + timedelta(seconds=40)).isoformat()}
    return found | times | fields


def leave(folder: Path, result: made.Document, name: str) -> list[Run]:
    """What the end of a run does: its report, then its entry."""
    report = folder / name
    report.mkdir(parents=True, exist_ok=True)
    (report / "report.json").write_text(json.dumps(result))
    (report / "report.html").write_text("a page")
    return index.add(folder, result, report / "report.html")


def page(folder: Path) -> str:
    return (folder / "index.html").read_text(encoding="utf-8")


def test_a_run_is_listed_with_its_numbers_and_its_report(tmp_path: Path) -> None:
    leave(tmp_path, document(kind="faulty"), "stg/mm2")
    (entry,) = json.loads((tmp_path / "index.json").read_text())["runs"]
    assert (entry["verdict"], entry["stack"], entry["mirror"]) == ("fail", "stg", "mm2")
    assert (entry["source"], entry["target"]) == ("rt-inventory-dev", "rt-inventory-stg")
    assert entry["counted"] == {
        "lost": 1250, "skipped": 50, "altered": 3, "wrong_partition": 1, "out_of_order": 2, "foreign": 4
    }  # fmt: skip
    assert entry["report"] == "stg/mm2/report.html"
    text = words(page(tmp_path))
    assert "The mirror does not pass" in text
    assert "50 records skipped" in text
    assert 'href="stg/mm2/report.html"' in page(tmp_path)


def test_runs_come_newest_first_and_each_mirror_by_its_latest(tmp_path: Path) -> None:
    leave(tmp_path, document(2, "faulty"), "a")
    leave(tmp_path, document(5), "b")
    leave(tmp_path, document(3, mirror="retail", stack="prod"), "c")
    runs = leave(tmp_path, document(1), "d")
    assert [run.report[0] for run in runs] == ["b", "c", "a", "d"]
    text = words(page(tmp_path))
    assert "All 2 mirrors pass" in text
    assert text.index("2026-01-02 08:00:40 mm2") < text.index("2026-01-02 06:00:40 retail")


def test_a_report_that_was_replaced_or_deleted_is_not_linked(tmp_path: Path) -> None:
    for number in range(3):
        leave(tmp_path, document(number), "stg/mm2")
    leave(tmp_path, document(9), "old")
    (tmp_path / "old" / "report.html").unlink()
    leave(tmp_path, document(10), "new")
    assert page(tmp_path).count('href="stg/mm2/report.html"') == 1
    assert 'href="old/' not in page(tmp_path)
    assert words(page(tmp_path)).count("gone") == 3


def test_a_run_that_could_not_judge_is_listed_without_numbers(tmp_path: Path) -> None:
    (run,) = leave(tmp_path, document(kind="stopped"), "x")
    assert (run.verdict, run.records_compared, run.lag_records) == ("error", None, None)
    assert "nothing was judged" in words(page(tmp_path))


def test_lines_are_drawn_where_values_differ_and_stand_on_zero(tmp_path: Path) -> None:
    for number in range(4):
        leave(tmp_path, document(number, records_compared=1000 * (number + 1)), f"r{number}")
    shown = page(tmp_path)
    assert 'aria-label="Verdicts, oldest first: pass, pass, pass, pass"' in shown
    assert shown.count('class="spark"') == 1, "the other values are all alike"
    assert "records compared in 4 runs: from 1\N{NARROW NO-BREAK SPACE}000 to 4\N{NARROW NO-BREAK SPACE}000" in shown
    points = html.sparkline([0, 50, 100])
    assert points == f"0.0,{html.SPARK_HEIGHT:.1f} 60.0,{html.SPARK_HEIGHT / 2:.1f} 120.0,0.0"
    assert html.sparkline([5, 5, 5, 5]) is html.sparkline([1, 9]) is None


def test_only_the_latest_runs_are_kept(tmp_path: Path) -> None:
    runs = [run_of(document(number), f"{number}") for number in range(RUNS_MAX + 7)]
    kept = merged(runs)
    assert len(kept) == RUNS_MAX
    assert (kept[0].report, kept[-1].report) == (str(RUNS_MAX + 6), "7")


def test_without_an_index_it_is_made_of_the_reports_that_lie_there(tmp_path: Path) -> None:
    for number, name in enumerate(("stg/mm2", "stg-mm2-20260102T030000Z", "pipeline/stg-mm2")):
        leave(tmp_path, document(number), name)
    for broken, text in {
        "empty": "", "list": "[]", "half": '{"verdict": "pass", "mirr', "other": '{"verdict": "pass"}',
        "numbers": json.dumps(document() | {"seconds": "soon"}), "deep": "[" * 100_000,
        "wrong": json.dumps(document() | {"checks": 3}), "time": json.dumps(document() | {"finished_at": "today"}),
    }.items():  # fmt: skip
        (tmp_path / broken).mkdir()
        (tmp_path / broken / "report.json").write_text(text)
    (tmp_path / "folder" / "report.json").mkdir(parents=True)
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "report.json").symlink_to("/dev/zero")
    for lost in ("index.json", "index.html"):
        (tmp_path / lost).unlink()
    runs = leave(tmp_path, document(7), "last")
    assert [run.report for run in runs] == [
        "last/report.html", "pipeline/stg-mm2/report.html", "stg-mm2-20260102T030000Z/report.html",
        "stg/mm2/report.html",
    ]  # fmt: skip


@pytest.mark.parametrize("damage", ["", "{", '{"version": 1}', '{"version": 99, "runs": []}', '{"runs": 3}'])
def test_an_index_that_is_damaged_is_made_anew(tmp_path: Path, damage: str) -> None:
    leave(tmp_path, document(1), "a")
    (tmp_path / "index.json").write_text(damage)
    assert [run.report[0] for run in leave(tmp_path, document(2), "b")] == ["b", "a"]


def test_an_entry_that_is_damaged_takes_no_other_with_it(tmp_path: Path) -> None:
    leave(tmp_path, document(1), "a")
    leave(tmp_path, document(2), "b")
    known = json.loads((tmp_path / "index.json").read_text())
    known["runs"][0]["seconds"] = None
    known["runs"] += [7, None, {}, {"verdict": ["pass"]}]
    (tmp_path / "index.json").write_text(json.dumps(known))
    assert [run.report[0] for run in leave(tmp_path, document(3), "c")] == ["c", "a"]


@pytest.mark.parametrize(
    ("name", "text"), [("index.html", "<h1>Somebody's site</h1>"), ("index.json", '{"pages": []}')]
)
def test_somebody_elses_file_is_not_replaced(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(OSError, match=f"{name} must be an index of runs"):
        leave(tmp_path, document(), "a")
    assert (tmp_path / name).read_text() == text


def test_runs_that_end_at_the_same_time_lose_no_entry_and_readers_see_whole_files(tmp_path: Path) -> None:
    leave(tmp_path, document(0), "r0")
    done, torn = threading.Event(), list[str]()

    def look() -> None:
        while not done.is_set():
            try:
                json.loads((tmp_path / "index.json").read_text())
            except ValueError as error:
                torn.append(str(error))
            if not page(tmp_path).rstrip().endswith("</html>"):
                torn.append("page")
            done.wait(0.005)

    reader = threading.Thread(target=look)
    reader.start()
    try:
        # A lock is of the open file: threads that open it keep each other out as processes do.
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda number: leave(tmp_path, document(number), f"r{number}"), range(1, 13)))
    finally:
        done.set()
        reader.join()
    assert torn == []
    assert len(json.loads((tmp_path / "index.json").read_text())["runs"]) == 13
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["index.html", "index.json"]


def test_an_index_that_another_run_does_not_leave_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LOCK_S", 0.2)
    with files.alone_in(tmp_path), pytest.raises(OSError, match="another process writes there for"):
        leave(tmp_path, document(), "a")


def test_names_of_others_are_escaped_and_lead_nowhere_else(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\x1b[31m"
    leave(tmp_path, document(mirror=evil, stack=evil), "a b")
    known = json.loads((tmp_path / "index.json").read_text())
    known["runs"].append(known["runs"][0] | {"report": "javascript:alert(1)", "failed": [evil], "counted": {evil: 1}})
    known["runs"].append(known["runs"][0] | {"report": "\ud800/\0"})
    (tmp_path / "index.json").write_text(json.dumps(known))
    leave(tmp_path, document(3), "c")
    shown = page(tmp_path)
    assert "<script" not in shown
    assert "\x1b" not in shown
    assert "javascript:" not in shown
    assert 'href="a%20b/report.html"' in shown
    assert "://" not in shown
    Tree(shown)


def test_an_entry_is_read_as_it_was_written() -> None:
    run = run_of(document(kind="faulty"), "r/report.html")
    again = parse(json.loads(json.dumps(vars(run))))
    assert again == run


@pytest.fixture
def own_signals() -> Iterator[None]:
    """The command ignores signals at its end; whatever this process starts later must not."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("own_signals")
def test_the_command_lists_the_run_and_one_that_cannot_be_listed_keeps_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = tmp_path / "request.json"
    request.write_text('{"stack": "stg", "mirror": {"name": "mm2"}, "source": {"cluster": "kafka-dev"}}')
    reports = tmp_path / "reports"
    arguments = ["--request", str(request), "--report-dir", str(reports / "run"), "--index", str(reports)]
    assert main(arguments) == 2
    (entry,) = json.loads((reports / "index.json").read_text())["runs"]
    assert (entry["verdict"], entry["mirror"], entry["source"]) == ("error", "mm2", "kafka-dev")
    assert 'href="../index.html">All runs' in (reports / "run" / "report.html").read_text()
    (reports / "index.html").write_text("another page")
    capsys.readouterr()
    assert main(arguments) == 2
    assert "index.html must be an index of runs (got another file)" in capsys.readouterr().err
