"""The archive of classes from which Spark's JVM starts in a good half of the time, made once for each environment.

The set-up leaves it out, because making it takes as long as ten starts of Spark without it. `sandbox up` makes it in
the background, and the benchmark of the verification before it measures.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from . import java, maven
from .cache import Entry, fingerprint, key_of
from .commands import Commands
from .place import Place
from .steps import Step

SEEN = "made-for"
NAME = "spark-classes"


def entry(place: Place) -> Entry:
    """The cache entry: the JVM's archive names the jars by their paths, so that each environment has its own."""
    return place.entry(NAME, key_of(str(place.venv_python)))


def archive(place: Place) -> Path:
    """The archive's file. A JVM that can keep no classes leaves none; everything works without."""
    return entry(place).path / "classes.jsa"


def step(place: Place) -> Step:
    """Runs a small job once and keeps the classes that it loaded; again when Java, PySpark or the jars change."""

    def run(commands: Commands) -> None:
        environment = {
            "JAVA_HOME": str(java.home_of(_java(place))),
            "RT_INVENTORY_SPARK_JARS": str(maven.spark(place).path / maven.LIBS),
        }
        with entry(place).build() as folder:
            made = folder / archive(place).name
            commands.run(
                [place.venv_python, "-m", "spark.class_archive", "--out", made], cwd=place.project, env=environment
            )
            (folder / SEEN).write_text(_seen(place), encoding="utf-8")

    return Step(
        name=NAME,
        title="Spark's classes for a quick start",
        is_done=lambda: entry(place).is_complete() and _noted(place) == _seen(place),
        run=run,
        needs=("venv", "java", "spark"),
        disk_mib=180,
        is_deferred=True,
    )


def make_in_background(place: Place) -> bool:
    """Start a process that makes the archive and outlives this one, unless it is there; returns whether it was started.

    Two such processes at once make it once, and one that is killed leaves nothing: it is a set-up of this step alone.
    """
    if step(place).is_done() or not place.venv_python.exists():
        return False
    place.logs.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "sandbox.toolchain", "ensure", "--only", NAME]
    if nice := shutil.which("nice"):
        command = [nice, "-n", "19", *command]
    with (place.logs / f"{NAME}-in-background.log").open("wb") as log:
        subprocess.Popen(  # nobody waits for it
            command,
            cwd=place.project,
            env=dict(place.environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return True


def _java(place: Place) -> Path:
    return java.running_java(place) or java.fetched_java(place)


def _noted(place: Place) -> str:
    try:
        return (entry(place).path / SEEN).read_text(encoding="utf-8")
    except OSError:
        return ""


def _seen(place: Place) -> str:
    """What the archive holds for; a JVM passes over one that was made for something else."""
    program = _java(place).resolve()
    cores = sorted(place.venv_python.parent.parent.glob("lib/python3*/site-packages/pyspark/jars/spark-core_*.jar"))
    jars = [f"{jar} {fingerprint(jar)}" for jar in cores]
    return "\n".join([f"{program} {fingerprint(program)}", *jars, str(maven.spark(place).path)])
