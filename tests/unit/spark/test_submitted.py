"""The package as `spark-submit` may get it: a zip beside an entry file that lies elsewhere."""

import shutil
import subprocess
import sys
from pathlib import Path

from spark.comparison import spark_session

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
