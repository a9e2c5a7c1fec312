"""A JVM that is killed, as by an OOM killer, or hangs: the run ends with one line and exit 2, and leaves nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

from ...support.spark_logs import SMALL, TRUSTED
from ..contract.test_request import ENVIRONMENT, GOOD

ROOT = Path(__file__).parents[3]
PROGRAM = """
import os, signal, sys
from functools import partial
from spark import command
from spark.comparison import comparer, spark_session
from spark.comparison.offset_ranges import OffsetRange

spark_session.CONNECTOR = ""
spark_session.REQUIRED |= SETTINGS
spark_session.session = partial(spark_session.session, stop_s=0.5, options=OPTIONS)

class Comparison:
    def __init__(self, reader, on_spark):
        self.spark = reader.spark

    def run(self, groups, say):
        pid = self.spark.sparkContext._gateway.proc.pid
        print(pid, flush=True)
        rows = self.spark.range(10)
        os.kill(pid, getattr(signal, sys.argv[1]))
        if sys.argv[1] == "SIGSTOP":
            signal.setitimer(signal.ITIMER_REAL, 1)  # the deadline is now
        rows.ACTION

def verify(context, environment, progress, *_, **__):
    context.stage = "comparing records"
    offsets = {"source_start": 0, "cut": 1, "source_end": 1, "target_start": 0, "target_end": 1}
    one = OffsetRange(topic="items", partition=0, target_topic="items", **offsets)
    with spark_session.SessionStart(environment, progress) as begun:
        one_run = comparer.Comparer(context.request, {comparer.ABOVE: "0"}, begun, ())
        return one_run.compare([one], [], {}, progress, None)

comparer.Comparison = Comparison
comparer.LocalFrames.take_late = lambda self, offset_ranges: set()  # there is no broker to ask
command.verify = verify
sys.exit(command.main(sys.argv[2:]))
"""


def run(
    folder: Path, spark_jvm: dict[str, str], name: str, action: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, object]]:
    """Run the command with a comparison that kills its JVM by its own pid; returns how it ended, and its report."""
    request, temporary = folder / "request.json", folder / "tmp"
    temporary.mkdir()
    request.write_text(json.dumps(GOOD | {"limits": {"deadline_seconds": 300}}))
    words = [name, "--request", str(request), "--report-dir", str(folder / "report")]
    program = PROGRAM.replace("SETTINGS", repr(SMALL)).replace("OPTIONS", repr(TRUSTED)).replace("ACTION", action)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RT_INVENTORY_SPARK_")}
    ended = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=ROOT,
        env={
            **environment,
            **ENVIRONMENT,
            **spark_jvm,
            "TMPDIR": str(temporary),
            "RT_INVENTORY_SPARK_MEMORY": "512m",
            "RT_INVENTORY_SPARK_CORES": "1",
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    pid = int(ended.stdout.splitlines()[0])
    assert not list(temporary.glob("rt-inventory-spark-*")), ended.stderr
    assert not Path(f"/proc/{pid}").exists()
    assert "Traceback" not in ended.stderr
    assert "Warning" not in ended.stderr
    return ended, json.loads((folder / "report" / "report.json").read_text())


def test_a_jvm_that_is_killed_ends_the_run_with_one_line_and_exit_2(tmp_path: Path, spark_jvm: dict[str, str]) -> None:
    ended, report = run(tmp_path, spark_jvm, "SIGKILL", "toArrow()")
    assert (ended.returncode, report["verdict"]) == (2, "error")
    reported = ended.stderr.splitlines()[-1]
    assert reported == report["error"]
    assert reported.startswith("Spark: its JVM must live until the end (got ended by SIGKILL).")
    assert "RT_INVENTORY_SPARK_MEMORY" in reported


def test_a_jvm_that_hangs_is_killed_after_the_deadline(tmp_path: Path, spark_jvm: dict[str, str]) -> None:
    ended, report = run(tmp_path, spark_jvm, "SIGSTOP", "count()")
    assert (ended.returncode, report["verdict"]) == (2, "error")
    assert "must end within 300 s (got no end while comparing records)" in ended.stderr.splitlines()[-1]
