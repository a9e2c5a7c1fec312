"""A made-up machine: a project, a cache and fake tools that note every call."""

import json
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sandbox.toolchain.crds import MONITORING_FILES
from sandbox.toolchain.go import PROVIDER_LEFT_OUT, PROVIDER_PACKAGE, PULUMI_LAUNCHERS
from sandbox.toolchain.optional_tools import PROGRAMS
from sandbox.toolchain.paths import ToolchainPaths

FAKE_GO = """#!/bin/sh
case "$1 $2" in
  "version ") echo "go version go1.26.1 linux/amd64"; exit ;;
  "env GOCACHE") exit ;;
esac
make() {{ printf '#!/bin/sh\\nexit 0\\n' > "$1"; chmod +x "$1"; }}
echo "go $*" >> {calls}
case "$1 $2" in
  "mod download") [ -z "$3" ] || echo '{{"Dir": "{machine}/olm"}}' ;;
  "list -m") echo {machine}/provider ;;
  "build "*)
    # Only what builds the large programs, and says so by -v: the small ones are built beside it.
    if [ "$2" = -v ] && [ -e {machine}/slow ]; then echo $$ > {machine}/slow.pid; sleep 600; fi
    if [ "$2" = -v ] && [ -e {machine}/broken ]; then echo "undefined: something"; echo some/package; exit 3; fi
    while [ "$1" != -o ]; do shift; done
    built="$2"; shift 2
    case "$built" in */) for package do make "$built${{package##*/}}"; done ;; *) make "$built" ;; esac ;;
esac
"""
FAKE_MVN = """#!/bin/sh
echo "mvn $(basename "$PWD")" >> {calls}
for argument do case "$argument" in -DoutputDirectory=*) mkdir -p "${{argument#*=}}" ;; esac; done
"""
FAKE_JAVA = """#!/bin/sh
echo "java" >> {calls}
for argument do
  file="${{argument#*=}}"
  case "$argument" in
    *.yaml) echo 'kind: X' > "$file" ;;
    *.json) sed "s/KIND/$(basename "$file" .json | tr A-Z a-z)/g" {machine}/definition.json > "$file" ;;
  esac
done
"""
FAKE_PYTHON = """#!/bin/sh
case "$1" in -c) exit 0 ;; esac
echo "python $*" >> {calls}
"""


@dataclass(frozen=True)
class Machine:
    """The made-up machine."""

    folder: Path
    paths: ToolchainPaths

    def calls(self) -> list[str]:
        """Every call of a fake tool that installs something."""
        file = self.folder / "calls"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def driver(self) -> list[str]:
        """A command that runs the set-up of this machine in its own process."""
        code = (
            "import json, sys; from pathlib import Path\n"
            "from sandbox.toolchain.__main__ import ensure; from sandbox.toolchain.paths import ToolchainPaths\n"
            "project, cache, environ = json.loads(sys.argv[1])\n"
            "sys.exit(ensure(ToolchainPaths(Path(project), Path(cache), environ)))"
        )
        paths = [str(self.paths.project), str(self.paths.cache), dict(self.paths.environ)]
        return [sys.executable, "-c", code, json.dumps(paths)]

    def tool(self, name: str, text: str) -> Path:
        """Put a program on this machine's PATH."""
        return script(self.folder / "bin" / name, text)


def definition(kind: str) -> dict[str, Any]:
    """A Strimzi definition of a kind, as far as its shape matters; the spec is a small Kafka's."""
    required = ["replicas", "listeners", "storage"]
    schema = {
        "type": "object",
        "required": ["kafka", "zookeeper"],
        "description": f"The specification of the {kind}.",
        "properties": {
            "kafka": {
                "type": "object",
                "required": required,
                "properties": {name: {"type": "object", "description": "A text."} for name in required},
            },
            "zookeeper": {"type": "object"},
            "description": {"type": "string", "description": "A field that is called like a text."},
        },
    }
    versions: list[dict[str, Any]] = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "additionalPrinterColumns": [{"name": "Cluster", "jsonPath": r".metadata.labels.strimzi\.io/cluster"}],
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {**schema, "title": name}}}},
        }
        for name in ("v1", "v1beta2")
    ]
    names = {"kind": kind, "plural": f"{kind}s", "shortNames": ["k"], "categories": ["strimzi"]}
    return {
        "metadata": {"name": f"{kind}s.kafka.strimzi.io", "labels": {"app": "strimzi"}},
        "spec": {"group": "kafka.strimzi.io", "names": names, "versions": versions},
    }


def script(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def said_version(name: str, major: int, minor: int) -> str:
    """A program that says its version as Prometheus' do."""
    return f'#!/bin/sh\necho "{name}, version {major}.{minor}.0+ds (branch: x, revision: y)"\n'


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with Go, Maven, a JDK 21 and nothing installed."""
    monkeypatch.setattr("sandbox.toolchain.java.HOMES", (str(tmp_path / "no-jvm"),))
    values = {"calls": tmp_path / "calls", "machine": tmp_path}
    script(tmp_path / "bin" / "go", FAKE_GO.format(**values))
    script(tmp_path / "bin" / "mvn", FAKE_MVN.format(**values))
    script(tmp_path / "jdk" / "bin" / "java", FAKE_JAVA.format(**values))
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="21.0.8"\n', encoding="utf-8")
    script(tmp_path / "project" / "venv" / "bin" / "python", FAKE_PYTHON.format(**values))
    (tmp_path / "project" / "requirements.lock").write_text("pulumi==1\n", encoding="utf-8")
    (tmp_path / "definition.json").write_text(json.dumps(definition("KIND")), encoding="utf-8")
    crds = tmp_path / "olm" / "crds"
    crds.mkdir(parents=True)
    (crds / "subscriptions.yaml").write_text("kind: X\n", encoding="utf-8")
    for name in (name for names in MONITORING_FILES.values() for name in names):
        script(tmp_path / "olm" / name, "kind: X\n")
    schema = tmp_path / "provider" / "cmd" / "pulumi-resource-kubernetes"
    schema.mkdir(parents=True)
    for name in ("schema.json", "terraform-mapping.json"):
        (schema / name).write_text("{}", encoding="utf-8")
    for name in PROVIDER_LEFT_OUT:
        script(tmp_path / "provider" / PROVIDER_PACKAGE / name, "package provider\n")
    script(tmp_path / "provider" / PROVIDER_PACKAGE / "provider.go", "package provider\n")
    script(tmp_path / "provider" / "go.mod", "module provider\n")
    for name in PULUMI_LAUNCHERS:
        script(tmp_path / "provider" / "python" / "dist" / name, "#!/bin/sh\n")
    environ = {
        "PATH": os.pathsep.join([str(tmp_path / "bin"), "/usr/bin", "/bin"]),
        "HOME": str(tmp_path / "home"),
        "JAVA_HOME": str(tmp_path / "jdk"),
    }
    # The system's own kubectl must not be found: these fakes come before it.
    script(tmp_path / "bin" / "kubectl", "#!/bin/sh\nexit 1\n")
    script(tmp_path / "bin" / "pulumi", "#!/bin/sh\nexit 1\n")
    script(tmp_path / "bin" / "chromium", "#!/bin/sh\n")
    for name, program in PROGRAMS.items():
        script(tmp_path / "bin" / name, said_version(name, *program.least))
    return Machine(tmp_path, ToolchainPaths(tmp_path / "project", tmp_path / "cache", environ))
