"""The image of the demo clients, as far as it can be judged without building it."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import yaml

from components.kafka import demo_clients
from settings import parse
from settings.files import read_values

ROOT = Path(__file__).parents[3]
IMAGE = ROOT / "images" / "demo-clients"
OWN = ("components", "contract", "kafka", "monitoring", "ops", "policies", "sandbox", "settings", "spark")
SHARED = {"contract/__init__.py", "contract/terminal.py", "settings/__init__.py", "settings/text.py"}
PIN = re.compile(r"^([A-Za-z0-9_.-]+)==(\S+)$", re.MULTILINE)
LOADED = """
import sys
before = set(sys.modules)
import ops.demo_client.__main__
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))
print(*sorted(name for name in sys.modules if name.partition(".")[0] in sys.argv[1:]))
"""


def instructions() -> list[tuple[str, str]]:
    """Instructions and their arguments, comments left out and continued lines joined."""
    lines = [line for line in (IMAGE / "Dockerfile").read_text("utf-8").splitlines() if not line.startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in whole.splitlines() if line)]


def arguments() -> dict[str, str]:
    """Build arguments with their defaults; empty for those that must be given."""
    found = (rest.partition("=") for word, rest in instructions() if word == "ARG")
    return {name: default for name, _, default in found}


def packages() -> set[str]:
    return set((IMAGE / "packages.txt").read_text("utf-8").split())


def sources() -> list[str]:
    """What is copied into the image."""
    copies = [rest.split() for word, rest in instructions() if word == "COPY"]
    return [word for words in copies for word in words[:-1] if not word.startswith("--")]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(names: set[str]) -> set[str]:
    """Packages with what they bring along."""
    pending, seen = sorted(names), set[str]()
    while pending:
        name = normal(pending.pop())
        if name in seen:
            continue
        seen.add(name)
        for requirement in metadata.requires(name) or []:
            if not re.search("extra ==|python_version <|win32|Windows", requirement):
                pending.append(re.split(r"[ ;<>=!~\[(]", requirement, maxsplit=1)[0])
    return seen


def test_the_base_is_pinned_and_comes_from_the_registry_that_is_given() -> None:
    found = arguments()
    assert found["REGISTRY"] == ""
    assert re.fullmatch(r"3\.11\.\d+", found["PYTHON_VERSION"])
    assert {rest.split()[0] for word, rest in instructions() if word == "FROM"} == {"${BASE_IMAGE}"}
    assert found["BASE_IMAGE"].startswith("${REGISTRY}/")


def test_what_is_installed_is_pinned_and_is_what_the_clients_import() -> None:
    texts = ((ROOT / name).read_text("utf-8") for name in ("requirements.txt", "constraints.txt"))
    pins = {normal(name) for text in texts for name, _ in PIN.findall(text)}
    assert needed(packages()) <= pins
    result = subprocess.run(
        [sys.executable, "-c", LOADED, *OWN], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    names, modules = (line.split() for line in result.stdout.splitlines())
    provided = metadata.packages_distributions()
    loaded = {normal(each) for name in names for each in provided.get(name, [])}
    assert packages() <= loaded <= {*needed(packages()), "rt-inventory"}  # the image holds these itself
    files = {module.replace(".", "/") for module in modules}
    copied = {source.removesuffix(".py").removesuffix("/__init__") for source in sources()}
    assert {name for name in files if name.split("/")[0] not in copied and name not in copied} == set()
    assert {name for name in files if not name.startswith("ops")} <= copied, "of other packages only what is copied"


def test_it_runs_the_clients_as_the_user_that_the_pods_have() -> None:
    last = dict(instructions())
    assert last["USER"] == str(demo_clients.USER)
    assert last["ENTRYPOINT"] == '["python", "-m", "ops.demo_client"]'


def test_everything_that_is_copied_is_there_and_goes_to_the_builder() -> None:
    shown = {
        line.removeprefix("!")
        for line in (IMAGE / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }
    for source in sources():
        assert (ROOT / source).exists(), source
        assert source in shown or str(Path(source).parent) in shown, source
    assert shown == {"images/demo-clients", "ops", *SHARED}


def test_the_readmes_settings_are_good() -> None:
    (given,) = re.findall(r"```yaml\n(.*?)```", (IMAGE / "README.md").read_text("utf-8"), re.DOTALL)
    clients = yaml.safe_load(given)["rt-inventory:demoClients"]
    found = parse({**read_values(ROOT / "Pulumi.dev.yaml"), "demoClients": clients}, "dev").demo_clients
    assert found is not None
    assert found.consumers == clients["consumers"]


def test_no_file_of_the_image_holds_a_secret() -> None:
    for path in IMAGE.iterdir():
        assert not re.search(r"(password|secret|token)\s*[=:]\s*\S", path.read_text("utf-8"), re.IGNORECASE), path
