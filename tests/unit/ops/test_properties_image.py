"""The image of the dedicated mirror, as far as it can be judged without building it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from sandbox.toolchain import pins

PROJECT = Path(__file__).parents[3]
IMAGE = PROJECT / "images" / "mirror"
FAKE_MIRROR_MAKER = '#!/bin/sh\necho "$KAFKA_OPTS"\nfor word do echo "$word"; done\n'


def instructions() -> list[tuple[str, str]]:
    """Instructions and their arguments, comments left out and continued lines joined."""
    lines = [line for line in (IMAGE / "Dockerfile").read_text("utf-8").splitlines() if not line.startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in whole.splitlines() if line)]


def arguments() -> dict[str, str]:
    """Build arguments with their defaults; empty for those that must be given."""
    found = (rest.partition("=") for word, rest in instructions() if word == "ARG")
    return {name: default for name, _, default in found}


def test_versions_and_checksum_are_pinned_build_arguments() -> None:
    found = arguments()
    assert found["STRIMZI_VERSION"] == pins.STRIMZI
    assert found["KAFKA_VERSION"] == pins.KAFKA
    assert found["JMX_EXPORTER_VERSION"] == pins.JMX_EXPORTER
    assert re.fullmatch(r"[0-9a-f]{64}", found["JMX_EXPORTER_SHA256"])
    assert found["BASE_IMAGE"] == "${REGISTRY}/strimzi/kafka:${STRIMZI_VERSION}-kafka-${KAFKA_VERSION}"
    assert found["REGISTRY"] == found["JMX_EXPORTER_URL"] == ""


def test_every_stage_is_built_on_the_one_base_image() -> None:
    assert {rest.split()[0] for word, rest in instructions() if word == "FROM"} == {"${BASE_IMAGE}"}


def test_what_is_downloaded_is_held_against_the_checksum() -> None:
    runs = [rest for word, rest in instructions() if word == "RUN"]
    downloads = [run for run in runs if "curl" in run]
    assert len(downloads) == 1
    assert downloads[0].endswith('&& echo "${JMX_EXPORTER_SHA256}  agent.jar" | sha256sum --check --strict -')
    assert not any(word == "ADD" for word, _ in instructions())


def test_it_does_not_run_as_root() -> None:
    last = [rest for word, rest in instructions() if word == "USER"][-1]
    assert re.fullmatch(r"[1-9]\d*", last)


def test_no_file_of_the_image_holds_a_secret_or_a_place_for_one() -> None:
    for path in IMAGE.iterdir():
        assert not re.search(r"(password|secret|token)\s*[=:]\s*\S", path.read_text("utf-8"), re.IGNORECASE), path
    assert not any(re.search("password|token|key", name, re.IGNORECASE) for name in arguments())


def test_everything_that_is_copied_is_there_and_nobody_may_change_it() -> None:
    copies = [rest.split() for word, rest in instructions() if word == "COPY"]
    own = [words for words in copies if not words[0].startswith("--from")]
    assert {words[-2] for words in own} == {"monitoring/jmx/mirror-maker-2.yaml", "images/mirror/run.sh"}
    assert all((PROJECT / words[-2]).is_file() for words in own)
    assert all(any(re.fullmatch(r"--chmod=0[45]{3}", word) for word in words) for words in copies)


def test_the_builder_gets_just_what_is_copied() -> None:
    ignored = (IMAGE / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    copies = [rest.split()[-2] for word, rest in instructions() if word == "COPY" and "--from=" not in rest]
    assert [line for line in ignored if not line.startswith(("#", "!"))] == ["*"]
    assert sorted(line[1:] for line in ignored if line.startswith("!")) == sorted(copies)


@pytest.fixture
def mirror_home(tmp_path: Path) -> Path:
    """A Kafka whose MirrorMaker says how it was called, and a mirror's folder with a properties file."""
    program = tmp_path / "kafka" / "bin" / "connect-mirror-maker.sh"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE_MIRROR_MAKER, encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "mm2.properties").touch()
    return tmp_path


def start(home: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "KAFKA_HOME": f"{home}/kafka", "MIRROR_HOME": str(home), **variables}
    return subprocess.run(
        ["sh", str(IMAGE / "run.sh"), *words], env=environment, capture_output=True, text=True, timeout=20, check=False
    )


def test_the_mirror_starts_with_its_file_and_the_exporter(mirror_home: Path) -> None:
    result = start(mirror_home)
    agent = f"-javaagent:{mirror_home}/jmx-exporter.jar=9404:{mirror_home}/jmx-rules.yaml"
    assert result.stdout.splitlines() == [agent, f"{mirror_home}/config/mm2.properties"]


@pytest.mark.parametrize(("given", "expected"), [({}, "/tmp/logs"), ({"LOG_DIR": "/logs"}, "/logs")])  # noqa: S108
def test_kafkas_scripts_log_where_a_container_may_write(
    mirror_home: Path, given: dict[str, str], expected: str
) -> None:
    (mirror_home / "kafka" / "bin" / "connect-mirror-maker.sh").write_text('#!/bin/sh\necho "$LOG_DIR"\n', "utf-8")
    assert start(mirror_home, **given).stdout == f"{expected}\n"


def test_options_port_and_arguments_are_handed_on(mirror_home: Path) -> None:
    other = mirror_home / "other.properties"
    other.touch()
    words = str(other), "--clusters", "es-tgt"
    result = start(mirror_home, *words, KAFKA_OPTS="-Dx=y", JMX_EXPORTER_PORT="9999")
    agent = f"-Dx=y -javaagent:{mirror_home}/jmx-exporter.jar=9999:{mirror_home}/jmx-rules.yaml"
    assert result.stdout.splitlines() == [agent, *words]


def test_a_file_that_is_not_mounted_is_reported(mirror_home: Path) -> None:
    (mirror_home / "config" / "mm2.properties").unlink()
    result = start(mirror_home)
    assert result.returncode == 2
    assert "properties file must be readable" in result.stderr
