"""That the threads of Kafka's clients leave no arena of malloc each behind, in a process of its own."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

# Threads that allocate at the same time get an arena each, up to eight for a core.
ALLOCATING = """
import ctypes, os, sys, threading
from spark.audit.command import limit_arenas
file, limited = sys.argv[1], os.fork() == 0  # two processes that have imported the same
if limited:
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
info = ctypes.c_void_p(libc.fopen(f"{file}{limited}".encode(), b"w"))
libc.malloc_info(0, info)
libc.fclose(info)
if not limited:
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="no glibc")
def test_threads_share_two_arenas(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", ALLOCATING, str(tmp_path / "limited-")], check=True, timeout=60)
    arenas = [(tmp_path / f"limited-{how}").read_text(encoding="utf-8").count("<heap nr=") for how in (True, False)]
    assert arenas[0] <= 2 < arenas[1]
