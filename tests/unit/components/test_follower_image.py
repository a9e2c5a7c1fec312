"""The image of the follower, as far as it can be judged without building it."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import yaml

from components.kafka import follower
from settings.mirror_parts import ExactOffsets

from .test_demo_clients_image import OWN, PIN, ROOT, needed, normal

IMAGE = ROOT / "images" / "follower"
OPTIONAL = {"click", "blinker", "protobuf", "googleapis-common-protos", "six"}
"""What httpx, oauthlib and kubernetes import only if it is there."""
LOADED = """
import sys
before = set(sys.modules)
import ops.follow.__main__
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))
print(*sorted({name.partition(".")[0] for name in sys.modules if name.partition(".")[0] in sys.argv[1:]}))
"""


def instructions() -> list[tuple[str, str]]:
    """Instructions and their arguments, comments left out and continued lines joined."""
    lines = [line for line in (IMAGE / "Dockerfile").read_text("utf-8").splitlines() if not line.startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in whole.splitlines() if line)]


def sources() -> set[str]:
    """What is copied into the image."""
    copies = [rest.split() for word, rest in instructions() if word == "COPY"]
    return {word for words in copies for word in words[:-1] if not word.startswith("--")}


def test_the_base_is_pinned_and_comes_from_the_registry_that_is_given() -> None:
    found = dict(rest.partition("=")[::2] for word, rest in instructions() if word == "ARG")
    assert found["REGISTRY"] == ""
    assert re.fullmatch(r"3\.11\.\d+", found["PYTHON_VERSION"])
    assert found["BASE_IMAGE"].startswith("${REGISTRY}/")


def test_what_is_installed_is_pinned_and_is_what_the_follower_imports() -> None:
    texts = ((ROOT / name).read_text("utf-8") for name in ("requirements.txt", "constraints.txt"))
    pins = {normal(name) for text in texts for name, _ in PIN.findall(text)}
    packages = set((IMAGE / "packages.txt").read_text("utf-8").split())
    assert needed(packages) <= pins
    result = subprocess.run(
        [sys.executable, "-c", LOADED, *OWN], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    names, own = (line.split() for line in result.stdout.splitlines())
    provided = metadata.packages_distributions()
    loaded = {normal(each) for name in names for each in provided.get(name, [])}
    assert packages <= loaded
    assert loaded - needed(packages) - {"rt-inventory"} <= OPTIONAL
    assert set(own) == sources() & set(OWN)


def test_it_runs_the_follower_as_the_user_that_the_pod_has() -> None:
    last = dict(instructions())
    assert last["USER"] == str(follower.USER)
    assert last["ENTRYPOINT"] == '["python", "-m", "ops.follow"]'


def test_the_command_takes_the_arguments_of_the_pod(tmp_path: Path) -> None:
    given = [*follower._arguments("stg", "mm2")]
    given[given.index("--outputs") + 1] = str(tmp_path / "none.json")
    done = subprocess.run(
        [sys.executable, "-m", "ops.follow", *given], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "must be a JSON file that can be read" in done.stderr


def test_everything_that_is_copied_goes_to_the_builder_and_nothing_else() -> None:
    ignored = (IMAGE / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    shown = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    assert shown == {*(sources() - {"images/follower/requirements.lock"}), "images/follower"}
    assert all((ROOT / source).exists() for source in sources())


def test_the_readmes_setting_is_good_and_no_file_holds_a_secret() -> None:
    (given,) = re.findall(r"```yaml\n(.*?)```", (IMAGE / "README.md").read_text("utf-8"), re.DOTALL)
    (mirror,) = yaml.safe_load(given)["rt-inventory:mirrors"]
    assert ExactOffsets.model_validate(mirror["exactOffsets"]).image.endswith("/follower:1.0.0")
    for path in IMAGE.iterdir():
        assert not re.search(r"(password|secret|token)\s*[=:]\s*\S", path.read_text("utf-8"), re.IGNORECASE), path
