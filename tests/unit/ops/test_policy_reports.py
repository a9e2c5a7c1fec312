"""The table, the JSON document and the SARIF log of a judgement, and where in a stack file they point."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ops.connection import PROJECT
from ops.policy import Judgement, Resource, fingerprints
from ops.policy import command as reports
from ops.policy.command import SCHEMA, Rule, describe_rules
from ops.policy.judging import judge
from ops.pulumi import events
from ops.pulumi.stack import EngineRun
from ops.pulumi.stack_file import StackFile

from ...support import event_logs as recorded

MIRROR = recorded.urn(f"{recorded.KAFKA_TYPES}KafkaMirrorMaker2", "mm2")
STACK_FILE = """\
config:
  rt-inventory:cluster:
    name: kafka-stg
    namespace: items
  rt-inventory:users:
    - name: app
      acls: [{type: topic, names: [items, orders]}]
    - name: orders
  rt-inventory:topics:
    - partitions: 3
      name: orders
    - name: items # the goods
  rt-inventory:mirrors:
    - {name: mm2}
"""


def judged(*happened: recorded.Event) -> Judgement:
    log = events.read_event_log(recorded.log(*happened).splitlines())
    return judge("stg", Path("policies"), EngineRun(log=log, exit_code=0, stdout="", stderr=""), "mandatory")


@pytest.fixture
def file(tmp_path: Path) -> StackFile:
    (tmp_path / "Pulumi.stg.yaml").write_text(STACK_FILE, encoding="utf-8")
    return StackFile(tmp_path, "stg")


@pytest.fixture
def judgement() -> Judgement:
    return judged(
        recorded.step("create", recorded.topic(), name="items"),
        recorded.step("create", MIRROR, name="mm2"),
        recorded.violation("topic-naming", "topic items: name must be longer", level="advisory", severity="low"),
        recorded.violation("topic-replication", "topic items: replicas must be >= 3 (got 1). [x]"),
        recorded.violation("mirror-replication", "mirror mm2: a must be >= 3 (got 1).", of=MIRROR, severity="critical"),
        recorded.violation("mirror-replication", "mirror mm2: b must be >= 3 (got 1).", of=MIRROR, severity="critical"),
        recorded.violation("active-exceptions", "KafkaTopic items: x is lifted", level="advisory", severity="low"),
    )


def shown(judgement: Judgement) -> str:
    out = io.StringIO()
    Console(file=out, width=200).print(reports.judgement_table(judgement), highlight=False)
    return out.getvalue()


def test_the_table_shows_each_finding_the_exceptions_and_the_counts(judgement: Judgement) -> None:
    text = shown(judgement)
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    assert rows[0] == [
        *("critical", "mandatory", "mirror-replication", "KafkaMirrorMaker2 mm2"),
        "mirror mm2: a must be >= 3 (got 1).",
    ]
    assert [row[:3] for row in rows[2:4]] == [
        ["high", "mandatory", "topic-replication"],
        ["low", "advisory", "topic-naming"],
    ]
    assert rows[4] == ["KafkaTopic items", "KafkaTopic items: x is lifted"]
    assert "(got 1). [x]" in text
    assert "Active exceptions" in text
    last = text.splitlines()[-1]
    assert last == "3 mandatory, 1 advisory, 1 active exception: stack stg, 2 resources, pack rt-inventory 0.1.0"


def test_nothing_found_is_one_line() -> None:
    text = shown(judged(recorded.step("create", recorded.topic(), name="items")))
    assert text == "nothing found: stack stg, 1 resource, pack rt-inventory 0.1.0\n"


def test_the_json_document_has_every_finding_with_its_place(judgement: Judgement, file: StackFile) -> None:
    document = reports.judgement_document(judgement, file)
    assert set(document) == {"stack", "pack", "findings", "exceptions", "summary"}
    assert document["pack"] == {"path": "policies", "name": "rt-inventory", "version": "0.1.0"}
    topic = document["findings"][2]
    mark = topic.pop("fingerprint")
    assert topic == {
        "rule": "topic-replication",
        "severity": "high",
        "level": "mandatory",
        "resource": {
            "urn": recorded.topic(),
            "type": "kubernetes:kafka.strimzi.io/v1:KafkaTopic",
            "name": "items",
        },
        "message": "topic items: replicas must be >= 3 (got 1). [x]",
        "location": {"file": "Pulumi.stg.yaml", "line": 12},
    }
    assert mark not in {each.get("fingerprint") for each in document["findings"]}
    assert [each["rule"] for each in document["exceptions"]] == ["active-exceptions"]
    assert document["summary"] == {
        "passed": False,
        "complete": True,
        "resources": 2,
        "mandatory": 3,
        "advisory": 1,
        "remediate": 0,
        "exceptions": 1,
        "severities": {"critical": 2, "high": 1, "low": 1},
    }


def sarif(judgement: Judgement, file: StackFile, known: dict[str, Rule] | None = None) -> dict[str, Any]:
    """The log, which holds what SARIF 2.1.0 and GitHub's code scanning require."""
    log = json.loads(json.dumps(reports.as_sarif(judgement, file, known or {})))
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert run["tool"]["driver"]["name"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help")), rule
        assert rule["properties"].get("security-severity") is None or (
            0 < float(rule["properties"]["security-severity"]) <= 10 and rule["properties"]["tags"] == ["security"]
        )
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"error", "warning", "note"}
        assert result["message"]["text"]
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert not physical["artifactLocation"]["uri"].startswith(("/", "file:"))
        assert physical["region"]["startLine"] >= 1
        assert location["logicalLocations"][0]["fullyQualifiedName"].startswith("urn:pulumi:")
    marks = [result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]]
    assert len(set(marks)) == len(marks)
    return dict(run)


