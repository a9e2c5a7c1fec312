"""The image of the verification, as far as it can be judged without building it, and its layout in a folder."""

import hashlib
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from components.verification import pods
from settings.verification import SPARK_VERSION

from ...test_imports import ALLOWED, JOB

ROOT = Path(__file__).parents[3]
IMAGE = ROOT / "images" / "verification"
JARS = IMAGE / "jars.txt"
BUILDS = "setuptools"  # PySpark, which comes as source alone
BROUGHT = {"py4j", "botocore", "urllib3", "pydantic_core"}  # by pyspark, boto3, kubernetes and pydantic
PIN = re.compile(r"^([A-Za-z0-9_.-]+)==(\S+)$", re.MULTILINE)
FAKE = '#!/bin/sh\nfor word do echo "$word"; done\n'


def instructions() -> list[tuple[str, str]]:
    """Instructions and their arguments, comments left out and continued lines joined."""
    lines = [line for line in (IMAGE / "Dockerfile").read_text("utf-8").splitlines() if not line.startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in whole.splitlines() if line)]


def arguments() -> dict[str, str]:
    """Build arguments with their defaults; empty for those that must be given."""
    found = (rest.partition("=") for word, rest in instructions() if word == "ARG")
    return {name: default for name, _, default in found}


def sources() -> list[str]:
    """What is copied out of the project, or as it is given, without what other stages give."""
    copies = [rest.split() for word, rest in instructions() if word == "COPY"]
    return [word for words in copies if "--from=" not in words[0] for word in words[:-1] if not word.startswith("--")]


def packages() -> set[str]:
    return set((IMAGE / "packages.txt").read_text("utf-8").split())


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    texts = ((ROOT / name).read_text("utf-8") for name in ("requirements.txt", "constraints.txt"))
    return {normal(name): version for text in texts for name, version in PIN.findall(text)}


def test_images_and_downloads_are_pinned() -> None:
    found = arguments()
    assert found["REGISTRY"] == found["MAVEN_URL"] == ""
    assert re.fullmatch(r"3\.11\.\d+", found["PYTHON_VERSION"])
    assert re.fullmatch(r"17\.0\.\d+_\d+", found["JAVA_VERSION"])
    assert {rest.split()[0] for word, rest in instructions() if word == "FROM"} == {"${BASE_IMAGE}", "${JAVA_IMAGE}"}
    assert all(found[name].startswith("${REGISTRY}/") for name in ("BASE_IMAGE", "JAVA_IMAGE"))
    assert not [rest for word, rest in instructions() if word == "ADD"], "buildah before 1.33 checks no checksum"
    assert all(re.fullmatch(r"[0-9a-f]{64}  [\w./-]+\.jar", line) for line in JARS.read_text("utf-8").splitlines())


def test_spark_and_its_connector_are_of_the_version_that_the_project_pins() -> None:
    assert pins()["pyspark"] == SPARK_VERSION
    assert f"/spark-sql-kafka-0-10_2.13-{SPARK_VERSION}.jar\n" in JARS.read_text("utf-8")
    assert f"on Spark {SPARK_VERSION}" in (IMAGE / "Dockerfile").read_text("utf-8")


def test_it_installs_what_the_job_may_import_what_spark_needs_for_arrow_and_nothing_else() -> None:
    # Of this extra Spark imports pandas itself, before it hands batches to a function in Python.
    wanted = [each for each in metadata.requires("pyspark") or [] if 'extra == "sql"' in each]
    extra = {re.split(r"[ ;<>=!~\[(]", each, maxsplit=1)[0] for each in wanted}
    assert "pandas" in extra
    imported = set[str]().union(*(ALLOWED[package] for package in JOB)) | extra
    assert packages() == {normal(name) for name in imported - BROUGHT - {*JOB}} | {BUILDS}


def test_everything_that_is_installed_is_pinned() -> None:
    pending, seen = sorted(packages()), set[str]()
    while pending:
        name = normal(pending.pop())
        if name in seen:
            continue
        seen.add(name)
        for requirement in metadata.requires(name) or []:
            if "extra ==" not in requirement and "python_version <" not in requirement.replace('"', ""):
                pending.append(re.split(r"[ ;<>=!~\[(]", requirement, maxsplit=1)[0])
    assert {name for name in seen if name not in pins()} == set()
    assert seen >= {normal(name) for name in BROUGHT}


def test_it_does_not_run_as_root() -> None:
    assert [rest for word, rest in instructions() if word == "USER"] == [str(pods.USER)]


def test_no_file_of_the_image_holds_a_secret_or_a_place_for_one() -> None:
    for path in IMAGE.iterdir():
        assert not re.search(r"(password|secret|token)\s*[=:]\s*\S", path.read_text("utf-8"), re.IGNORECASE), path
    assert not any(re.search("password|token|key", name, re.IGNORECASE) for name in arguments())


