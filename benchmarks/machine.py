"""The machine and the date of a measurement, and where its result is kept."""

import datetime
import json
import os
import platform
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

RESULTS = Path(__file__).resolve().parent / "results"
_MIB = 2**20


def describe() -> dict[str, Any]:
    """Processor, cores, memory, system and the load of the last 1, 5 and 15 minutes."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memoryGib": round(psutil.virtual_memory().total / _MIB / 1024),
        "system": f"{platform.system()} {platform.release()}",
        "loadAverage": [round(load, 2) for load in os.getloadavg()],
    }


def clean_up_when_told_to_stop() -> None:
    """From now on SIGTERM ends the program as Ctrl-C does: with everything that it started stopped and removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def today() -> str:
    """The date in UTC, as in 2026-11-21."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def keep(path: Path, document: Mapping[str, Any]) -> None:
    """Write a result where the next reader expects it, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