def test_the_sarif_log_holds_what_code_scanning_reads(judgement: Judgement, file: StackFile) -> None:
    run = sarif(judgement, file)
    assert run["tool"]["driver"]["name"] == "rt-inventory"
    assert run["automationDetails"]["id"] == "policy/stg/"
    found = [
        (result["ruleId"], result["level"], result["locations"][0]["physicalLocation"]["region"]["startLine"])
        for result in run["results"]
    ]
    assert found == [
        ("mirror-replication", "error", 14),
        ("mirror-replication", "error", 14),
        ("topic-replication", "error", 12),
        ("topic-naming", "warning", 12),
        ("active-exceptions", "note", 12),
    ]
    severities = {rule["id"]: rule["properties"]["security-severity"] for rule in run["tool"]["driver"]["rules"]}
    assert severities == {
        "active-exceptions": "2.0",
        "mirror-replication": "9.5",
        "topic-naming": "2.0",
        "topic-replication": "8.0",
    }


def test_a_sarif_log_without_findings_is_whole_too(file: StackFile) -> None:
    run = sarif(judged(), file)
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])


def test_rules_are_described_by_the_packs_schema_and_else_by_their_findings(
    judgement: Judgement, file: StackFile, tmp_path: Path
) -> None:
    options = {"properties": {"enforcementLevel": {}, "minimum": {"description": "fewest replicas"}, "bare": {}}}
    rules = {"topic-replication": {"description": "Enough replicas.", "oneOf": [{"enum": ["advisory"]}, options]}}
    (tmp_path / SCHEMA).write_text(json.dumps({"properties": rules}), encoding="utf-8")
    described_ = {
        rule["id"]: (rule["shortDescription"]["text"], rule["help"]["text"])
        for rule in sarif(judgement, file, describe_rules(tmp_path))["tool"]["driver"]["rules"]
    }
    assert described_["topic-replication"] == (
        "Enough replicas.",
        "Enough replicas.\n\nOptions:\n- minimum: fewest replicas\n- bare",
    )
    assert described_["topic-naming"] == ("What topic-naming wants.", "What topic-naming wants.")


@pytest.mark.parametrize("text", [None, "no json", "[]", '{"properties": []}', '{"properties": {"a": 1}}'])
def test_a_pack_whose_schema_says_nothing_is_judged_all_the_same(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / SCHEMA).write_text(text, encoding="utf-8")
    assert set(describe_rules(tmp_path)) == {"deletion-protection"}


def test_the_projects_own_pack_describes_its_rules() -> None:
    schema = json.loads((PROJECT / "policies" / SCHEMA).read_text(encoding="utf-8"))["properties"]
    rules = describe_rules(PROJECT / "policies")
    assert set(rules) == set(schema) | {"deletion-protection"}
    assert rules["topic-replication"].description == schema["topic-replication"]["description"]
    assert set(rules["topic-replication"].options) == {"minimum"}


def test_fingerprints_outlive_another_value_and_another_order_and_distinguish_likes(judgement: Judgement) -> None:
    changed = judged(
        recorded.violation("topic-replication", "topic items: replicas must be >= 3 (got 2). [x]"),
        recorded.violation("topic-replication", "topic items: replicas must be >= 3 (got 1). [x]"),
        recorded.violation("mirror-replication", "mirror mm2: b must be >= 3 (got 2).", of=MIRROR, severity="critical"),
    )
    before, after = fingerprints(judgement.findings), fingerprints(changed.findings)
    assert after[:2] == [before[1], before[2]]
    assert after[2] == before[2].replace(":1", ":2")


@pytest.mark.parametrize(
    ("type_", "name", "line"),
    [
        ("KafkaTopic", "items", 12),
        ("KafkaTopic", "orders", 11),
        ("KafkaUser", "orders", 8),
        ("Kafka", "kafka-stg", 3),
        ("KafkaMirrorMaker2", "mm2", 14),
        ("Namespace", "items", 4),
        ("KafkaUser", "items", 7),
        ("KafkaTopic", "nowhere", 1),
    ],
)
def test_a_finding_points_at_the_line_that_names_its_resource(
    file: StackFile, type_: str, name: str, line: int
) -> None:
    of = Resource(urn=recorded.urn(f"{recorded.KAFKA_TYPES}{type_}", "x"), type=f"a:b:{type_}", name=name)
    assert file.line(of) == line


@pytest.mark.parametrize("text", [None, "", "- a", "config: {", "config: text"])
def test_a_stack_file_that_says_nothing_has_one_line(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "Pulumi.stg.yaml").write_text(text, encoding="utf-8")
    of = Resource(urn=recorded.topic(), type="a:b:KafkaTopic", name="items")
    assert StackFile(tmp_path, "stg").line(of) == 1


def test_a_file_of_this_repository_is_named_from_its_root() -> None:
    assert StackFile(PROJECT, "stg").uri == "Pulumi.stg.yaml"
    assert StackFile(PROJECT / "examples" / "production", "organization/x/target").uri == (
        "examples/production/Pulumi.target.yaml"
    )
