"""That the threads of Kafka's clients leave no arena of malloc each behind, in a process of its own."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

# Threads that allocate at the same time get an arena each, up to eight for a core.
ALLOCATING = """
import ctypes, sys, threading
from spark.audit.command import limit_arenas
if sys.argv[2] == "limited":
    limit_arenas()
libc, there = ctypes.CDLL(None), threading.Barrier(6)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
def allocate():
    there.wait()
    libc.malloc(10_000)
    there.wait()
threads = [threading.Thread(target=allocate) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="no glibc")
def test_threads_share_two_arenas(tmp_path: Path) -> None:
    arenas = {}
    for how in ("limited", "not limited"):
        subprocess.run([sys.executable, "-c", ALLOCATING, str(tmp_path / "info.xml"), how], check=True, timeout=60)
        arenas[how] = (tmp_path / "info.xml").read_text(encoding="utf-8").count("<heap nr=")
    assert arenas["limited"] <= 2 < arenas["not limited"]