def test_everything_that_is_copied_is_there_and_goes_to_the_builder() -> None:
    shown = {
        line.removeprefix("!")
        for line in (IMAGE / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }
    for source in sources():
        assert (ROOT / source).exists(), source
        assert source in shown or str(Path(source).parent) in shown, source
    assert shown == {"images/verification", "contract", "kafka", "spark"}


@pytest.fixture
def maven(tmp_path: Path) -> Path:
    """A folder laid out as Maven Central with one jar, and the list that names it."""
    jar = tmp_path / "maven" / "org" / "acme" / "one-1.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"one")
    (tmp_path / "jars.txt").write_text(f"{hashlib.sha256(b'one').hexdigest()}  org/acme/one-1.jar\n", encoding="utf-8")
    (tmp_path / "jars").mkdir()
    return tmp_path


def fetch(maven: Path, url: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, IMAGE / "fetch_jars.py", maven / "jars.txt", url, maven / "jars"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_jars_are_downloaded_as_listed(maven: Path) -> None:
    assert fetch(maven, f"{(maven / 'maven').as_uri()}/").returncode == 0
    assert [(file.name, file.read_bytes()) for file in (maven / "jars").iterdir()] == [("one-1.jar", b"one")]


def test_a_jar_with_another_checksum_is_refused(maven: Path) -> None:
    (maven / "maven" / "org" / "acme" / "one-1.jar").write_bytes(b"two")
    result = fetch(maven, (maven / "maven").as_uri())
    assert result.returncode == 1
    assert "one-1.jar: SHA-256 must be " in result.stderr
    assert f"(got {hashlib.sha256(b'two').hexdigest()})" in result.stderr
    assert not [*(maven / "jars").iterdir()]


def test_a_server_that_is_not_given_or_has_no_jar_is_reported(maven: Path) -> None:
    assert "MAVEN_URL must be given: --build-arg MAVEN_URL=" in fetch(maven, "").stderr
    result = fetch(maven, (maven / "none").as_uri())
    assert (result.returncode, "Traceback" in result.stderr) == (1, False)
    assert "/none/org/acme/one-1.jar must be readable" in result.stderr


def test_pip_is_set_up_by_a_secret_that_does_not_stay_in_the_image() -> None:
    (installing,) = [rest for word, rest in instructions() if word == "RUN" and "pip install" in rest]
    assert installing.startswith("--mount=type=secret,id=pip,target=/etc/pip.conf ")


def test_the_paths_are_those_that_the_pods_use() -> None:
    reported = (IMAGE / "Dockerfile").read_text("utf-8")
    assert f"spark {pods.HOME}/spark" in reported
    assert f"/jars/ {pods.HOME}/jars/" in reported
    assert f'ENTRYPOINT ["{pods.HOME}/entrypoint.sh"]' in reported


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    """The image's folder, made of what the Dockerfile copies, and a Spark and a Java that say how they were called."""
    home = tmp_path / "verification"
    home.mkdir()
    for package in ("contract", "kafka", "spark"):
        shutil.copytree(ROOT / package, home / package)  # with its bytecode: each start would compile it again
    for program in ("spark/bin/spark-submit", "java/bin/java"):
        path = tmp_path / program
        path.parent.mkdir(parents=True)
        path.write_text(FAKE, encoding="utf-8")
        path.chmod(0o755)
    return tmp_path


def start(layout: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "VERIFICATION_HOME": f"{layout}/verification",
        "SPARK_HOME": f"{layout}/spark",
        "JAVA_HOME": f"{layout}/java",
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }
    command = ["sh", str(IMAGE / "entrypoint.sh"), *words]
    return subprocess.run(
        command, env=environment, cwd=layout, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_job_is_the_images_own_wherever_it_starts(layout: Path) -> None:
    (layout / "spark" / "__init__.py").write_text("raise SystemExit('another spark')", encoding="utf-8")
    result = start(layout, "--help")
    assert (result.returncode, "another spark" in result.stderr) == (0, False), result.stderr


def test_arguments_are_those_of_the_job(layout: Path) -> None:
    result = start(layout, "--request", f"{layout}/none.json", "--report-dir", f"{layout}/reports")
    assert result.returncode == 2
    assert "none.json" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_driver_is_submitted_with_its_address(layout: Path) -> None:
    words = ["--properties-file", "/opt/spark/conf/spark.properties", f"local://{pods.HOME}/spark/__main__.py"]
    result = start(layout, "driver", *words, SPARK_DRIVER_BIND_ADDRESS="192.0.2.7")
    reported = result.stdout.splitlines()
    assert "spark.driver.bindAddress=192.0.2.7" in reported
    assert reported[-3:] == words


def test_an_executor_gets_its_options_in_order(layout: Path) -> None:
    variables = {
        "SPARK_JAVA_OPT_10": "-Dlast=1", "SPARK_JAVA_OPT_2": "-Dsecond=with a space", "SPARK_JAVA_OPT_0": "-Dfirst=1",
        "SPARK_EXECUTOR_MEMORY": "2g", "SPARK_CLASSPATH": f"{pods.HOME}/jars/*", "SPARK_DRIVER_URL": "spark://driver",
        "SPARK_EXECUTOR_ID": "1", "SPARK_EXECUTOR_CORES": "2", "SPARK_APPLICATION_ID": "app",
        "SPARK_EXECUTOR_POD_IP": "192.0.2.8", "SPARK_RESOURCE_PROFILE_ID": "0", "SPARK_EXECUTOR_POD_NAME": "pod",
    }  # fmt: skip
    reported = start(layout, "executor", **variables).stdout.splitlines()
    assert reported[:5] == ["-Dfirst=1", "-Dsecond=with a space", "-Dlast=1", "-Xms2g", "-Xmx2g"]
    assert f"{pods.HOME}/jars/*:{layout}/spark/jars/*" in reported
    assert reported[reported.index("--driver-url") + 1] == "spark://driver"
