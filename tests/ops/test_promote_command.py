"""`ops promote` with a stand-in for Pulumi and for the job: what is refused, what is changed when, what is recorded."""

import json
import os
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from ops import verify
from ops.cli import app
from ops.errors import OpsError
from ops.promotion import command
from ops.recovery.engine import Engine

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


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    made = Stand(tmp_path)
    monkeypatch.setenv("PATH", f"{made.fake}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("GITHUB_ACTOR", "ada")
    monkeypatch.setenv("COLUMNS", "200")
    job(tmp_path, monkeypatch, "pass")
    return made


def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: str) -> None:
    """Put a made-up `spark` package where the job is started."""
    package = tmp_path / "spark"
    package.mkdir(exist_ok=True)
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


def test_a_dry_run_shows_the_plan_and_changes_nothing(stand: Stand) -> None:
    found = document(promote(stand, "--dry-run", "--json"), 0)
    assert found["result"] == "planned"
    assert found["changes"] == [{"key": "topics[audit].config[retention.ms]", "old": 1000, "new": 2000}]
    assert found["preview"] == [{"operation": "update", "resource": "KafkaTopic audit"}]
    assert found["proofs"][0]["verdict"] == "pass"
    assert stand.stg == STG_FILE
    assert not stand.records
    assert stand.words == [
        *("stack ls", "stack output", "preview", "config set-all", "preview"),
    ]
    with_copy = [call for call in stand.calls if "--config-file" in call]
    assert [call[0] for call in with_copy] == ["config", "preview"], "what is judged must be what would be written"
    (copy,) = {call[call.index("--config-file") + 1] for call in with_copy}
    assert not Path(copy).exists(), "the copy must not stay"


def test_an_approved_promotion_writes_the_file_ups_verifies_and_records(stand: Stand) -> None:
    (stand.folder / "Pulumi.stg.yaml").chmod(0o640)
    found = document(promote(stand, "--yes", "--json"), 0)
    assert found["result"] == "promoted"
    assert "retention.ms: 2000" in stand.stg
    assert stand.stg.startswith("# asked about this stage")
    assert stat.S_IMODE((stand.folder / "Pulumi.stg.yaml").stat().st_mode) == 0o640
    assert stand.words[5:] == ["up", "stack ls", "stack output", "stack ls", "stack output"]
    assert stand.records == [found]
    assert (found["by"], found["approval"]["by"], found["approval"]["how"]) == ("ada", "ada", "--yes")
    assert (found["up"], found["verification"][0]["verdict"], found["git"]) == ("succeeded", "pass", None)
    assert found["finishedAt"] >= found["approval"]["at"] >= found["startedAt"]


def test_a_verification_that_the_up_has_run_is_not_run_again(stand: Stand) -> None:
    stand.verified("pass", datetime.now(UTC) + timedelta(hours=1))
    assert document(promote(stand, "--yes", "--json"), 0)["result"] == "promoted"
    assert stand.words[5:] == ["up", "stack ls", "stack output"]


@pytest.mark.parametrize(
    ("verdict", "moment", "unknown", "told"),
    [
        ("fail", PROVEN, None, "mirror mm2 of stack stg: its verification must be green (got fail: records_complete;"),
        ("unknown", PROVEN, "acls_synced", "must be green (got unknown: acls_synced; report r.html)"),
        ("pass", LONG_AGO, None, "its verification must be recent (got one 71 h old, allowed 24 h). Verify it now:"),
        (None, None, None, "mirror mm2 of stack stg: its verification must be recent (got none)"),
        ("pass", None, None, "its verification must be recent (got none)"),
    ],
)
def test_a_source_that_is_not_proven_is_refused(
    stand: Stand, verdict: str | None, moment: datetime | None, unknown: str | None, told: str
) -> None:
    stand.verified(verdict, moment, unknown=unknown)
    found = document(promote(stand, "--yes", "--json"), 1)
    assert found["result"] == "refused"
    (problem,) = found["problems"]
    assert told in problem
    assert stand.stg == STG_FILE
    assert "up" not in stand.words
    assert not stand.records


def test_the_time_of_a_run_in_pods_is_read_from_pulumis_state(stand: Stand) -> None:
    stand.verified("pass", PROVEN, pods=True)
    (proof,) = document(promote(stand, "--dry-run", "--json"), 0)["proofs"]
    assert proof["provenAt"] == PROVEN.isoformat(timespec="seconds")
    stand.verified("pass", LONG_AGO, pods=True)
    (problem,) = document(promote(stand, "--dry-run", "--json"), 1)["problems"]
    assert "got one 71 h old" in problem


def test_a_mirror_at_rest_proves_nothing(stand: Stand) -> None:
    outputs = json.loads((stand.fake / "output.json").read_text(encoding="utf-8"))
    outputs["mirrors"]["mm2"]["state"] = "stopped"
    stand.answers("output.json", json.dumps(outputs))
    (problem,) = document(promote(stand, "--dry-run", "--json"), 1)["problems"]
    assert "(got no such mirror that is up and runs)" in problem


