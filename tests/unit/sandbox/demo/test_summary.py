"""What the demo counts: by record ids, over both sides."""

import io
from pathlib import Path

from rich.console import Console

from sandbox.demo import measurements
from sandbox.demo.measurements import count_records

IDS = [f"r{number}" for number in range(10)]


def test_a_clean_failover_loses_and_repeats_nothing() -> None:
    outcome = count_records(IDS, IDS, IDS[:4], IDS[4:])
    assert (outcome.lost, outcome.repeated, outcome.replicated, outcome.nothing_lost) == (0, 0, 10, True)


def test_a_record_that_the_group_never_saw_is_lost() -> None:
    outcome = count_records(IDS, IDS, IDS[:4], IDS[5:])
    assert (outcome.lost, outcome.nothing_lost) == (1, False)


def test_a_record_read_on_both_sides_or_twice_on_one_is_repeated() -> None:
    assert count_records(IDS, IDS, IDS[:4], IDS[2:]).repeated == 2
    assert count_records(IDS, IDS, IDS[:4], [*IDS[4:], "r9"]).repeated == 1


def test_a_record_missing_at_the_target_is_not_replicated_and_the_outcome_is_not_clean() -> None:
    outcome = count_records(IDS, IDS[1:], IDS[:4], IDS[4:])
    assert (outcome.replicated, outcome.lost, outcome.nothing_lost) == (9, 0, False)


def test_records_of_others_at_the_target_do_not_stand_in_for_ours() -> None:
    assert count_records(IDS, [*IDS[1:], "foreign"], IDS, []).replicated == 9


def test_nothing_produced_proves_nothing() -> None:
    assert not count_records([], [], [], []).nothing_lost


def test_ids_are_read_from_the_lines_that_the_clients_write(tmp_path: Path) -> None:
    file = tmp_path / "keys.tsv"
    file.write_text("0\t1\tr1\n2\t7\t\n")
    assert measurements.read_ids(file) == ["r1", ""]


def test_the_table_shows_every_figure() -> None:
    summary = measurements.summary_document(
        count_records(IDS, IDS, IDS[:4], IDS[3:]),
        {"sandbox up": 1.5, "verify": 2.0},
        resident_mib=1234,
        verdict="pass",
        report="/r/report.html",
    )
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(measurements.summary_table(summary))
    shown = console.export_text()
    assert all(figure in shown for figure in ("3.5 s", "1,234 MiB", "sandbox up", "lost", "pass"))
