"""The session that starts in the background, and what `spark-submit` starts: the package out of a zip."""

import io
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from spark.comparison import session_end, spark_session
from spark.comparison.reading import SessionError
from spark.comparison.spark_session import SessionStart
from spark.progress import Progress


class Sessions:
    """Stands for `session`: notes what was started and stopped."""

    def __init__(self) -> None:
        self.reported: list[str] = []
        self.go = threading.Event()
        self.leave = threading.Event()
        self.leave.set()

    @contextmanager
    def __call__(self, environment: Mapping[str, str], *, small: bool) -> Iterator[str]:
        self.go.wait(10)
        self.reported.append(f"started {'small' if small else 'large'}")
        yield "session"
        self.leave.wait(10)
        self.reported.append("stopped")


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Sessions:
    made = Sessions()
    monkeypatch.setattr(spark_session, "session", made)
    monkeypatch.setattr(spark_session, "warm", lambda _spark: made.reported.append("warm"))
    return made


def test_a_session_begins_in_the_background_and_is_warm_when_it_is_asked_for(sessions: Sessions) -> None:
    progress = Progress(io.StringIO())
    with SessionStart({}, progress) as begun:
        warm = begun.begin(small=True)
        assert sessions.reported == []
        sessions.go.set()
        warm.result(10)
        assert begun.session(small=False) == "session"  # type: ignore[comparison-overlap]  # it stands for one
        assert sessions.reported == ["started small", "warm"]
    assert sessions.reported[-1] == "stopped"
    assert [step["step"] for step in progress.steps] == ["start Spark", "warm Spark up"]


def test_a_session_that_is_waited_for_is_not_warmed_up_first(sessions: Sessions) -> None:
    progress = Progress(io.StringIO())
    with SessionStart({}, progress) as begun:
        threading.Timer(0.2, sessions.go.set).start()
        begun.session(small=False)
        assert sessions.reported == ["started large"]
    assert [step["step"] for step in progress.steps] == ["start Spark"]


def test_a_run_that_ends_before_its_session_started_stops_it_unwarmed(sessions: Sessions) -> None:
    with SessionStart({}, Progress(io.StringIO())) as begun:
        begun.begin(small=False)
        threading.Timer(0.2, sessions.go.set).start()
    assert sessions.reported == ["started large", "stopped"]


def test_the_last_parts_of_a_run_do_not_wait_for_the_end_of_its_session(sessions: Sessions) -> None:
    sessions.go.set()
    sessions.leave.clear()
    with SessionStart({}, Progress(io.StringIO())) as begun:
        begun.session(small=False)
        ended = begun.end()
        assert not ended.done()
        assert "stopped" not in sessions.reported
        sessions.leave.set()
    assert ended.done()
    assert sessions.reported == ["started large", "stopped"]


def test_a_run_without_records_starts_none(sessions: Sessions) -> None:
    with SessionStart({}, Progress(io.StringIO())):
        pass
    assert sessions.reported == []


def test_a_session_that_does_not_start_is_an_error_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_environment: Mapping[str, str], *, small: bool) -> AbstractContextManager[str]:
        raise SessionError("Spark: must start (got nothing).")

    monkeypatch.setattr(spark_session, "session", refused)
    with SessionStart({}, Progress(io.StringIO())) as begun:
        begun.begin(small=True)
        with pytest.raises(SessionError, match="must start"):
            begun.session(small=True)


def test_a_jvm_whose_session_is_over_is_killed_and_waited_for() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        session_end.kill_jvm(SimpleNamespace(proc=process))
        assert process.returncode == -signal.SIGKILL
    session_end.kill_jvm(SimpleNamespace())  # a gateway to a JVM that is not ours


ROOT = Path(__file__).parents[3]
READ_TEMPLATE = (
    "from spark.report import html; print(html.__file__, html.templates().get_template('report.html.j2').name)"
)


def zipped(folder: Path) -> str:
    return str(spark_session.archive(folder))


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command, environment = [sys.executable, *words], {"PATH": "/usr/bin:/bin", "PYTHONPATH": zipped(folder)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_package_runs_out_of_a_zip_with_its_templates(tmp_path: Path) -> None:
    result = python(tmp_path, "-c", READ_TEMPLATE)
    assert f"{tmp_path}/verification.zip/spark/report/html.py report.html.j2" in result.stdout, result.stderr


def test_an_entry_file_elsewhere_finds_the_package(tmp_path: Path) -> None:
    entry = shutil.copy(ROOT / "spark" / "__main__.py", tmp_path / "entry.py")
    result = python(tmp_path, str(entry), "--request", "none.json", "--report-dir", "reports")
    assert result.returncode == 2
    assert "none.json" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_process_that_spark_submit_started_is_known_by_its_gateway() -> None:
    assert spark_session.is_submitted({"PYSPARK_GATEWAY_PORT": "1"})
    assert not spark_session.is_submitted({})
