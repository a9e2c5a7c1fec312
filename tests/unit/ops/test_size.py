"""`python -m ops size`: what it reads, what it says, what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from ops.cli import app
from settings.mirrors import Mirror
from settings.parsing import read

ROOT = Path(__file__).parents[3]
RUN = ["size", "--record-bytes", "1000", "--records-per-second", "20000", "--latency-ms", "40"]
SLOW = ["size", "--record-bytes", "1000", "--records-per-second", "1000", "--latency-ms", "40"]


def row(size: int, rate: float, cpu: float, tasks: int = 1) -> dict[str, Any]:
    return {"recordBytes": size, "tasks": tasks, "recordsPerSecond": rate, "cpuSecondsPer100kRecords": cpu}


@pytest.fixture
def measured(tmp_path: Path) -> str:
    """A result of the benchmark: 50 000 records of 1000 bytes a second, 20 us of CPU each."""
    machine = {"processor": "Test", "cores": 2, "loadAverage": [0.1, 0, 0]}
    document = {"date": "2026-01-31", "machine": machine, "versions": {"kafka": "4.3.1"}}
    path = tmp_path / "measured.json"
    path.write_text(json.dumps({**document, "mirror": [row(100, 100_000, 1), row(1000, 50_000, 2)]}))
    return str(path)


def call(*arguments: str, expect: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "250"})
    assert result.exit_code == expect, result.output
    return result.output


def as_json(*arguments: str, expect: int = 0) -> dict[str, Any]:
    output: dict[str, Any] = json.loads(call(*arguments, "--json", expect=expect))
    return output


def test_the_output_shows_every_step_and_the_measurement(measured: str) -> None:
    output = call(*RUN, "--partitions", "48", "--throughput-file", measured)
    for words in (
        "20000 records/s x catch-up factor 2",
        "measured 50000 records/s at 1000 bytes",
        "3 brokers x fetch of 16 partitions 16 MiB / (1 + fetch / TCP window 70.4 KiB) / 40 ms = 5.134 MiB/s",
        "48 partitions / 5 tasks: at most 10 a task",
        "(fetching over latency",
        "20.0 us of CPU = 0.80 cores",
        "measured.json of 2026-01-31: Kafka 4.3.1, Test, 2 cores",
        "sourceTasksMax: 5",
        "receive.buffer.bytes: -1",
    ):
        assert words in output


def test_the_printed_settings_are_settings_of_a_mirror(measured: str) -> None:
    path = ROOT / "Pulumi.stg.yaml"
    document = as_json(*RUN, "--stack-file", str(path), "--throughput-file", measured, "--compression-ratio", "4")
    declared = yaml.safe_load(path.read_text())["config"]["rt-inventory:mirrors"][0]
    mirror, problems = read(Mirror, {**declared, **document["settings"]}, "mirrors[0]", "mirror mm2")
    assert problems == []
    assert mirror is not None
    assert (mirror.name, mirror.source_tasks_max) == ("mm2", document["tasks"])
    assert mirror.producer["compression.type"] == "lz4"


def test_a_stack_file_gives_topics_partitions_and_brokers(measured: str) -> None:
    document = as_json(*SLOW, "--stack-file", str(ROOT / "Pulumi.stg.yaml"), "--throughput-file", measured)
    load = document["workload"]
    assert (load["topics"], load["partitions"], load["sourceBrokers"], load["targetBrokers"]) == (3, 9, 1, 3)


def test_a_mirrors_stack_file_gives_the_distance_unless_an_option_does(tmp_path: Path, measured: str) -> None:
    for name in ("dev", "stg"):
        text = (ROOT / f"Pulumi.{name}.yaml").read_text()
        (tmp_path / f"Pulumi.{name}.yaml").write_text(
            text.replace("alias: es-src", "alias: es-src\n        latencyMs: 70")
        )
    run = [*SLOW[:5], "--stack-file", str(tmp_path / "Pulumi.stg.yaml"), "--throughput-file", measured]
    assert as_json(*run)["workload"]["latencyMs"] == 70
    assert as_json(*run, "--latency-ms", "5")["workload"]["latencyMs"] == 5


def test_options_win_over_the_stack_file(measured: str) -> None:
    more = ("--partitions", "64", "--source-brokers", "5")
    document = as_json(*RUN, *more, "--stack-file", str(ROOT / "Pulumi.stg.yaml"), "--throughput-file", measured)
    assert (document["workload"]["partitions"], document["workload"]["sourceBrokers"]) == (64, 5)


def test_topics_that_the_mirror_does_not_copy_do_not_count(tmp_path: Path, measured: str) -> None:
    for name in ("dev", "stg"):
        text = (ROOT / f"Pulumi.{name}.yaml").read_text()
        assert name == "dev" or r"'items\.inventory', 'store\.inventory'" in text
        changed = text.replace(r", 'items\.inventory', 'store\.inventory'", "")
        (tmp_path / f"Pulumi.{name}.yaml").write_text(changed)
    document = as_json(*SLOW, "--stack-file", str(tmp_path / "Pulumi.stg.yaml"), "--throughput-file", measured)
    assert (document["workload"]["topics"], document["workload"]["partitions"]) == (1, 3)


def test_too_few_partitions_exit_with_1_and_say_how_many_are_needed(measured: str) -> None:
    arguments = [*RUN[:3], "--records-per-second", "200000", "--latency-ms", "0", "--partitions", "4"]
    document = as_json(*arguments, "--throughput-file", measured, expect=1)
    assert document["feasible"] is False
    assert any("partitions: must be at least 8 for this rate (got 4)" in words for words in document["advice"])


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    output = call(
        *("size", "--partitions", "many", "--record-bytes", "0", "--latency-ms", "nan", "--catch-up", "1"),
        *("--workers-at", "moon", "--broker-buffer-bytes", "0", "--mirror", "mm2", "--throughput-file"),
        str(tmp_path / "none.json"),
        expect=2,
    )
    for words in (
        "--partitions: must be a whole number from 1 to 1000000 (got 'many').",
        "--record-bytes: must be a whole number from 1 to 104857600 (got '0').",
        "--records-per-second: must be a number from 0.001 to 1e+09 (got nothing).",
        "--latency-ms: must be a number from 0 to 10000 (got 'nan').",
        "--catch-up: must be a number from 2 to 1000 (got '1').",
        "--workers-at: must be one of target, source (got 'moon').",
        "--broker-buffer-bytes: must be -1 (the system chooses) or a whole number >= 1024 (got '0').",
        "--mirror: must come with --stack-file.",
        "none.json: must be readable (No such file or directory). Run `python -m benchmarks.mirror_throughput`.",
    ):
        assert words in output


def test_more_topics_than_partitions_are_refused(measured: str) -> None:
    output = call(*RUN, "--partitions", "4", "--topics", "5", "--throughput-file", measured, expect=2)
    assert "--topics: must be <= --partitions (got 5, partitions 4)." in output


def test_a_mirror_that_the_file_does_not_declare_is_refused(measured: str) -> None:
    path = str(ROOT / "Pulumi.stg.yaml")
    output = call(*RUN, "--stack-file", path, "--mirror", "mm3", "--throughput-file", measured, expect=2)
    assert "(got 'mm3', allowed mm2)" in output


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "must be JSON"),
        ("{}", "must be a result of the benchmark (KeyError('mirror'))"),
        ('{"mirror": [{"tasks": 1, "recordBytes": 1, "recordsPerSecond": 0}]}', "ZeroDivisionError"),
    ],
)
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(content)
    assert words in call(*RUN, "--partitions", "4", "--throughput-file", str(path), expect=2)


def test_an_error_is_a_document_with_json(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*RUN, "--throughput-file", str(tmp_path / "none"), "--json"])
    assert "--partitions: must be" in json.loads(result.stdout)["error"]
