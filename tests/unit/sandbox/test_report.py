"""The table of `sandbox status`: names in one piece at 80 columns, everything where there is room."""

import io

from rich.console import Console

from sandbox.__main__ import PROCESS_KINDS, ProcessRow, status_table

BROKER = "kafka.rt-inventory-stg.rt-inventory-stg.0"


def rows() -> list[ProcessRow]:
    ports = [29530, 29534, 29572, 29592, 29594]
    names = ("plane", "operator", BROKER, BROKER[:-1] + "1")
    return [
        ProcessRow(name, *PROCESS_KINDS[name.split(".")[0]], "running, held", 1234567, 1024, ports) for name in names
    ]


def shown(width: int) -> list[str]:
    written = io.StringIO()
    Console(file=written, width=width).print(status_table(rows(), width))
    return written.getvalue().splitlines()


def test_at_80_columns_names_are_whole_and_each_kind_is_explained_once() -> None:
    lines = shown(80)
    assert max(map(len, lines)) <= 80
    assert any(line.startswith(BROKER) and "1234567" in line for line in lines)
    assert [line.split(":")[0] for line in lines if ": " in line] == ["plane", "operator", "kafka"]


def test_a_wide_terminal_shows_ports_and_explanations_beside_the_names() -> None:
    line = next(line for line in shown(240) if line.startswith(BROKER))
    assert "29530 29534 29572 29592 29594" in line
    assert PROCESS_KINDS["kafka"][1] in line
