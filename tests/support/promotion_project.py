"""A project with two stacks, a stand-in for Pulumi and one for the verification's job, for tests of `ops promote`."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ops import verify
from ops.cli import app

from . import event_logs as recorded
from .pulumi_program import on_path

SECRET = "very-secret-4711"
PROVEN, LONG_AGO = datetime.now(UTC), datetime.now(UTC) - timedelta(hours=71)
JOB = """
import json, pathlib, sys
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
folder = pathlib.Path(arguments["--report-dir"])
folder.mkdir(parents=True, exist_ok=True)
ok = {"pass": True, "unknown": None}.get(VERDICT, False)
check = {"name": "records_complete", "ok": ok, "expected": "", "observed": ""}
(folder / "report.json").write_text(json.dumps({"verdict": VERDICT, "checks": [check], **REPORTED}))
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
    """A project with two stacks, and the made-up `pulumi`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.pulumi = on_path(folder / "bin", monkeypatch)
        (self.folder / "Pulumi.dev.yaml").write_text(DEV_FILE, encoding="utf-8")
        (self.folder / "Pulumi.stg.yaml").write_text(STG_FILE, encoding="utf-8")
        self.up_ends(0)
        self.stacks(dev=3, stg=9)
        self.verified("pass", PROVEN)
        self.previews("preview")
        self.previews("gate", recorded.step("update", recorded.topic("audit"), name="audit"))

    def up_ends(self, exit_code: int) -> None:
        self.pulumi.answers("up", stdout="error: broker 0 did not start", exit_code=exit_code)

    def stacks(self, **resources: int) -> None:
        listed = [{"name": name, "resourceCount": n} for name, n in resources.items()]
        self.pulumi.answers("stack ls", stdout=json.dumps(listed))

    def verified(
        self,
        verdict: str | None,
        moment: datetime | None,
        *,
        unknown: str | None = None,
        pods: bool = False,
        refused: bool = False,
        allowed: str = "lag",
    ) -> None:
        """What the mirror's latest verification found, and when; of one by pods only Pulumi's state knows it.

        `refused`: the `up` failed by it. `allowed` is the check that the stack allows to be unknown.
        """
        checks = [{"name": "records_complete", "ok": verdict != "fail"}]
        checks += [{"name": unknown, "ok": None}] if unknown else []
        found: Document = {"verdict": verdict, "checks": checks, "report": "r.html"}
        found |= {"finishedAt": moment.isoformat()} if moment and not pods else {}
        found |= {"passed": False} if refused else {}
        outputs = {
            "mirrors": {"mm2": {"sourceStack": "dev"}, "other": {"sourceStack": "elsewhere"}},
            "verificationRequests": {"mm2": {"limits": {"allow_unknown": [allowed]}}},
            "verificationEnvironment": {"mm2": {"SOURCE_PASSWORD": SECRET}},
            "verifications": {"mm2": found if verdict else None},
        }
        urn = "urn:pulumi:stg::x::rt-inventory:verification:Verification$x::mm2-verification-run"
        noted = {"urn": urn, "modified": moment.isoformat().replace("+00:00", "Z")} if moment else {"urn": urn}
        self.pulumi.answers("stack output", stdout=json.dumps(outputs))
        self.pulumi.answers("stack export", stdout=json.dumps({"deployment": {"resources": [noted]}}))

    def previews(self, name: str, *events: recorded.Event, failed: bool = False) -> None:
        self.pulumi.answers(name, log=recorded.log(*events, failed=failed), exit_code=255 if failed else 0)

    @property
    def calls(self) -> list[list[str]]:
        return [call["words"] for call in self.pulumi.calls]

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
    stand = Stand(tmp_path, monkeypatch)
    monkeypatch.setenv("GITHUB_ACTOR", "ada")
    job(tmp_path, monkeypatch, "pass")
    return stand


def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: str, **reported: Any) -> None:
    """Put a made-up `spark` package where the job is started; `reported` is in its report too."""
    package = tmp_path / "spark"
    # A file that is written again within a second, and is as long, would be taken for the one that was compiled.
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        JOB.replace("VERDICT", repr(verdict)).replace("REPORTED", repr(reported)), encoding="utf-8"
    )
    monkeypatch.setattr(verify, "PROJECT", tmp_path)


def promote(stand: Stand, *arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, ["promote", "-C", str(stand.folder), *arguments], input=answer)


def document(result: Result, exit_code: int) -> Document:
    assert result.exit_code == exit_code, result.output
    assert SECRET not in result.output
    found: Document = json.loads(result.stdout)
    return found
