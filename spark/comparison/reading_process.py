"""Entry point of a process that reads for its parent: `python -m spark.comparison.reading_process PID`.

It runs until its standard input ends.
"""

import gc
import os
import pickle
import signal
import sys
import threading
import time

from contract.fields import VerificationError
from kafka.cluster import Cluster
from spark.comparison.reading import read_ranges
from spark.errors import SessionError

LOOK_S = 1.0
# Many processes fetch at once: as much as keeps one of them busy, in place of 64 MiB.
FETCHES = {"queued.max.messages.kbytes": 8192, "fetch.max.bytes": 8 * 1024 * 1024}


def main() -> int:
    """Answer each task on standard input, a pickled side, isolation and ranges; the answer is logs or an error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks for records ends this process
    threading.Thread(target=_follow, args=(int(sys.argv[1]),), daemon=True).start()
    gc.disable()  # messages are in no cycles: to look for some among them is a tenth of the work
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nobody's words may stand between the answers
    while True:
        try:
            side, isolation, ranges = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by our own process
        except EOFError:
            return 0
        answer: object
        try:
            answer = read_ranges(Cluster(side), isolation, ranges, lambda *_: None, FETCHES)
        except VerificationError as error:
            answer = error
        except Exception as error:
            answer = SessionError(f"a process that read records failed ({type(error).__name__})")
        pickle.dump(answer, answers, protocol=5)
        answers.flush()


def _follow(parent: int) -> None:
    """End this process, in the middle of a task too, soon after its parent was killed; it may be gone already."""
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
