"""java.util.regex itself: what it says of many patterns at once, by one program in Java."""

import base64
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from .waiting import at_most

PROGRAM = Path(__file__).with_name("JavaPatterns.java")
WITHIN_S = at_most(240)
# A small program is over before an optimising compiler pays, and the JDK's own classes are what they were when built.
QUICK = (
    *("-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    *("-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),
)


def program() -> str | None:
    """Return the `java` of a JDK, which compiles its source; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found is None or not Path(found).exists():
        return None
    return found if "jdk.compiler@" in _modules(found) else None


@cache
def _modules(java: str) -> str:
    return subprocess.run([java, *QUICK, "--list-modules"], capture_output=True, text=True, check=False).stdout


def judged(java: str, cases: Iterable[tuple[str, Sequence[str]]]) -> list[list[bool] | str]:
    """Return for each pattern whether it matches each of its names, or why Java refuses it."""
    lines = (" ".join(_word(text) for text in (pattern, *names)) for pattern, names in cases)
    command = [java, *QUICK, "-Xss8m", str(PROGRAM)]
    done = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, encoding="utf-8", timeout=WITHIN_S, check=True
    )
    answers = done.stdout.split("\n")[:-1]
    return [line if line.startswith("refused") else [each == "1" for each in line] for line in answers]


def _word(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
