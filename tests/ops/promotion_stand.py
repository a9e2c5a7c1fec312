"""A project with two stacks, a stand-in for Pulumi and one for the verification's job, for tests of `ops promote`."""

import json
import os
import shutil
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from ops import verify
from ops.cli import app

from . import policy_log as recorded

SECRET = "very-secret-4711"
PROVEN, LONG_AGO = datetime.now(UTC), datetime.now(UTC) - timedelta(hours=71)
# Answers as its folder says, keeps every command line, and writes stack files as Pulumi does but for the comments.
FAKE = """\
#!{python} -S
import json, sys
from pathlib import Path
here, words = Path(__file__).parent, sys.argv[1:]
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(words) + chr(10))
option = lambda name: words[words.index(name) + 1]
if words[:2] == ["config", "set-all"]:
    sys.path.append({packages!r})
    import yaml
    file = Path(option("--config-file"))
    document = yaml.safe_load(file.read_text())
    for key, entry in json.loads(option("--json")).items():
        document["config"][key] = json.loads(entry["value"])
    head = [line for line in file.read_text().splitlines(True) if line.startswith("#")]
    file.write_text("".join(head) + yaml.safe_dump(document, sort_keys=False))
elif words[0] == "preview":
    name = "gate" if "--policy-pack" in words else "preview"
    Path(option("--event-log")).write_text((here / f"{{name}}.log").read_text())
    sys.exit(int((here / f"{{name}}.exit").read_text()))
elif words[0] == "up":
    print("error: broker 0 did not start")
    sys.exit(int((here / "up.exit").read_text()))
else:
    print((here / f"{{words[1]}}.json").read_text())
"""
JOB = """
import json, pathlib, sys
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
folder = pathlib.Path(arguments["--report-dir"])
folder.mkdir(parents=True, exist_ok=True)
check = {"name": "records_complete", "ok": VERDICT == "pass", "expected": "", "observed": ""}
(folder / "report.json").write_text(json.dumps({"verdict": VERDICT, "checks": [check]}))
sys.exit(int(VERDICT != "pass"))
"""
DEV_FILE = """\
config:
  rt-inventory:cluster: { name: low, namespace: low, brokers: 1 }
  rt-inventory:users: [{ name: reader }]
  rt-inventory:topics:
    - { name: audit, partitions: 1, replicas: 1, config: { retention.ms: 2000 } }
    - { name: items, partitions: 1, replicas: 1 }
"""
STG_FILE = """\
# asked about this stage: the platform team
config:
  rt-inventory:cluster: { name: high, namespace: high, brokers: 3 }
  rt-inventory:users: [{ name: writer }]
  rt-inventory:topics: [{ name: audit, partitions: 1, replicas: 3, config: { retention.ms: 1000 } }]
  rt-inventory:mirrors:
    - name: mm2
      source: { stack: dev, alias: low, user: reader }
      target: { alias: high, user: writer }
      topics: [items]
"""
Document = dict[str, Any]


class Stand:
    """A project with two stacks, and the stand-in's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.fake = folder / "project", folder / "bin"
        for made in (self.folder, self.fake):
            made.mkdir()
        pulumi = self.fake / "pulumi"
        packages = str(Path(yaml.__file__).parents[1])
        pulumi.write_text(FAKE.format(python=sys.executable, packages=packages), encoding="utf-8")
        pulumi.chmod(pulumi.stat().st_mode | stat.S_IXUSR)
        (self.folder / "Pulumi.dev.yaml").write_text(DEV_FILE, encoding="utf-8")
        (self.folder / "Pulumi.stg.yaml").write_text(STG_FILE, encoding="utf-8")
        (self.fake / "calls").touch()
        self.answers("up.exit", "0")
        self.stacks(dev=3, stg=9)
        self.verified("pass", PROVEN)
        self.previews("preview")
        self.previews("gate", recorded.step("update", recorded.topic("audit"), name="audit"))

    def answers(self, name: str, text: str) -> None:
        (self.fake / name).write_text(text, encoding="utf-8")

    def stacks(self, **resources: int) -> None:
        self.answers("ls.json", json.dumps([{"name": name, "resourceCount": n} for name, n in resources.items()]))

    def verified(
        self, verdict: str | None, moment: datetime | None, *, unknown: str | None = None, pods: bool = False
    ) -> None:
        """What the mirror's latest verification found, and when; of one by pods only Pulumi's state knows it."""
        checks = [{"name": "records_complete", "ok": verdict != "fail"}]
        checks += [{"name": unknown, "ok": None}] if unknown else []
        found: Document = {"verdict": verdict, "checks": checks, "report": "r.html"}
        found |= {"finishedAt": moment.isoformat()} if moment and not pods else {}
        outputs = {
            "mirrors": {"mm2": {"sourceStack": "dev"}, "other": {"sourceStack": "elsewhere"}},
            "verificationRequests": {"mm2": {"limits": {"allow_unknown": ["lag"]}}},
            "verificationEnvironment": {"mm2": {"SOURCE_PASSWORD": SECRET}},
            "verifications": {"mm2": found if verdict else None},
        }
        urn = "urn:pulumi:stg::x::rt-inventory:verification:Verification$x::mm2-verification-run"
        noted = {"urn": urn, "modified": moment.isoformat().replace("+00:00", "Z")} if moment else {"urn": urn}
        self.answers("output.json", json.dumps(outputs))
        self.answers("export.json", json.dumps({"deployment": {"resources": [noted]}}))

    def previews(self, name: str, *events: recorded.Event, failed: bool = False) -> None:
        self.answers(f"{name}.log", recorded.log(*events, failed=failed))
        self.answers(f"{name}.exit", "255" if failed else "0")

    @property
    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.fake / "calls").read_text(encoding="utf-8").splitlines()]

    @property
    def words(self) -> list[str]:
        """The commands that were run, in order."""
        return [" ".join(call[:2]) if call[0] in ("stack", "config") else call[0] for call in self.calls]

    @property
    def stg(self) -> str:
        return (self.folder / "Pulumi.stg.yaml").read_text(encoding="utf-8")

    @property
    def records(self) -> list[Document]:
        return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(self.folder.glob("promotions/*.json"))]


def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    """The project in an environment that finds the stand-ins."""
    stand = Stand(tmp_path)
    monkeypatch.setenv("PATH", f"{stand.fake}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("GITHUB_ACTOR", "ada")
    monkeypatch.setenv("COLUMNS", "200")
    job(tmp_path, monkeypatch, "pass")
    return stand


def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: str) -> None:
    """Put a made-up `spark` package where the job is started."""
    package = tmp_path / "spark"
    # A file that is written again within a second, and is as long, would be taken for the one that was compiled.
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(JOB.replace("VERDICT", repr(verdict)), encoding="utf-8")
    monkeypatch.setattr(verify, "PROJECT", tmp_path)


def promote(stand: Stand, *arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, ["promote", "-C", str(stand.folder), *arguments], input=answer)


def document(result: Result, exit_code: int) -> Document:
    assert result.exit_code == exit_code, result.output
    assert SECRET not in result.output
    found: Document = json.loads(result.stdout)
    return found