def test_what_a_stack_may_leave_unknown_is_green(stand: Stand) -> None:
    stand.verified("unknown", PROVEN, unknown="lag")
    assert document(promote(stand, "--dry-run", "--json"), 0)["result"] == "planned"


def test_an_old_proof_is_accepted_for_a_reason_that_is_recorded_and_a_red_one_never(stand: Stand) -> None:
    reason = ["--without-verification", "moved to new disks, CHG-17"]
    stand.verified("pass", LONG_AGO)
    found = document(promote(stand, "--dry-run", "--json", *reason), 0)
    assert found["withoutVerification"] == "moved to new disks, CHG-17"
    assert document(promote(stand, "--dry-run", "--json", "--max-age-hours", "72"), 0)["result"] == "planned"
    stand.verified("fail", PROVEN)
    assert document(promote(stand, "--dry-run", "--json", *reason), 1)["result"] == "refused"


def test_verifying_now_stands_for_an_old_proof(stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand.verified("fail", LONG_AGO)
    found = document(promote(stand, "--dry-run", "--json", "--verify"), 0)
    assert found["proofs"][0]["verdict"] == "pass"
    job(tmp_path, monkeypatch, "fail")
    (problem,) = document(promote(stand, "--dry-run", "--json", "--verify"), 1)["problems"]
    assert "got fail: records_complete" in problem


def test_a_source_without_a_mirror_that_is_up_proves_nothing(stand: Stand) -> None:
    stand.stacks(dev=3, stg=0)
    (problem,) = document(promote(stand, "--dry-run", "--json"), 1)["problems"]
    assert problem.startswith("stack dev: a mirror of it, or one that reads from it, must be verified (got no such")


def test_every_reason_against_the_source_is_told_at_once(stand: Stand) -> None:
    stand.verified("fail", PROVEN)
    run = "urn:pulumi:stg::x::rt-inventory:verification:Verification$pulumi-python:dynamic/verification:Run::mm2"
    stand.previews(
        "preview",
        recorded.step("update", recorded.topic("orders"), name="orders"),
        recorded.step("refresh", recorded.topic("bills"), name="bills"),
        recorded.step("update", run),
    )
    _, undeployed = document(promote(stand, "--yes", "--json"), 1)["problems"]
    assert undeployed.startswith(
        "stack dev: must be deployed as Pulumi.dev.yaml says (an `up` would update KafkaTopic orders, update Run mm2)."
    )
    always = DEV_FILE + "  rt-inventory:verification: { when: always }\n"
    (stand.folder / "Pulumi.dev.yaml").write_text(always, encoding="utf-8")
    _, undeployed = document(promote(stand, "--yes", "--json"), 1)["problems"]
    assert "(an `up` would update KafkaTopic orders)" in undeployed


def test_what_the_policy_forbids_is_refused(stand: Stand) -> None:
    stand.previews("gate", recorded.violation("topic-retention", "topic audit: too short."), failed=True)
    found = document(promote(stand, "--yes", "--json"), 1)
    assert found["problems"] == ["policy topic-retention: topic audit: too short."]
    assert not found["policy"]["summary"]["passed"]
    assert stand.stg == STG_FILE


def test_settings_that_the_target_cannot_have_are_told_with_what_to_prepare(stand: Stand) -> None:
    platform = "  rt-inventory:platform: {{ {} }}\n"
    (stand.folder / "Pulumi.dev.yaml").write_text(DEV_FILE + platform.format("version: 0.45.0"), encoding="utf-8")
    before = STG_FILE + platform.format("apiVersion: kafka.strimzi.io/v1")
    (stand.folder / "Pulumi.stg.yaml").write_text(before, encoding="utf-8")
    result = promote(stand, "--yes", "--json")
    assert result.exit_code == 2, result.output
    error = json.loads(result.stdout)["error"]
    assert error.startswith("stack stg: its settings must be good with those of dev (nothing was changed). Prepare")
    assert "rt-inventory:platform" in error
    assert stand.stg == before


def test_nothing_is_promoted_while_a_failback_is_under_way(stand: Stand) -> None:
    moving = "      active: target\n      failback: settling\n"
    (stand.folder / "Pulumi.stg.yaml").write_text(STG_FILE + moving, encoding="utf-8")
    result = promote(stand, "--yes", "--json")
    assert result.exit_code == 2, result.output
    error = json.loads(result.stdout)["error"]
    assert error.startswith("stack stg: no failback may be under way (got one of mirror mm2). Finish it first:")
    assert not stand.calls


def test_whoever_sits_there_sees_the_plan_and_decides(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_at_terminal", lambda: True)
    declined = promote(stand, answer="n\n")
    assert declined.exit_code == 1
    assert "topics[audit].config[retention.ms]" in declined.stderr
    assert declined.stdout.rstrip().endswith("declined")
    assert stand.stg == STG_FILE
    assert not stand.records
    assert promote(stand, answer="y\n").exit_code == 0
    assert stand.records[0]["approval"]["how"] == "at the terminal"


def test_without_a_terminal_somebody_must_have_approved(stand: Stand) -> None:
    result = promote(stand, "--json")
    assert result.exit_code == 2
    assert "somebody must approve" in json.loads(result.stdout)["error"]
    assert not stand.calls


def test_a_failed_up_leaves_the_file_as_it_is_wanted_and_the_same_command_goes_on(stand: Stand) -> None:
    stand.answers("up.exit", "255")
    found = document(promote(stand, "--yes", "--json"), 1)
    assert (found["result"], found["up"]) == ("failed", "failed")
    assert "broker 0 did not start" in found["error"]
    assert "Pulumi.stg.yaml says what is wanted: mend the cause and run this again." in found["error"]
    assert "retention.ms: 2000" in stand.stg
    assert stand.records[0]["result"] == "failed"
    stand.answers("up.exit", "0")
    again = document(promote(stand, "--yes", "--json", "--record", str(stand.folder / "again.json")), 0)
    assert (again["result"], again["changes"], again["written"]) == ("promoted", [], False)
    assert json.loads((stand.folder / "again.json").read_text(encoding="utf-8")) == again


def test_an_interrupted_promotion_leaves_a_record(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Engine, "up", interrupted)
    assert promote(stand, "--yes").exit_code == 130
    (kept,) = stand.records
    assert (kept["result"], kept["written"], "up" in kept) == ("interrupted", True, False)


def test_a_file_that_somebody_changes_meanwhile_is_left_alone(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(_: object) -> bool:
        (stand.folder / "Pulumi.stg.yaml").write_text(STG_FILE + "# and more\n", encoding="utf-8")
        return True

    monkeypatch.setattr(command, "_approval", lambda _: changed)
    result = promote(stand, "--yes", "--json")
    assert result.exit_code == 2
    assert "must stay as it is while it is promoted" in json.loads(result.stdout)["error"]
    assert stand.stg.endswith("# and more\n")
    assert "up" not in stand.words


def test_settings_that_no_command_line_takes_are_told(stand: Stand) -> None:
    many = [{"name": f"topic-{number}", "partitions": 1, "replicas": 1} for number in range(3000)]
    engine = Engine(folder=stand.folder, stack="stg", environment=os.environ)
    with pytest.raises(OpsError, match=r"topics must fit into a command line \(got \d+ bytes, allowed 131071\)"):
        engine.write(stand.folder / "Pulumi.stg.yaml", {"topics": many})


def test_a_target_that_is_not_green_afterwards_is_told(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(tmp_path, monkeypatch, "fail")
    found = document(promote(stand, "--yes", "--json"), 1)
    assert (found["result"], found["up"]) == ("not proven", "succeeded")
    assert "mirror mm2 of stack stg: its verification must be green" in found["error"]


def test_nothing_to_promote_is_no_failure(stand: Stand) -> None:
    (stand.folder / "Pulumi.stg.yaml").write_text(STG_FILE.replace("1000", "2000"), encoding="utf-8")
    stand.previews("gate")
    assert document(promote(stand, "--yes", "--json"), 0)["result"] == "nothing to promote"
    assert "up" not in stand.words


def test_the_record_knows_the_commit_and_whether_the_files_are_committed(stand: Stand) -> None:
    git = ["git", "-C", str(stand.folder), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    found = document(promote(stand, "--dry-run", "--json"), 0)
    assert found["git"] == {"commit": head, "uncommitted": False}
    (stand.folder / "Pulumi.dev.yaml").write_text(DEV_FILE.replace("2000", "3000"), encoding="utf-8")
    assert document(promote(stand, "--dry-run", "--json"), 0)["git"] == {"commit": head, "uncommitted": True}


def test_the_table_tells_the_plan_and_the_result(stand: Stand) -> None:
    result = promote(stand, "--yes")
    assert result.exit_code == 0, result.output
    for words in ("dev → stg: settings that travel", "topics[audit].config[retention.ms]", "proof: mirror mm2 of stg"):
        assert words in result.stdout
    assert "pulumi up: update KafkaTopic audit" in result.stdout
    assert "[4/7] policy gate and preview of stg with the new settings" in result.stderr
    assert result.stdout.rstrip().endswith("promoted")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--to", "dev"], "--from and --to must be two stacks (got dev twice)"),
        (["--without-verification", " "], "--without-verification must say why"),
        (["--to", "nowhere"], "Pulumi.nowhere.yaml: must be readable"),
    ],
)
def test_wrong_usage_is_one_message_and_exit_2(stand: Stand, arguments: list[str], told: str) -> None:
    result = promote(stand, "--dry-run", "--json", *arguments)
    assert result.exit_code == 2
    assert told in json.loads(result.stdout)["error"]
